// Separable resampling, with what comes behind it: rounding, crop, mirror (both in the taps), normalization, layout.
// One block makes one output row: vertical taps into a row of floats in shared memory, horizontal taps from there.

struct Resample {
    uint64 source, target;
    int64 source_plane, target_plane;   // elements from one plane (image of a stack) to the next
    int32 height, width, channels;      // of the source
    int32 out_height, out_width;
    int32 v_starts, v_weights, v_taps;  // where the tables begin, and taps for each output position
    int32 h_starts, h_weights, h_taps;
    int32 first_column, columns;        // the columns of the source that any output needs
    int32 planar, normalize, rounded;   // CHW output; subtract and scale; round to uint8 in between
    int32 out_channels;
    float mean[4], factor[4];
    float shift, fill;
};

template <typename In, typename Out>
__global__ void resample(const int64 *first_blocks, const Resample *plans, int samples, const int32 *starts, const float *weights) {
    extern __shared__ float row[];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Resample &p = plans[sample];
    int64 block = blockIdx.x - first_blocks[sample];
    int64 plane = block / p.out_height;
    int y = int(block % p.out_height);
    const In *source = reinterpret_cast<const In *>(p.source) + plane * p.source_plane;
    Out *target = reinterpret_cast<Out *>(p.target) + plane * p.target_plane;
    int C = p.channels;
    int v_start = starts[p.v_starts + y];
    const float *v = weights + p.v_weights + int64(y) * p.v_taps;
    const In *top = source + (int64(v_start) * p.width + p.first_column) * C;
    int64 stride = int64(p.width) * C;
    for (int i = threadIdx.x; i < p.columns * C; i += blockDim.x) {
        const In *column = top + i;
        float sum = v[0] * to_float(column[0]);
        for (int k = 1; k < p.v_taps; k++) {
            float weight = v[k];
            if (weight != 0.0f) sum += weight * to_float(column[k * stride]);
        }
        row[i] = sum;
    }
    __syncthreads();
    int count = p.out_width * p.out_channels;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        int x = p.planar ? i % p.out_width : i / p.out_channels;
        int c = p.planar ? i / p.out_width : i % p.out_channels;
        float value = p.fill;
        if (c < C) {
            int h_start = starts[p.h_starts + x] - p.first_column;
            const float *h = weights + p.h_weights + int64(x) * p.h_taps;
            value = 0.0f;
            for (int k = 0; k < p.h_taps; k++) value += h[k] * row[(h_start + k) * C + c];
            if (p.rounded) value = float(converted<uint8>(value));
            if (p.normalize) value = (value - p.mean[c]) * p.factor[c] + p.shift;
        }
        int64 place = p.planar ? (int64(c) * p.out_height + y) * p.out_width + x : (int64(y) * p.out_width + x) * p.out_channels + c;
        target[place] = converted<Out>(value);
    }
}

// One axis of an array seen as (outer, n, inner), for volumes and for rows too long for shared memory.
struct Axis {
    uint64 source, target;
    int64 outer, size, inner, out_size;
    int32 starts, weights, taps, padding;
};

template <typename In, typename Out>
__global__ void resample_axis(const int64 *first_blocks, const Axis *plans, int samples, const int32 *starts, const float *weights) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Axis &p = plans[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.outer * p.out_size * p.inner) return;
    int64 i = element % p.inner;
    int64 y = element / p.inner % p.out_size;
    int64 o = element / p.inner / p.out_size;
    const In *source = reinterpret_cast<const In *>(p.source) + (o * p.size + starts[p.starts + y]) * p.inner + i;
    const float *w = weights + p.weights + y * p.taps;
    float sum = w[0] * to_float(source[0]);
    for (int k = 1; k < p.taps; k++)
        if (w[k] != 0.0f) sum += w[k] * to_float(source[k * p.inner]);
    reinterpret_cast<Out *>(p.target)[element] = converted<Out>(sum);
}
