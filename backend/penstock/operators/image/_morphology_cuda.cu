// The maximum or minimum of the values under a rectangle.
#include "tiles.cuh"

struct Greatest {
    template <typename T> static __device__ T of(T a, T b) { return a < b ? b : a; }
};
struct Least {
    template <typename T> static __device__ T of(T a, T b) { return b < a ? b : a; }
};

// The extremes of N overlapping lines of values; `slide` passes each value to `take`.
template <int N, typename Extreme>
struct Extremes {
    float best[N];

    __device__ void prepare(int, int) {}
    __device__ void take(int line, int, float value) { best[line] = Extreme::of(best[line], value); }
};

template <typename T>
struct Exact {
    static __device__ T of(float value) { return T(value); }
};

// Each block computes a tile: first the extremes along columns, then the extremes of these along rows. Floats hold the values of all
// types exactly.
template <typename T, typename Extreme>
__global__ void __launch_bounds__(256, 4) extreme_tiles(const int64 *__restrict__ first_blocks,
                                                        const Rectangle *__restrict__ rectangles, int samples) {
    extern __shared__ __align__(16) float memory[];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Rectangle &p = rectangles[sample];
    const Tiles &tiles = p.tiles;
    const Tile tile = tile_of(tiles, blockIdx.x - first_blocks[sample]);
    const int pitch = tiles.pitch, inner = tiles.inner;
    float *values = memory, *columns = values + (tiles.rows + tiles.reach_y) * pitch;
    int32 *shifts = reinterpret_cast<int32 *>(columns + tiles.rows * pitch);

    read_tile<T, Float<T>>(tiles, tile, p.neutral, values, shifts);
    __syncthreads();

    each_place((tile.rows + STRETCH - 1) / STRETCH, (tile.columns + tiles.reach_x) * inner, [&](int stretch, int lane) {
        const int row = stretch * STRETCH;
        auto load = [&](int k) { return values[(row + k) * pitch + shifts[row + k] + lane]; };
        Extremes<STRETCH, Extreme> extremes;
#pragma unroll
        for (int i = 0; i < STRETCH; i++) extremes.best[i] = load(tiles.above + i);
        slide<STRETCH, float>(p.mask_height, load, extremes);
#pragma unroll
        for (int i = 0; i < STRETCH; i++) columns[(row + i) * pitch + lane] = extremes.best[i];
    });
    __syncthreads();

    // The tile's input is no longer needed, so the results overwrite it.
    each_place(tile.rows, (tile.columns + STRETCH - 1) / STRETCH * inner, [&](int row, int lane) {
        const int element = lane % inner + lane / inner * STRETCH * inner;
        const float *line = columns + row * pitch + element;
        auto load = [&](int k) { return line[k * inner]; };
        Extremes<STRETCH, Extreme> extremes;
#pragma unroll
        for (int i = 0; i < STRETCH; i++) extremes.best[i] = load(tiles.left + i);
        slide<STRETCH, float>(p.mask_width, load, extremes);
#pragma unroll
        for (int i = 0; i < STRETCH; i++) values[row * pitch + element + i * inner] = extremes.best[i];
    });
    __syncthreads();
    write_tile<T, Exact<T>>(tiles, tile, values);
}

// For rectangles that do not fit into shared memory: takes extremes along one axis of an array viewed as (outer, size, inner).
template <typename T, typename Extreme>
__global__ void extreme(const int64 *__restrict__ first_blocks, const Line *__restrict__ lines, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Line &p = lines[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.outer * p.size * p.inner) return;
    Place inner = place_of(element, p.inner), outer = place_of(inner.row, p.size);
    const T *source = reinterpret_cast<const T *>(p.source) + outer.row * p.size * p.inner + inner.column;
    T value = reinterpret_cast<const T *>(p.source)[element];
    for (int k = 0; k < p.length; k++) {
        // Positions beyond a constant border are skipped: they do not change the result.
        int place = within(int(outer.column) - p.anchor + k, int(p.size), p.border);
        if (place >= 0) value = Extreme::of(value, source[place * p.inner]);
    }
    reinterpret_cast<T *>(p.target)[element] = value;
}
