// Resamples bytes with integer weights, one axis at a time, and rounds to bytes after each axis, as kernels/cpu/fixed_point.py does.

__device__ inline uint8 to_byte(int value) { return uint8(min(max(value, 0), 255)); }

// Each thread computes one element of (outer, out_size, inner).
__global__ void resample_bytes(const int64 *__restrict__ first_blocks, const ByteAxis *__restrict__ plans, int samples,
                               const int32 *__restrict__ starts, const int32 *__restrict__ weights) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const ByteAxis p = plans[sample];
    uint32 element = uint32(blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.elements) return;
    uint32 inner = p.inner, row = element / inner, i = element % inner;
    uint32 outer = row / uint32(p.out_size), y = row % uint32(p.out_size);
    const uint8 *source = reinterpret_cast<const uint8 *>(p.source) + (int64(outer) * p.size + starts[p.starts + y]) * inner + i;
    const int32 *own = weights + p.weights + int64(y) * p.taps;
    int sum = p.bits ? 1 << (p.bits - 1) : 0;
#pragma unroll 4
    for (int k = 0; k < p.taps; k++) sum += own[k] * int(source[int64(k) * inner]);
    reinterpret_cast<uint8 *>(p.target)[element] = to_byte(sum >> p.bits);
}

// Multiplies channels by the last one, the opacity, as Pillow does.
__global__ void premultiply(const int64 *__restrict__ first_blocks, const Opacity *__restrict__ images, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Opacity p = images[sample];
    int64 pixel = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (pixel >= p.pixels) return;
    const uint8 *source = reinterpret_cast<const uint8 *>(p.source) + pixel * p.channels;
    uint8 *target = reinterpret_cast<uint8 *>(p.target) + pixel * p.channels;
    uint32 alpha = source[p.channels - 1];
    for (int c = 0; c < p.channels - 1; c++) {
        uint32 product = source[c] * alpha + 128;
        target[c] = uint8(((product >> 8) + product) >> 8);
    }
    target[p.channels - 1] = uint8(alpha);
}

// Divides channels by the last one, the opacity, in place.
__global__ void unmultiply(const int64 *__restrict__ first_blocks, const Opacity *__restrict__ images, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Opacity p = images[sample];
    int64 pixel = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (pixel >= p.pixels) return;
    uint8 *target = reinterpret_cast<uint8 *>(p.target) + pixel * p.channels;
    uint32 alpha = target[p.channels - 1];
    if (alpha == 0 || alpha == 255) return;
    for (int c = 0; c < p.channels - 1; c++) target[c] = uint8(min(255 * int(target[c]) / int(alpha), 255));
}
