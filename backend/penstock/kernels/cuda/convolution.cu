// Sums of separable filters; values beyond the border are reflected without repeating the edge.
#include "tiles.cuh"

// Adds a term to the sum of the terms before it.
__device__ inline void add_term(float &total, float part, float scale, bool first) {
    total = first ? part * scale : part * scale + total;
}

// Sums filters along one axis of arrays viewed as (outer, n, inner); each thread computes a stretch of this axis.
template <typename In, typename Out>
__global__ void convolve_lines(const int64 *__restrict__ first_blocks, const Lines *__restrict__ plans, int samples,
                               const float *__restrict__ windows) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Lines &p = plans[sample];
    int64 number = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    int64 stretches = (p.size + STRETCH - 1) / STRETCH;
    Place column = place_of(number, p.inner), stretch = place_of(column.row, stretches);
    if (stretch.row >= p.outer) return;
    const int size = int(p.size), begin = int(stretch.column) * STRETCH;
    const int64 offset = stretch.row * p.size * p.inner + column.column;
    float totals[STRETCH];
    for (int term = 0; term < p.terms; term++) {
        const In *source = reinterpret_cast<const In *>(p.sources[term]) + offset;
        const int diameter = p.diameters[term];
        Weighted<STRETCH, float> sums(windows + p.windows[term]);
        slide<STRETCH, float>(diameter, [&](int k) {
            return to_float(source[within(begin - diameter / 2 + k, size, BORDER_REFLECT_101) * p.inner]);
        }, sums);
#pragma unroll
        for (int i = 0; i < STRETCH; i++) add_term(totals[i], sums.sums[i], p.scales[term], term == 0);
    }
    Out *target = reinterpret_cast<Out *>(p.target) + offset;
#pragma unroll
    for (int i = 0; i < STRETCH; i++)
        if (begin + i < size) target[(begin + i) * p.inner] = converted<Out>(totals[i]);
}

// The number of output rows that a thread computes, in four columns each.
const int STRETCH_DOWN = 4;

// Sums filters along the height and the width: each filter runs along the rows first, then along the columns of the result.
template <typename In, typename Out>
__global__ void __launch_bounds__(256, 3) convolve_planes(const int64 *__restrict__ first_blocks, const Planes *__restrict__ plans, int samples,
                                const float *__restrict__ windows) {
    extern __shared__ __align__(16) float memory[];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Planes &p = plans[sample];
    const Tiles &tiles = p.tiles;
    const Tile tile = tile_of(tiles, blockIdx.x - first_blocks[sample]);
    const int most_rows = tiles.rows + tiles.reach_y, rows = tile.rows + tiles.reach_y, inner = tiles.inner;
    float *weights = memory, *values = weights + p.weight_count, *filtered = values + most_rows * tiles.pitch;
    const int part = most_rows * tiles.out_pitch;
    int32 *shifts = reinterpret_cast<int32 *>(filtered + p.terms * part);

    for (int i = threadIdx.x; i < p.weight_count; i += blockDim.x) weights[i] = windows[p.weights + i];
    read_tile<In, Float<In>>(tiles, tile, 0.0f, values, shifts);
    __syncthreads();

    const int stretches = (tile.columns + STRETCH - 1) / STRETCH;
    for (int term = 0; term < p.terms; term++) {
        // Narrower windows begin later than the widest one.
        const int width = p.widths[term], late = tiles.left - width / 2;
        each_place(rows, stretches * inner, [&](int row, int lane) {
            int element = lane % inner + lane / inner * STRETCH * inner;
            const float *line = values + row * tiles.pitch + shifts[row] + element + late * inner;
            Weighted<STRETCH, float> sums(weights + p.windows_x[term]);
            slide<STRETCH, float>(width, [&](int k) { return line[k * inner]; }, sums);
            float *to = filtered + term * part + row * tiles.out_pitch + element;
#pragma unroll
            for (int i = 0; i < STRETCH; i++) to[i * inner] = sums.sums[i];
        });
    }
    __syncthreads();

    each_place((tile.rows + STRETCH_DOWN - 1) / STRETCH_DOWN, (tile.columns * inner + 3) / 4, [&](int stretch, int lane) {
        Four<float> totals[STRETCH_DOWN];
        for (int term = 0; term < p.terms; term++) {
            const int height = p.heights[term], row = stretch * STRETCH_DOWN + tiles.above - height / 2;
            const float *column = filtered + term * part + row * tiles.out_pitch + 4 * lane;
            Weighted<STRETCH_DOWN, Four<float>> sums(weights + p.windows_y[term]);
            slide<STRETCH_DOWN, Four<float>>(height, [&](int k) {
                return *reinterpret_cast<const Four<float> *>(column + k * tiles.out_pitch);
            }, sums);
#pragma unroll
            for (int i = 0; i < STRETCH_DOWN; i++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    add_term(totals[i].values[k], sums.sums[i].values[k], p.scales[term], term == 0);
        }
#pragma unroll
        for (int i = 0; i < STRETCH_DOWN; i++)
            if (stretch * STRETCH_DOWN + i < tile.rows)
                write_four<Out, Convertible<Out>>(tiles, tile, stretch * STRETCH_DOWN + i, 4 * lane, totals[i]);
    });
}
