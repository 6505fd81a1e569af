// Kernels along one dimension of scores: softmax, argmax, top-k, and the names of classes. An array is viewed as
// (outer, extent, inner); a line is a vector along the dimension. `lanes` threads share a line; a block computes one line or more.

#include "exponential.cuh"

// A score and its index along its line; index -1: no score.
struct Best {
    float score;
    int row;
};

// Returns whether `a` is better than `b`; if scores are equal, the first one along the line is better.
__device__ inline bool is_better(const Best &a, const Best &b) {
    return a.row >= 0 && (b.row < 0 || a.score > b.score || (a.score == b.score && a.row < b.row));
}

struct Better {
    __device__ Best operator()(const Best &a, const Best &b) const { return is_better(b, a) ? b : a; }
};
struct Larger {
    __device__ float operator()(float a, float b) const { return b > a ? b : a; }
};
struct Sum {
    __device__ double operator()(double a, double b) const { return a + b; }
};

// The line that a thread works on.
template <typename In>
struct Line {
    const In *first;
    int64 number, offset;  // number of the line in the sample, and position of its first score there
    int64 step;            // distance from one score to the next
    int extent, lane;      // `extent` is 0 in threads without a line
    bool exists;
};

template <typename In>
__device__ inline Line<In> line_of(const Scores &s, int64 block) {
    Line<In> line;
    line.number = block * (THREADS / s.lanes) + threadIdx.x / s.lanes;
    line.lane = threadIdx.x % s.lanes;
    line.exists = line.number < s.outer * s.inner;
    Place place = place_of(line.exists ? line.number : 0, s.inner);
    line.offset = place.row * s.extent * s.inner + place.column;
    line.first = reinterpret_cast<const In *>(s.source) + line.offset;
    line.step = s.inner;
    line.extent = line.exists ? s.extent : 0;
    return line;
}

// Reduces the values of all threads of a line to one value, and returns it in all of these threads.
template <typename T, typename Merge>
__device__ inline T merged(T value, T *values, int lanes, Merge merge) {
    if (lanes == 1) return value;
    int lane = threadIdx.x % lanes;
    values[threadIdx.x] = value;
    __syncthreads();
    for (int half = lanes / 2; half > 0; half /= 2) {
        if (lane < half) values[threadIdx.x] = merge(values[threadIdx.x], values[threadIdx.x + half]);
        __syncthreads();
    }
    T all = values[threadIdx.x - lane];
    __syncthreads();
    return all;
}

template <typename In>
__global__ void softmax(const int64 *__restrict__ first_blocks, const Scores *__restrict__ samples, int count) {
    __shared__ float largest[THREADS];
    __shared__ double sums[THREADS];
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Scores s = samples[sample];
    const Line<In> line = line_of<In>(s, blockIdx.x - first_blocks[sample]);
    float *target = reinterpret_cast<float *>(s.values) + line.offset;
    float best = to_float(line.first[0]);
    for (int row = line.lane; row < line.extent; row += s.lanes)
        best = Larger()(best, to_float(line.first[row * line.step]));
    best = merged(best, largest, s.lanes, Larger());
    double total = 0.0;
    for (int row = line.lane; row < line.extent; row += s.lanes) {
        double value = exponential(double(to_float(line.first[row * line.step])) - double(best));
        total += value;
        target[row * line.step] = float(value);
    }
    double share = 1.0 / merged(total, sums, s.lanes, Sum());
    for (int row = line.lane; row < line.extent; row += s.lanes)
        target[row * line.step] = float(double(target[row * line.step]) * share);
}

// Writes the `number` highest scores of each line, in descending order. `faults` gets the position of each sample's first NaN.
template <typename In>
__global__ void highest(const int64 *__restrict__ first_blocks, const Scores *__restrict__ samples, int count,
                        uint64 *__restrict__ faults, int number) {
    __shared__ Best found[THREADS];
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Scores s = samples[sample];
    const Line<In> line = line_of<In>(s, blockIdx.x - first_blocks[sample]);
    float *values = reinterpret_cast<float *>(s.values);
    int *indices = reinterpret_cast<int *>(s.indices);
    Place place = place_of(line.exists ? line.number : 0, s.inner);
    Best before = {0.0f, -1};
    for (int rank = 0; rank < number; rank++) {
        Best best = {0.0f, -1};
        for (int row = line.lane; row < line.extent; row += s.lanes) {
            Best own = {to_float(line.first[row * line.step]), row};
            if (rank == 0 && own.score != own.score) {
                atomicMin(faults + sample, uint64(line.offset + row * line.step));
                break;
            }
            if ((rank == 0 || is_better(before, own)) && is_better(own, best)) best = own;
        }
        before = merged(best, found, s.lanes, Better());
        if (line.exists && line.lane == 0) {
            int64 to = (place.row * number + rank) * s.inner + place.column;
            if (values) values[to] = before.score;
            // If scores are NaN, there may be fewer than `number` others; the index does not matter, as the sample fails.
            indices[to] = before.row < 0 ? 0 : before.row;
        }
    }
}

// Writes the names of classes, `length` bytes for each.
__global__ void write_names(const int64 *__restrict__ first_blocks, const Named *__restrict__ samples, int count,
                            const uint8 *__restrict__ names, int length) {
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Named n = samples[sample];
    int64 position = (blockIdx.x - first_blocks[sample]) * THREADS + threadIdx.x;
    if (position >= n.bytes) return;
    Place place = place_of(position, length);
    int64 name = reinterpret_cast<const int *>(n.classes)[place.row];
    reinterpret_cast<uint8 *>(n.target)[position] = names[name * length + place.column];
}
