// Pixels times a matrix plus an offset; or all values alike times a factor plus an offset.

struct Colour {
    uint64 source, target;
    int64 pixels;               // or values, where there is no matrix
    int32 channels_in, channels_out;
    float matrix[12], offset[4];
};

template <typename In, typename Out>
__global__ void colour(const int64 *__restrict__ first_blocks, const Colour *__restrict__ colours, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Colour &p = colours[sample];
    int64 pixel = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (pixel >= p.pixels) return;
    const In *source = reinterpret_cast<const In *>(p.source) + pixel * p.channels_in;
    Out *target = reinterpret_cast<Out *>(p.target) + pixel * p.channels_out;
    float in[4];
    for (int c = 0; c < p.channels_in; c++) in[c] = to_float(source[c]);
    for (int c = 0; c < p.channels_out; c++) {
        float value = p.matrix[c * p.channels_in] * in[0];
        for (int k = 1; k < p.channels_in; k++) value += p.matrix[c * p.channels_in + k] * in[k];
        target[c] = converted<Out>(value + p.offset[c]);
    }
}
