// Converts 8-bit RGB to 8-bit CIE L*a*b* and back, with the tables of _lab.py.

__device__ inline int descaled(int value, int bits) { return (value + (1 << (bits - 1))) >> bits; }
__device__ inline uint8 to_byte(int value) { return uint8(min(max(value, 0), 255)); }

// Four pixels with three channels, which are read and written together.
struct Four {
    Pack<uint8, 4> parts[3];

    __device__ void read(const uint8 *source, int pixels) {
        for (int part = 0; part < 3; part++) {
            if (pixels >= 4) parts[part] = read_pack<4>(source + 4 * part);
            else for (int i = 0; i < 4; i++) parts[part].values[i] = 4 * part + i < 3 * pixels ? source[4 * part + i] : 0;
        }
    }
    __device__ void write(uint8 *target, int pixels) const {
        for (int part = 0; part < 3; part++) {
            if (pixels >= 4) write_pack<4>(target + 4 * part, parts[part]);
            else for (int i = 0; i < 4; i++) if (4 * part + i < 3 * pixels) target[4 * part + i] = parts[part].values[i];
        }
    }
    __device__ uint8 &of(int pixel, int channel) { return parts[(3 * pixel + channel) / 4].values[(3 * pixel + channel) % 4]; }
};

__global__ void to_lab(const int64 *__restrict__ first_blocks, const Pixels *__restrict__ images, int samples,
                       const int32 *__restrict__ matrix, const int32 *__restrict__ linear,
                       const int32 *__restrict__ roots) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    int64 first = 4 * ((blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x);
    if (first >= images[sample].pixels) return;
    int pixels = images[sample].pixels - first < 4 ? int(images[sample].pixels - first) : 4;
    Four four;
    four.read(reinterpret_cast<const uint8 *>(images[sample].source) + 3 * first, pixels);
    // L = 255 / 100 * (116 * root - 16), and 128 is added to a and b; sums have 15 fractional bits.
    const int slope = (116 * 255 + 50) / 100, offset = (16 * 255 * (1 << 15) + 50) / 100, middle = 128 * (1 << 15);
    for (int pixel = 0; pixel < 4; pixel++) {
        int red = linear[four.of(pixel, 0)], green = linear[four.of(pixel, 1)], blue = linear[four.of(pixel, 2)], root[3];
        for (int i = 0; i < 3; i++)
            root[i] = roots[descaled(red * matrix[3 * i] + green * matrix[3 * i + 1] + blue * matrix[3 * i + 2], 12)];
        four.of(pixel, 0) = to_byte(descaled(slope * root[1] - offset, 15));
        four.of(pixel, 1) = to_byte(descaled(500 * (root[0] - root[1]) + middle, 15));
        four.of(pixel, 2) = to_byte(descaled(200 * (root[1] - root[2]) + middle, 15));
    }
    four.write(reinterpret_cast<uint8 *>(images[sample].target) + 3 * first, pixels);
}

// Returns the cube of a root, both with 14 fractional bits; for dark colours, the linear part of the definition of L*a*b*.
__device__ inline int cubed(int root) {
    const int base = 1 << 14;
    return root <= 3390 ? root * 108 / 841 - base * 16 / 116 * 108 / 841 : root * root / base * root / base;
}

__global__ void from_lab(const int64 *__restrict__ first_blocks, const Pixels *__restrict__ images, int samples,
                         const int32 *__restrict__ matrix, const int32 *__restrict__ lightness,
                         const int32 *__restrict__ bytes) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    int64 first = 4 * ((blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x);
    if (first >= images[sample].pixels) return;
    int pixels = images[sample].pixels - first < 4 ? int(images[sample].pixels - first) : 4;
    Four four;
    four.read(reinterpret_cast<const uint8 *>(images[sample].source) + 3 * first, pixels);
    const int base = 1 << 14;
    for (int pixel = 0; pixel < 4; pixel++) {
        int light = four.of(pixel, 0), y = lightness[2 * light], root = lightness[2 * light + 1];
        // (a - 128) / 500 and (b - 128) / 200, with 14 fractional bits.
        int across = ((5 * four.of(pixel, 1) * 53687 + (1 << 7)) >> 13) - 128 * base / 500;
        int along = ((four.of(pixel, 2) * 41943 + (1 << 4)) >> 9) - 128 * base / 200 + 1;
        int x = cubed(root + across), z = cubed(root - along);
        for (int i = 0; i < 3; i++) {
            int linear = descaled(matrix[3 * i] * x + matrix[3 * i + 1] * y + matrix[3 * i + 2] * z, 14);
            four.of(pixel, i) = uint8(bytes[min(max(linear, 0), 4095)]);
        }
    }
    four.write(reinterpret_cast<uint8 *>(images[sample].target) + 3 * first, pixels);
}
