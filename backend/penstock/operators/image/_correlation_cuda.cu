// Correlation of images with arbitrary windows.
#include "tiles.cuh"

// Returns the value outside the image, for a constant border.
template <typename In>
__device__ inline float outside_of(const Correlation &p) {
    return p.fill ? to_float(*reinterpret_cast<const In *>(p.fill)) : p.outside;
}

// Converts a sum to the output type; integers are rounded to the nearest, ties to even.
template <typename Out>
struct Rounded {
    static __device__ Out of(float sum) { return converted<Out>(Out(0.5) == Out(0) ? rintf(sum) : sum); }
};

template <>
struct Rounded<uint8> {
    static __device__ uint8 of(float sum) { return uint8(int(rintf(fminf(fmaxf(sum, 0.0f), 255.0f)))); }
};

// Each block computes a tile; each thread computes stretches of STRETCH pixels of the tile's rows.
template <typename In, typename Out>
__global__ void __launch_bounds__(256, 3)
    correlate_tiles(const int64 *__restrict__ first_blocks, const Correlation *__restrict__ correlations, int samples,
                    const float *__restrict__ table) {
    extern __shared__ __align__(16) float memory[];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Correlation &p = correlations[sample];
    const Tiles &tiles = p.tiles;
    const Tile tile = tile_of(tiles, blockIdx.x - first_blocks[sample]);
    const int height = p.window_height, width = p.window_width, weights_pitch = (width + 3) / 4 * 4;
    float *weights = memory, *values = weights + height * weights_pitch;
    float *sums = values + (tiles.rows + tiles.reach_y) * tiles.pitch;
    int32 *shifts = reinterpret_cast<int32 *>(sums + tiles.rows * tiles.out_pitch);

    const float *window = p.window ? reinterpret_cast<const float *>(p.window) : table + p.place;
    for (int i = threadIdx.x; i < height * width; i += blockDim.x)
        weights[i / width * weights_pitch + i % width] = window[i];
    read_tile<In, Float<In>>(tiles, tile, outside_of<In>(p), values, shifts);
    __syncthreads();

    const int inner = tiles.inner;
    each_place(tile.rows, (tile.columns + STRETCH - 1) / STRETCH * inner, [&](int row, int lane) {
        int element = lane % inner + lane / inner * STRETCH * inner;
        Weighted<STRETCH, float> all(weights);
        for (int j = 0; j < height; j++) {
            const float *line = values + (row + j) * tiles.pitch + shifts[row + j] + element;
            all.window = weights + j * weights_pitch;
            slide<STRETCH, float>(width, [&](int k) { return line[k * inner]; }, all);
        }
        float *to = sums + row * tiles.out_pitch + element;
#pragma unroll
        for (int i = 0; i < STRETCH; i++) to[i * inner] = all.sums[i];
    });
    __syncthreads();
    write_tile<Out, Rounded<Out>>(tiles, tile, sums);
}

// For windows that do not fit into shared memory: each thread computes one element.
template <typename In, typename Out>
__global__ void correlate(const int64 *__restrict__ first_blocks, const Correlation *__restrict__ correlations,
                          int samples, const float *__restrict__ table) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Correlation &p = correlations[sample];
    const Tiles &t = p.tiles;
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    Spot spot = spot_of(element, t.out_height, t.out_width, t.inner);
    if (spot.plane >= t.planes) return;
    const In *source = reinterpret_cast<const In *>(t.source) + spot.plane * t.height * t.width * t.inner + spot.inner;
    const float *window = p.window ? reinterpret_cast<const float *>(p.window) : table + p.place;
    float outside = outside_of<In>(p), sum = 0.0f;
    for (int j = 0; j < p.window_height; j++) {
        int y = within(spot.y - t.above + j, t.height, t.border);
        const In *row = source + int64(max(y, 0)) * t.width * t.inner;
        for (int i = 0; i < p.window_width; i++) {
            int x = y < 0 ? -1 : within(spot.x - t.left + i, t.width, t.border);
            sum = fmaf(*window++, x < 0 ? outside : to_float(row[int64(x) * t.inner]), sum);
        }
    }
    reinterpret_cast<Out *>(t.target)[element] = Rounded<Out>::of(sum);
}
