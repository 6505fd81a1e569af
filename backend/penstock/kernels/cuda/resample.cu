// Separable resampling, with what comes behind it: rounding, crop, mirror (both in the taps, or the mirror as a flag of
// each image, which is no part of a recorded launch), normalization, layout.
//
// One block makes a segment of one output row: it sums vertical taps into a row of floats in shared memory, then
// horizontal taps from there. A segment that needs more input columns than shared memory holds goes over them in chunks.
// Sums are made in the order of the taps whatever the segments and chunks, so those do not show in the result.

// A weight of zero hides what it is for, which may lie outside of the image, or be no number.
template <typename T> struct MayBeNoNumber { static const bool value = false; };
template <> struct MayBeNoNumber<float> { static const bool value = true; };
template <> struct MayBeNoNumber<float16> { static const bool value = true; };

// N neighbouring elements, read at once, as floats.
template <int N, typename In>
struct Elements {
    struct alignas(N * sizeof(In)) Whole { In values[N]; };
    static __device__ inline void read(const In *at, float *floats) {
        Whole whole = *reinterpret_cast<const Whole *>(at);
        for (int i = 0; i < N; i++) floats[i] = to_float(whole.values[i]);
    }
};
#ifdef __CUDACC__
// A byte put into the last bits of 2^23 is a float at once; instructions that convert are a quarter as fast.
template <int N>
struct Elements<N, uint8> {
    static __device__ inline void read(const uint8 *at, float *floats) {
        if (N < 4) {
            floats[0] = float(*at);
            return;
        }
        struct alignas(N < 4 ? 4 : N) Words { uint32 values[N < 4 ? 1 : N / 4]; };
        Words words = *reinterpret_cast<const Words *>(at);
#pragma unroll
        for (int i = 0; i < N; i++)
            floats[i] = __uint_as_float(__byte_perm(words.values[i / 4], 0x4B000000, 0x7440 + i % 4)) - 8388608.0f;
    }
};
#endif

// Sums of the vertical taps of `count` neighbouring elements, N at a time; rows are `stride` elements apart.
template <int N, typename In>
__device__ inline void sum_rows(const In *top, int64 stride, const float *weights, int taps, int count, float *row) {
    struct alignas(N * sizeof(float) < 16 ? N * sizeof(float) : 16) Sums { float values[N]; };
    for (int i = N * threadIdx.x; i < count; i += N * blockDim.x) {
        const In *column = top + i;
        Sums sums;
        for (int j = 0; j < N; j++) sums.values[j] = 0.0f;
#pragma unroll 4
        for (int k = 0; k < taps; k++) {
            float weight = weights[k];
            if (MayBeNoNumber<In>::value && weight == 0.0f) continue;
            float elements[N];
            Elements<N, In>::read(column + k * stride, elements);
            for (int j = 0; j < N; j++) sums.values[j] = fmaf(weight, elements[j], sums.values[j]);
        }
        *reinterpret_cast<Sums *>(row + i) = sums;
    }
}

__device__ inline int ceil_div(int a, int b) { return a <= 0 ? 0 : (a + b - 1) / b; }

// `Between` is the type that values are rounded to before they are normalized: float for none.
template <typename Between, typename Out>
__device__ inline void finish(const Resample &p, const float *mean, Out *target, int y, int x, int c, float value) {
    value = to_float(converted<Between>(value));
    if (p.normalize) value = (value - mean[c]) * mean[p.channels + c] + p.shift;
    int64 place = p.planar ? (int64(c) * p.out_height + y) * p.out_width + x : (int64(y) * p.out_width + x) * p.out_channels + c;
    target[place] = converted<Out>(value);
}

// `Channels` is the number of channels of all images, or 0 where that is not known here.
template <typename In, typename Between, typename Out, int Channels>
__global__ void __launch_bounds__(256, 8) resample(const int64 *__restrict__ first_blocks, const Resample *__restrict__ plans, int samples,
                         const int32 *__restrict__ starts, const float *__restrict__ tables,
                         const int32 *__restrict__ mirrored, int capacity) {
    extern __shared__ __align__(16) float row[];
    float *sums = row + capacity;
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Resample &p = plans[sample];
    int64 block = blockIdx.x - first_blocks[sample];
    int begin_x = int(block % p.segments) * p.segment;
    int columns = min(p.segment, p.out_width - begin_x);
    int y = int(block / p.segments % p.out_height);
    int64 plane = block / p.segments / p.out_height;
    Out *target = reinterpret_cast<Out *>(p.target) + plane * p.target_plane;
    const int32 *h_starts = starts + p.h_starts + begin_x;
    // Of each tap the weights for all columns, one beside the other.
    const float *h_weights = tables + p.h_weights + begin_x;
    const float *v_weights = tables + p.v_weights + int64(y) * p.v_taps;
    const float *mean = tables + p.normalization;
    // Column x goes to first_x + step_x * x.
    bool reversed = mirrored && mirrored[sample];
    int first_x = reversed ? p.out_width - 1 - begin_x : begin_x, step_x = reversed ? -1 : 1;
    int v_taps = p.v_taps;
    while (v_taps > 1 && v_weights[v_taps - 1] == 0.0f) v_taps--;

    // The elements of the input rows that the segment needs. Starts rise, or fall where the image is mirrored.
    const int C = Channels ? Channels : p.channels;
    int64 stride = int64(p.width) * C;
    int begin = min(h_starts[0], h_starts[columns - 1]) * C;
    int end = (max(h_starts[0], h_starts[columns - 1]) + p.h_taps) * C;
    begin &= ~(p.together - 1);
    end = (end + p.together - 1) & ~(p.together - 1);
    const In *top = reinterpret_cast<const In *>(p.source) + plane * p.source_plane + starts[p.v_starts + y] * stride;

    for (int chunk = begin; chunk < end; chunk += capacity) {
        int count = min(capacity, end - chunk);
        if (chunk != begin) __syncthreads();
        if (sizeof(In) == 1 && p.together == 8) sum_rows<sizeof(In) == 1 ? 8 : 4>(top + chunk, stride, v_weights, v_taps, count, row);
        else if (p.together == 4) sum_rows<4>(top + chunk, stride, v_weights, v_taps, count, row);
        else sum_rows<1>(top + chunk, stride, v_weights, v_taps, count, row);
        __syncthreads();
        bool last = chunk + count == end;
        if (Channels && last && chunk == begin) {
            // All is there: a thread makes whole pixels.
            for (int x = threadIdx.x; x < columns; x += blockDim.x) {
                const float *taps = row + h_starts[x] * C - chunk;
                float values[Channels ? Channels : 1];
                for (int c = 0; c < Channels; c++) values[c] = 0.0f;
#pragma unroll 4
                for (int k = 0; k < p.h_taps; k++) {
                    float weight = h_weights[int64(k) * p.out_width + x];
                    for (int c = 0; c < Channels; c++) values[c] = fmaf(weight, taps[k * C + c], values[c]);
                }
                for (int c = 0; c < Channels; c++) finish<Between>(p, mean, target, y, first_x + step_x * x, c, values[c]);
            }
            continue;
        }
        for (int i = threadIdx.x; i < columns * C; i += blockDim.x) {
            int x = p.planar ? i % columns : i / C;
            int c = p.planar ? i / columns : i % C;
            int start = h_starts[x];
            int k = chunk == begin ? 0 : max(ceil_div(chunk - c, C) - start, 0);
            int stop = last ? p.h_taps : min(ceil_div(chunk + count - c, C) - start, p.h_taps);
            float value = chunk == begin ? 0.0f : sums[i];
            const float *taps = row + start * C + c - chunk;
            for (; k < stop; k++) value = fmaf(h_weights[int64(k) * p.out_width + x], taps[k * C], value);
            if (last) finish<Between>(p, mean, target, y, first_x + step_x * x, c, value);
            else sums[i] = value;
        }
    }
    for (int i = threadIdx.x; i < columns * (p.out_channels - C); i += blockDim.x) {
        int x = begin_x + i % columns, c = C + i / columns;
        int64 place = p.planar ? (int64(c) * p.out_height + y) * p.out_width + x : (int64(y) * p.out_width + x) * p.out_channels + c;
        target[place] = converted<Out>(p.fill);
    }
}

template <typename In, typename Out>
__global__ void resample_axis(const int64 *__restrict__ first_blocks, const Axis *__restrict__ plans, int samples,
                              const int32 *__restrict__ starts, const float *__restrict__ weights) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Axis p = plans[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.outer * p.out_size * p.inner) return;
    int64 i = element % p.inner;
    int64 y = element / p.inner % p.out_size;
    int64 o = element / p.inner / p.out_size;
    const In *source = reinterpret_cast<const In *>(p.source) + (o * p.size + starts[p.starts + y]) * p.inner + i;
    const float *w = weights + p.weights + y * p.taps;
    float sum = 0.0f;
    for (int k = 0; k < p.taps; k++)
        if (w[k] != 0.0f) sum = fmaf(w[k], to_float(source[k * p.inner]), sum);
    reinterpret_cast<Out *>(p.target)[element] = converted<Out>(sum);
}
