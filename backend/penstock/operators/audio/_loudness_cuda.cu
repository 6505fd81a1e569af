// Finds the loud part of signals: computes the power over a moving window, then the first and the last element at which that power
// reaches a threshold.

const float LOWEST = -3.402823466e+38f;

template <typename In>
__device__ inline double square_of(const In *signal, int64 index) {
    double value = index < 0 ? 0.0 : converted<double>(signal[index]);
    return value * value;
}

__device__ inline float greater(float a, float b) { return b > a ? b : a; }

// Returns the sum of the values of all threads before this one; `total` becomes the sum over all threads.
__device__ inline double sum_before(double value, double *sums, double *total) {
    sums[threadIdx.x] = value;
    __syncthreads();
    for (int reach = 1; reach < THREADS; reach *= 2) {
        double other = threadIdx.x >= reach ? sums[threadIdx.x - reach] : 0.0;
        __syncthreads();
        sums[threadIdx.x] += other;
        __syncthreads();
    }
    *total = sums[THREADS - 1];
    double before = threadIdx.x ? sums[threadIdx.x - 1] : 0.0;
    __syncthreads();
    return before;
}

// Merges the values of all threads, and returns the result to each of them; `values` has room for one value per thread.
template <typename T, typename Merge>
__device__ inline T merged(T value, T *values, Merge merge) {
    values[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) values[threadIdx.x] = merge(values[threadIdx.x], values[threadIdx.x + half]);
        __syncthreads();
    }
    T all = values[0];
    __syncthreads();
    return all;
}
struct Greater {
    __device__ float operator()(float a, float b) const { return greater(a, b); }
};
struct Smaller {
    __device__ int64 operator()(int64 a, int64 b) const { return b < a ? b : a; }
};

// Computes the mean square over the window that ends at each element. The running sum restarts at each tile, so that its rounding
// errors stay small.
template <typename In>
__global__ void moving_power(const int64 *__restrict__ first_blocks, const Signal *__restrict__ signals, int samples) {
    __shared__ double sums[THREADS];
    __shared__ float peaks[THREADS];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Signal &s = signals[sample];
    const In *signal = reinterpret_cast<const In *>(s.source);
    float *power = reinterpret_cast<float *>(s.power);
    int64 tile = blockIdx.x - first_blocks[sample];
    int64 begin = tile * s.tile, end = begin + s.tile < s.size ? begin + s.tile : s.size;
    double sum = 0.0;
    int64 before = begin < s.window ? 0 : begin - s.window;
    for (int64 i = before + threadIdx.x; i < begin; i += THREADS) sum += square_of(signal, i);
    double total;
    sum_before(sum, sums, &total);
    float peak = LOWEST;
    for (; begin < end; begin += THREADS * RUN) {
        int64 first = begin + threadIdx.x * RUN;
        double run[RUN];
        double own = 0.0;
        #pragma unroll
        for (int i = 0; i < RUN; i++) {
            if (first + i < end) own += square_of(signal, first + i) - square_of(signal, first + i - s.window);
            run[i] = own;
        }
        double all;
        double here = total + sum_before(own, sums, &all);
        #pragma unroll
        for (int i = 0; i < RUN; i++) {
            if (first + i >= end) break;
            float value = float((here + run[i]) / double(s.window));
            power[first + i] = value;
            peak = greater(peak, value);
        }
        total += all;
    }
    peak = merged(peak, peaks, Greater());
    if (threadIdx.x == 0) reinterpret_cast<float *>(s.peaks)[tile] = peak;
}

// Returns the index of the first or (`backwards`) the last of `count` values that reaches the threshold; `count` if none does.
__device__ inline int64 find(const float *values, int64 count, float threshold, bool backwards, int64 *places) {
    for (int64 base = 0; base < count; base += THREADS) {
        int64 i = base + threadIdx.x;
        bool loud = i < count && values[backwards ? count - 1 - i : i] >= threshold;
        int64 found = merged(loud ? i : count, places, Smaller());
        if (found < count) return backwards ? count - 1 - found : found;
    }
    return count;
}

// Finds the loud part of each signal; one block for each. With `relative`, `reference` is replaced by the signal's highest power.
__global__ void loud_region(const int64 *__restrict__ first_blocks, const Signal *__restrict__ signals, int samples,
                            double ratio, double reference, int relative) {
    __shared__ int64 places[THREADS];
    __shared__ float values[THREADS];
    const Signal &s = signals[blockIdx.x];
    const float *peaks = reinterpret_cast<const float *>(s.peaks), *power = reinterpret_cast<const float *>(s.power);
    if (relative) {
        float peak = 0.0f;
        for (int64 i = threadIdx.x; i < s.tiles; i += THREADS) peak = greater(peak, peaks[i]);
        reference = merged(peak, values, Greater());
    }
    float threshold = float(reference * ratio);
    int64 start = 0, length = 0;
    int64 first = find(peaks, s.tiles, threshold, false, places);
    if (first < s.tiles) {
        int64 last = find(peaks, s.tiles, threshold, true, places);
        first *= s.tile;
        last *= s.tile;
        int64 in_first = s.size - first < s.tile ? s.size - first : s.tile;
        int64 in_last = s.size - last < s.tile ? s.size - last : s.tile;
        start = first + find(power + first, in_first, threshold, false, places) - s.window + 1;
        if (start < 0) start = 0;
        length = last + find(power + last, in_last, threshold, true, places) - start + 1;
    }
    if (threadIdx.x == 0) {
        *reinterpret_cast<int32 *>(s.begin) = int32(start);
        *reinterpret_cast<int32 *>(s.length) = int32(length);
    }
}
