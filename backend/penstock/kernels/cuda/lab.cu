// RGB in bytes to CIE L*a*b* in bytes and back; the tables are those of kernels/lab.py.

struct Pixels {
    uint64 source, target;
    int64 count;
};

__device__ inline int descaled(int value, int bits) { return (value + (1 << (bits - 1))) >> bits; }
__device__ inline uint8 to_byte(int value) { return uint8(min(max(value, 0), 255)); }

__global__ void to_lab(const int64 *__restrict__ first_blocks, const Pixels *__restrict__ images, int samples,
                       const int32 *__restrict__ matrix, const int32 *__restrict__ linear,
                       const int32 *__restrict__ roots) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    int64 pixel = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (pixel >= images[sample].count) return;
    const uint8 *source = reinterpret_cast<const uint8 *>(images[sample].source) + 3 * pixel;
    uint8 *target = reinterpret_cast<uint8 *>(images[sample].target) + 3 * pixel;
    int red = linear[source[0]], green = linear[source[1]], blue = linear[source[2]], root[3];
    for (int i = 0; i < 3; i++)
        root[i] = roots[descaled(red * matrix[3 * i] + green * matrix[3 * i + 1] + blue * matrix[3 * i + 2], 12)];
    // 255 / 100 * (116 root - 16), and a and b around 128; all in 15 bits.
    const int slope = (116 * 255 + 50) / 100, offset = (16 * 255 * (1 << 15) + 50) / 100, middle = 128 * (1 << 15);
    target[0] = to_byte(descaled(slope * root[1] - offset, 15));
    target[1] = to_byte(descaled(500 * (root[0] - root[1]) + middle, 15));
    target[2] = to_byte(descaled(200 * (root[1] - root[2]) + middle, 15));
}

// The cube of a root of 14 bits, linear for dark colours.
__device__ inline int cubed(int root) {
    const int base = 1 << 14;
    return root <= 3390 ? root * 108 / 841 - base * 16 / 116 * 108 / 841 : root * root / base * root / base;
}

__global__ void from_lab(const int64 *__restrict__ first_blocks, const Pixels *__restrict__ images, int samples,
                         const int32 *__restrict__ matrix, const int32 *__restrict__ lightness,
                         const int32 *__restrict__ bytes) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    int64 pixel = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (pixel >= images[sample].count) return;
    const uint8 *source = reinterpret_cast<const uint8 *>(images[sample].source) + 3 * pixel;
    uint8 *target = reinterpret_cast<uint8 *>(images[sample].target) + 3 * pixel;
    const int base = 1 << 14;
    int y = lightness[2 * source[0]], root = lightness[2 * source[0] + 1];
    // a / 500 and b / 200, less their middles.
    int across = ((5 * source[1] * 53687 + (1 << 7)) >> 13) - 128 * base / 500;
    int along = ((source[2] * 41943 + (1 << 4)) >> 9) - 128 * base / 200 + 1;
    int x = cubed(root + across), z = cubed(root - along);
    for (int i = 0; i < 3; i++) {
        int linear = descaled(matrix[3 * i] * x + matrix[3 * i + 1] * y + matrix[3 * i + 2] * z, 14);
        target[i] = uint8(bytes[min(max(linear, 0), 4095)]);
    }
}
