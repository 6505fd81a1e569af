// Decodes detectors' predictions to boxes, with the same operations as on the CPU (_decode_boxes_cpu.py) in the same order.

#include "exponential.cuh"

// As on the CPU, NaN stays NaN.
__device__ inline float at_most(float value, float limit) { return limit < value ? limit : value; }
__device__ inline float at_least(float value, float limit) { return limit > value ? limit : value; }

__device__ inline float power_of_e(float power) {
    return float(exponential(power > MAX_POWER ? MAX_POWER : double(power)));
}

// Converts a coordinate to the original image; axis 0 is x, axis 1 is y.
__device__ inline float placed(const Predictions &p, float value, int axis) {
    const float *g = p.geometry + axis;
    return at_most(at_least((value - g[0]) * g[2], g[4]), g[6]);
}

__device__ inline void store(const Predictions &p, int64 row, float x, float y, float wide, float high) {
    Pack<float, 4> box = {{placed(p, x - wide * 0.5f, 0), placed(p, y - high * 0.5f, 1), placed(p, x + wide * 0.5f, 0),
                           placed(p, y + high * 0.5f, 1)}};
    write_pack<4>(reinterpret_cast<float *>(p.target) + 4 * row, box);
}

// The box that a thread decodes: its sample, and its number in the sample.
struct Row {
    int sample;
    int64 number;
};

__device__ inline Row row_of(const int64 *first_blocks, int count) {
    int sample = sample_of(first_blocks, count, blockIdx.x);
    return {sample, (blockIdx.x - first_blocks[sample]) * THREADS + threadIdx.x};
}

template <typename In>
__global__ void decode_centres(const int64 *__restrict__ first_blocks, const Predictions *__restrict__ samples, int count) {
    Row row = row_of(first_blocks, count);
    const Predictions &p = samples[row.sample];
    if (row.number >= p.rows) return;
    const In *own = reinterpret_cast<const In *>(p.source) + 4 * row.number;
    store(p, row.number, to_float(own[0]), to_float(own[1]), to_float(own[2]), to_float(own[3]));
}

// `means`, `stds`: means and standard deviations of the offsets of x, y, width and height.
template <typename In, typename Anchor>
__global__ void decode_offsets(const int64 *__restrict__ first_blocks, const Predictions *__restrict__ samples, int count,
                               const Anchor *__restrict__ shared_anchors, const float *__restrict__ means,
                               const float *__restrict__ stds, float max_log) {
    Row row = row_of(first_blocks, count);
    const Predictions &p = samples[row.sample];
    if (row.number >= p.rows) return;
    const In *own = reinterpret_cast<const In *>(p.source) + 4 * row.number;
    const Anchor *anchor = (p.anchors ? reinterpret_cast<const Anchor *>(p.anchors) : shared_anchors) + 4 * row.number;
    float left = to_float(anchor[0]), top = to_float(anchor[1]);
    float base_wide = to_float(anchor[2]) - left, base_high = to_float(anchor[3]) - top;
    float offsets[4];
    for (int i = 0; i < 4; i++) offsets[i] = to_float(own[i]) * stds[i] + means[i];
    store(p, row.number, offsets[0] * base_wide + (left + 0.5f * base_wide), offsets[1] * base_high + (top + 0.5f * base_high),
          power_of_e(at_most(offsets[2], max_log)) * base_wide, power_of_e(at_most(offsets[3], max_log)) * base_high);
}

// Column and row of a cell in its grid, and the cell's extent in pixels.
struct Cell {
    float x, y, step;
};

__device__ inline Cell cell_of(const Predictions &p, int64 row, const int64 *strides, int levels) {
    int level = 0;
    int64 wide = 0;
    for (;; level++) {
        int64 step = strides[level], high = (p.height + step - 1) / step;
        wide = (p.width + step - 1) / step;
        if (row < wide * high || level == levels - 1) break;
        row -= wide * high;
    }
    Place place = place_of(row, wide);
    return {float(place.column), float(place.row), float(strides[level])};
}

template <typename In>
__global__ void decode_cells(const int64 *__restrict__ first_blocks, const Predictions *__restrict__ samples, int count,
                             const int64 *__restrict__ strides, int levels) {
    Row row = row_of(first_blocks, count);
    const Predictions &p = samples[row.sample];
    if (row.number >= p.rows) return;
    const In *own = reinterpret_cast<const In *>(p.source) + 4 * row.number;
    Cell cell = cell_of(p, row.number, strides, levels);
    store(p, row.number, (to_float(own[0]) + cell.x) * cell.step, (to_float(own[1]) + cell.y) * cell.step,
          power_of_e(to_float(own[2])) * cell.step, power_of_e(to_float(own[3])) * cell.step);
}

// Returns the mean of 0, 1, 2, ... weighted by the softmax of logits.
template <typename In>
__device__ inline float mean_of(const In *logits, int count) {
    float highest = to_float(logits[0]), total = 0.0f, weighted = 0.0f;
    for (int i = 1; i < count; i++) highest = at_least(highest, to_float(logits[i]));
    for (int i = 0; i < count; i++) {
        float likely = power_of_e(to_float(logits[i]) - highest);
        total += likely;
        weighted += likely * float(i);
    }
    return weighted / total;
}

// Each thread decodes one edge of a box, so the number of a `Row` is that of an edge.
template <typename In>
__global__ void decode_distances(const int64 *__restrict__ first_blocks, const Predictions *__restrict__ samples, int count,
                                 const int64 *__restrict__ strides, int levels, int logits) {
    Row edge = row_of(first_blocks, count);
    const Predictions &p = samples[edge.sample];
    if (edge.number >= 4 * p.rows) return;
    const In *own = reinterpret_cast<const In *>(p.source) + edge.number * logits;
    float distance = logits == 1 ? to_float(own[0]) : mean_of(own, logits);
    Cell cell = cell_of(p, edge.number / 4, strides, levels);
    int side = int(edge.number % 4), axis = side % 2;
    float centre = (axis ? cell.y : cell.x) + 0.5f;
    float place = (side < 2 ? centre - distance : centre + distance) * cell.step;
    reinterpret_cast<float *>(p.target)[edge.number] = placed(p, place, axis);
}
