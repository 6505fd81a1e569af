// From the coefficients of JPEGs whose chroma is halved in both directions to pixels: as kernels/cpu/jpeg/transform.py and
// kernels/cpu/jpeg/colour.py do.

const int BLOCK = 64;

// The transform of eight numbers, `step` apart, shifted and rounded.
__device__ inline void transform(const int *in, int step, int *out, int out_step, int shift, int half) {
    int c[8];
    for (int i = 0; i < 8; i++) c[i] = in[i * step];
    int t0 = (c[0] + c[4]) * (1 << FIXED_BITS) + half, t1 = (c[0] - c[4]) * (1 << FIXED_BITS) + half;
    int t2 = c[2] * C0541 + c[6] * C1306, t3 = c[2] * C1307 + c[6] * C0541;
    int even[4] = {t0 + t3, t1 + t2, t1 - t2, t0 - t3};
    int odd[4] = {
        c[1] * O00 + c[3] * O01 + c[5] * O02 + c[7] * O03,
        c[1] * O10 + c[3] * O11 + c[5] * O12 + c[7] * O13,
        c[1] * O20 + c[3] * O21 + c[5] * O22 + c[7] * O23,
        c[1] * O30 + c[3] * O31 + c[5] * O32 + c[7] * O33,
    };
    for (int i = 0; i < 4; i++) {
        out[i * out_step] = (even[i] + odd[3 - i]) >> shift;
        out[(7 - i) * out_step] = (even[i] - odd[3 - i]) >> shift;
    }
}

__device__ inline uint8 to_byte(int value) { return uint8(min(max(value, 0), 255)); }

// One thread makes the samples of one block.
__global__ void transform_blocks(const int64 *__restrict__ first_blocks, const JpegImage *__restrict__ images,
                                 int samples, const uint16 *__restrict__ quantizers) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const JpegImage p = images[sample];
    int number = int(blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    int units = p.units_across * p.units_down;
    if (number >= units * BLOCKS) return;
    int unit = number / BLOCKS, place = number % BLOCKS, row = unit / p.units_across, column = unit % p.units_across;
    int part = place < 4 ? 0 : place - 3;
    const int16 *coefficients = reinterpret_cast<const int16 *>(p.source) + int64(number) * BLOCK;
    const uint16 *own = quantizers + p.quantizers + part * BLOCK;
    int values[BLOCK], rows[BLOCK];
#pragma unroll
    for (int i = 0; i < BLOCK; i += 8) {
        Pack<int16, 8> pack = read_pack<8>(coefficients + i);
        for (int k = 0; k < 8; k++) values[i + k] = int(pack.values[k]) * int(own[i + k]);
    }
#pragma unroll
    for (int k = 0; k < 8; k++) transform(values + k, 8, rows + k, 8, FIRST_SHIFT, 1 << (FIRST_SHIFT - 1));
    int half = (1 << (SECOND_SHIFT - 1)) + (MIDDLE << SECOND_SHIFT);
#pragma unroll
    for (int k = 0; k < 8; k++) transform(rows + 8 * k, 1, values + 8 * k, 1, SECOND_SHIFT, half);
    int chroma_stride = 8 * p.units_across, stride = 2 * chroma_stride;
    uint8 *plane = reinterpret_cast<uint8 *>(p.planes);
    if (part == 0) {
        plane += int64(16 * row + 8 * (place / 2)) * stride + 16 * column + 8 * (place % 2);
    } else {
        plane += int64(units) * (256 + 64 * (part - 1)) + int64(8 * row) * chroma_stride + 8 * column;
        stride = chroma_stride;
    }
#pragma unroll
    for (int y = 0; y < 8; y++) {
        Pack<uint8, 8> pack;
        for (int x = 0; x < 8; x++) pack.values[x] = to_byte(values[8 * y + x]);
        write_pack<8>(plane + y * stride, pack);
    }
}

// Smooth chroma: three quarters of the nearest sample and a quarter of the next in each direction, rounded by turns.
__device__ inline int smoothed(const uint8 *near, const uint8 *far, int place, int next, int rounding) {
    return (3 * (3 * near[place] + far[place]) + 3 * near[next] + far[next] + rounding) >> 4;
}

// `value * factor / 65536`, rounded, by halves.
__device__ inline int scaled(int value, int factor) { return ((2 * value * factor >> 16) + 1) >> 1; }

// One thread makes a pixel.
__global__ void convert_pixels(const int64 *__restrict__ first_blocks, const JpegImage *__restrict__ images,
                               int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const JpegImage p = images[sample];
    uint32 pixel = uint32(blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (pixel >= uint32(p.height) * uint32(p.width)) return;
    int y = pixel / uint32(p.width), x = pixel % uint32(p.width);
    int chroma_stride = 8 * p.units_across;
    int64 units = int64(p.units_across) * p.units_down;
    const uint8 *luma = reinterpret_cast<const uint8 *>(p.planes), *blue = luma + 256 * units, *red = blue + 64 * units;
    int near = y / 2, far = min(max(near + (y % 2 ? 1 : -1), 0), (p.height - 1) / 2);
    int place = x / 2, next = min(max(place + (x % 2 ? 1 : -1), 0), (p.width - 1) / 2), rounding = x % 2 ? 7 : 8;
    near *= chroma_stride, far *= chroma_stride;
    int luminance = luma[int64(y) * 2 * chroma_stride + x];
    int b = smoothed(blue + near, blue + far, place, next, rounding) - 128;
    int r = smoothed(red + near, red + far, place, next, rounding) - 128;
    uint8 *target = reinterpret_cast<uint8 *>(p.target) + int64(pixel) * 3;
    target[0] = to_byte(luminance + r + scaled(r, RED_OF_CR));
    target[1] = to_byte(luminance - r + ((b * GREEN_OF_CB + r * GREEN_OF_CR + 32768) >> 16));
    target[2] = to_byte(luminance + 2 * b + scaled(b, BLUE_OF_CB));
}
