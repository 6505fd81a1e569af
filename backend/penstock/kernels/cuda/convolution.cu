// Convolution along one axis of an array seen as (outer, n, inner), reflected at the border without repeating the edge.

struct Convolution {
    uint64 source, target;
    int64 outer, size, inner;
    int32 window, diameter;
};

template <typename In, typename Out>
__global__ void convolve(const int64 *__restrict__ first_blocks, const Convolution *__restrict__ plans, int samples,
                         const float *__restrict__ windows) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Convolution p = plans[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.outer * p.size * p.inner) return;
    int64 i = element % p.inner, y = element / p.inner % p.size, o = element / p.inner / p.size;
    const In *source = reinterpret_cast<const In *>(p.source) + o * p.size * p.inner + i;
    const float *window = windows + p.window;
    int64 begin = y - p.diameter / 2;
    float sum = 0.0f;
    for (int k = 0; k < p.diameter; k++) {
        int64 place = begin + k;
        if (p.size == 1) place = 0;
        while (place < 0 || place >= p.size) place = place < 0 ? -place : 2 * p.size - 2 - place;
        sum = fmaf(window[k], to_float(source[place * p.inner]), sum);
    }
    reinterpret_cast<Out *>(p.target)[element] = converted<Out>(sum);
}
