// Each pixel is multiplied by a matrix, and an offset is added; with a 1x1 matrix, each value is scaled and offset by itself.

template <typename In, typename Out, int CHANNELS_IN, int CHANNELS_OUT>
__device__ inline void transform_pixel(const Colour &p, const In *source, Out *target) {
    for (int c = 0; c < CHANNELS_OUT; c++) {
        const float *row = p.matrix + c * CHANNELS_IN;
        float value = row[0] * to_float(source[0]);
        for (int k = 1; k < CHANNELS_IN; k++) value += row[k] * to_float(source[k]);
        target[c] = converted<Out>(value + p.offset[c]);
    }
}

template <typename In, typename Out, int CHANNELS_IN, int CHANNELS_OUT>
__global__ void colour(const int64 *__restrict__ first_blocks, const Colour *__restrict__ colours, int samples) {
    // The number of neighbouring pixels that a thread computes at a time.
    const int UNIT = CHANNELS_IN == 1 && CHANNELS_OUT == 1 ? 8 : 4;
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Colour &p = colours[sample];
    int64 begin = (blockIdx.x - first_blocks[sample]) * BLOCK_PIXELS;
    int count = int(p.pixels - begin < BLOCK_PIXELS ? p.pixels - begin : BLOCK_PIXELS);
    const In *source = reinterpret_cast<const In *>(p.source) + begin * CHANNELS_IN;
    Out *target = reinterpret_cast<Out *>(p.target) + begin * CHANNELS_OUT;
    for (int i = UNIT * threadIdx.x; i < count; i += UNIT * blockDim.x) {
        const In *from = source + i * CHANNELS_IN;
        Out *to = target + i * CHANNELS_OUT;
        if (count - i < UNIT) {
            for (int k = 0; k < count - i; k++)
                transform_pixel<In, Out, CHANNELS_IN, CHANNELS_OUT>(p, from + k * CHANNELS_IN, to + k * CHANNELS_OUT);
            return;
        }
        In in[UNIT * CHANNELS_IN];
        Out out[UNIT * CHANNELS_OUT];
        read_pixels<UNIT, CHANNELS_IN>(from, in);
#pragma unroll
        for (int k = 0; k < UNIT; k++)
            transform_pixel<In, Out, CHANNELS_IN, CHANNELS_OUT>(p, in + k * CHANNELS_IN, out + k * CHANNELS_OUT);
        write_pixels<UNIT, CHANNELS_OUT>(to, out);
    }
}
