// Distorts RGB images like encoding to JPEG and decoding: runs only the lossy steps, in the integer arithmetic of baseline
// codecs, so that the results are the same as theirs. Chroma has half the resolution in both directions.
//
// The transform is that of Loeffler, Ligtenberg and Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications",
// 1989, with constants of 13 bits.

const int PITCH = SIDE + 1;         // distance between rows in shared memory, chosen to avoid bank conflicts
const int BITS = 13, MORE = 2;      // fractional bits of constants, and of values between the two passes

__device__ inline int descaled(int value, int bits) { return (value + (1 << (bits - 1))) >> bits; }
__device__ inline int byte_of(int value) { return min(max(value, 0), 255); }

// The odd part of the transform, which the forward and the inverse transform share.
__device__ inline void rotate(int &a, int &b, int &c, int &d) {
    int z1 = (a + d) * -7373, z2 = (b + c) * -20995, z3 = (a + c) * -16069, z4 = (b + d) * -3196;
    int z5 = (a + c + b + d) * 9633;
    z3 += z5;
    z4 += z5;
    a = a * 2446 + z1 + z3;
    b = b * 16819 + z2 + z4;
    c = c * 25172 + z2 + z3;
    d = d * 12299 + z1 + z4;
}

// Transforms eight values to coefficients; `first`: whether this is the first of two passes, whose results have MORE fractional
// bits.
__device__ inline void transform(int *v, bool first) {
    int s0 = v[0] + v[7], s1 = v[1] + v[6], s2 = v[2] + v[5], s3 = v[3] + v[4];
    int d0 = v[0] - v[7], d1 = v[1] - v[6], d2 = v[2] - v[5], d3 = v[3] - v[4];
    int even = s0 + s3, odd = s1 + s2, p = s0 - s3, q = s1 - s2, z = (p + q) * 4433;
    int bits = first ? BITS - MORE : BITS + MORE;
    v[0] = first ? (even + odd) * (1 << MORE) : descaled(even + odd, MORE);
    v[4] = first ? (even - odd) * (1 << MORE) : descaled(even - odd, MORE);
    v[2] = descaled(z + p * 6270, bits);
    v[6] = descaled(z - q * 15137, bits);
    rotate(d3, d2, d1, d0);
    v[7] = descaled(d3, bits);
    v[5] = descaled(d2, bits);
    v[3] = descaled(d1, bits);
    v[1] = descaled(d0, bits);
}

// Transforms eight coefficients to values; `bits`: the number of fractional bits to round off.
__device__ inline void transform_back(int *v, int bits) {
    int z = (v[2] + v[6]) * 4433, p = z - v[6] * 15137, q = z + v[2] * 6270;
    int sum = (v[0] + v[4]) * (1 << BITS), difference = (v[0] - v[4]) * (1 << BITS);
    int e0 = sum + q, e1 = difference + p, e2 = difference - p, e3 = sum - q;
    int a = v[7], b = v[5], c = v[3], d = v[1];
    rotate(a, b, c, d);
    v[0] = descaled(e0 + d, bits);
    v[7] = descaled(e0 - d, bits);
    v[1] = descaled(e1 + c, bits);
    v[6] = descaled(e1 - c, bits);
    v[2] = descaled(e2 + b, bits);
    v[5] = descaled(e2 - b, bits);
    v[3] = descaled(e3 + a, bits);
    v[4] = descaled(e3 - a, bits);
}

// Returns Y, Cb or Cr (`which`: 0, 1 or 2) of a colour.
__device__ inline int component(int which, int r, int g, int b) {
    const int middle = (128 << 16) + (1 << 15) - 1;
    if (which == 0) return (19595 * r + 38470 * g + 7471 * b + (1 << 15)) >> 16;
    if (which == 1) return (-11059 * r - 21709 * g + 32768 * b + middle) >> 16;
    return (32768 * r - 27439 * g - 5329 * b + middle) >> 16;
}

// Returns Y, Cb or Cr of a pixel or, if it lies right of or below the image, of the nearest pixel.
__device__ inline int component(const Image &p, int which, int y, int x) {
    y = min(y, p.height - 1);
    x = min(x, p.width - 1);
    const uint8 *rgb = reinterpret_cast<const uint8 *>(p.source) + (int64(y) * p.width + x) * 3;
    return component(which, rgb[0], rgb[1], rgb[2]);
}

// Writes Y, Cb or Cr of eight adjacent pixels of a row to `found`; none of the pixels may lie right of the image.
__device__ inline void components(const Image &p, int which, int y, int x, int *found) {
    const uint8 *source = reinterpret_cast<const uint8 *>(p.source) + (int64(min(y, p.height - 1)) * p.width + x) * 3;
    Pack<uint8, SIDE> parts[3];
    for (int i = 0; i < 3; i++) parts[i] = read_pack<SIDE>(source + SIDE * i);
    for (int i = 0; i < SIDE; i++) {
        int rgb[3];
        for (int c = 0; c < 3; c++) rgb[c] = parts[(3 * i + c) / SIDE].values[(3 * i + c) % SIDE];
        found[i] = component(which, rgb[0], rgb[1], rgb[2]);
    }
}

// Returns the value to encode at (y, x): Y of a pixel, or the mean of Cb or Cr of 2x2 pixels.
__device__ inline int sampled(const Image &p, int which, int y, int x) {
    if (which == 0) return component(p, 0, y, x);
    // Below the image, the last row of averaged chroma is repeated; right of it, pixels are repeated before chroma is averaged.
    y = 2 * min(y, (p.height + 1) / 2 - 1);
    x *= 2;
    int sum = component(p, which, y, x) + component(p, which, y, x + 1);
    sum += component(p, which, y + 1, x) + component(p, which, y + 1, x + 1);
    return (sum + 1 + (x >> 1 & 1)) >> 2;
}

// Writes the values to encode in a row of a block to `v`.
__device__ inline void sample_line(const Image &p, int which, int y, int x, int *v) {
    if (which == 0 && x + SIDE <= p.width) {
        components(p, 0, y, x, v);
    } else if (which && 2 * (x + SIDE) <= p.width) {
        y = 2 * min(y, (p.height + 1) / 2 - 1);
        for (int half = 0; half < 2; half++) {
            int upper[SIDE], lower[SIDE];
            components(p, which, y, 2 * x + SIDE * half, upper);
            components(p, which, y + 1, 2 * x + SIDE * half, lower);
            for (int i = 0; i < SIDE / 2; i++) {
                int sum = upper[2 * i] + upper[2 * i + 1] + lower[2 * i] + lower[2 * i + 1];
                v[SIDE / 2 * half + i] = (sum + 1 + (i & 1)) >> 2;
            }
        }
    } else {
        for (int i = 0; i < SIDE; i++) v[i] = sampled(p, which, y, x + i);
    }
}

__global__ void quantize(const int64 *__restrict__ first_blocks, const Image *__restrict__ images, int samples) {
    __shared__ int values[TOGETHER][SIDE * PITCH];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Image &p = images[sample];
    int64 luma = int64(p.blocks_y) * p.blocks_x, chroma = int64(p.chroma_y) * p.chroma_x;
    int64 number = (blockIdx.x - first_blocks[sample]) * TOGETHER + threadIdx.x / SIDE;
    // No thread returns early, as all must reach __syncthreads.
    bool used = number < luma + 2 * chroma;
    int which = number < luma ? 0 : number < luma + chroma ? 1 : 2, line = threadIdx.x % SIDE;
    int *block = values[threadIdx.x / SIDE], v[SIDE];
    int columns = which ? p.chroma_x : p.blocks_x;
    int64 before = which == 0 ? 0 : luma + (which - 1) * chroma;
    Place place = place_of(used ? number - before : 0, columns);
    if (used) {
        int y = int(place.row) * SIDE + line, x = int(place.column) * SIDE;
        sample_line(p, which, y, x, v);
        for (int i = 0; i < SIDE; i++) v[i] -= 128;
        transform(v, true);
        for (int i = 0; i < SIDE; i++) block[line * PITCH + i] = v[i];
    }
    __syncthreads();
    if (used) {
        for (int i = 0; i < SIDE; i++) v[i] = block[i * PITCH + line];
        transform(v, false);
        for (int i = 0; i < SIDE; i++) {
            // The transform makes coefficients eight times too large.
            int step = p.steps[((which > 0) * SIDE + i) * SIDE + line];
            int level = int(uint32(abs(v[i]) + 4 * step) / uint32(8 * step));
            v[i] = (v[i] < 0 ? -level : level) * step;
        }
        transform_back(v, BITS - MORE);
        for (int i = 0; i < SIDE; i++) block[i * PITCH + line] = v[i];
    }
    __syncthreads();
    if (used) {
        for (int i = 0; i < SIDE; i++) v[i] = block[line * PITCH + i];
        transform_back(v, BITS + MORE + 3);
        uint8 *plane = reinterpret_cast<uint8 *>(p.planes) + before * SIDE * SIDE;
        uint8 *target = plane + ((place.row * SIDE + line) * columns + place.column) * SIDE;
        Pack<uint8, SIDE> bytes;
        for (int i = 0; i < SIDE; i++) bytes.values[i] = uint8(byte_of(v[i] + 128));
        write_pack<SIDE>(target, bytes);
    }
}

// Upsamples chroma for ROW pixels of a row, the first of which is in an even column: in each direction, three quarters of the
// nearest value plus a quarter of the second nearest.
__device__ inline void enlarge(const Image &p, const uint8 *plane, int y, int x, int *chroma) {
    int height = (p.height + 1) / 2, width = (p.width + 1) / 2, pitch = p.chroma_x * SIDE;
    int row = y / 2, column = x / 2;
    const uint8 *near = plane + int64(row) * pitch;
    if (width <= 2) {
        for (int i = 0; i < ROW; i++) chroma[i] = near[min((x + i) / 2, width - 1)];
        return;
    }
    const uint8 *far = plane + int64(min(max(row + (y & 1 ? 1 : -1), 0), height - 1)) * pitch;
    int mixed[ROW];
    for (int i = 0; i < ROW; i++) {
        int k = min(max(column - 1 + i, 0), width - 1);
        mixed[i] = near[k] * 3 + far[k];
    }
    for (int i = 0; i < ROW; i++) {
        int own = 1 + i / 2;
        chroma[i] = (mixed[own] * 3 + mixed[i & 1 ? own + 1 : own - 1] + (i & 1 ? 7 : 8)) >> 4;
    }
}

__global__ void to_rgb(const int64 *__restrict__ first_blocks, const Image *__restrict__ images, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Image &p = images[sample];
    int64 row = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (row >= p.rows) return;
    Place place = place_of(row, (p.width + ROW - 1) / ROW);
    int y = int(place.row), x = int(place.column) * ROW, blues[ROW], reds[ROW];
    const uint8 *luma = reinterpret_cast<const uint8 *>(p.planes);
    const uint8 *blue = luma + int64(p.blocks_y) * p.blocks_x * SIDE * SIDE;
    const uint8 *red = blue + int64(p.chroma_y) * p.chroma_x * SIDE * SIDE;
    // Rows of planes are padded to whole blocks, so ROW values can be read even at the right edge of the image.
    Pack<uint8, ROW> lights = read_pack<ROW>(luma + int64(y) * p.blocks_x * SIDE + x);
    enlarge(p, blue, y, x, blues);
    enlarge(p, red, y, x, reds);
    Pack<uint8, ROW> rgb[3];
    for (int i = 0; i < ROW; i++) {
        int light = lights.values[i], cb = blues[i] - 128, cr = reds[i] - 128;
        int values[3] = {light + descaled(91881 * cr, 16), light + descaled(-22554 * cb - 46802 * cr, 16), light + descaled(116130 * cb, 16)};
        for (int c = 0; c < 3; c++) rgb[(3 * i + c) / ROW].values[(3 * i + c) % ROW] = uint8(byte_of(values[c]));
    }
    uint8 *target = reinterpret_cast<uint8 *>(p.target) + (int64(y) * p.width + x) * 3;
    for (int part = 0; part < 3; part++) {
        if (x + ROW <= p.width) write_pack<ROW>(target + ROW * part, rgb[part]);
        else
            for (int k = 0; k < ROW; k++)
                if (ROW * part + k < 3 * (p.width - x)) target[ROW * part + k] = rgb[part].values[k];
    }
}
