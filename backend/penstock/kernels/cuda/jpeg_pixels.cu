// Converts the coefficients of JPEGs to pixels as kernels/cpu/jpeg/transform.py and kernels/cpu/jpeg/colour.py do, for all chroma
// subsamplings. Which chroma samples are smoothed, and how, follows ITU-T T.871 and the behaviour of libjpeg-turbo 3.

const int BLOCK = SIDE * SIDE, BLOCKS_AT_ONCE = THREADS / SIDE;
// The distances from row to row and from block to block in shared memory; with these, no two threads of a warp use the same bank.
const int PITCH = 9, BLOCK_PITCH = SIDE * PITCH;

// Transforms eight numbers in place; results are shifted right by `shift` bits and rounded.
__device__ inline void transform(int *c, int shift, int half) {
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
        c[i] = (even[i] + odd[3 - i]) >> shift;
        c[7 - i] = (even[i] - odd[3 - i]) >> shift;
    }
}

__device__ inline uint8 to_byte(int value) { return uint8(min(max(value, 0), 255)); }

// Eight threads compute the samples of one block: each reads a row of coefficients, transforms a column, and then transforms a row of the
// results.
__global__ void transform_blocks(const int64 *__restrict__ first_blocks, const JpegImage *__restrict__ images,
                                 int samples) {
    __shared__ int numbers[BLOCKS_AT_ONCE * BLOCK_PITCH];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const JpegImage &p = images[sample];
    int number = int(blockIdx.x - first_blocks[sample]) * BLOCKS_AT_ONCE + int(threadIdx.x) / SIDE;
    int line = threadIdx.x % SIDE, values[SIDE];
    int *own = numbers + threadIdx.x / SIDE * BLOCK_PITCH;
    int blocks = p.made, across = p.units_across;
    bool is_one = number < int(p.units_down) * across * blocks;
    int unit = number / blocks, place = number % blocks, row = unit / across, column = unit % across;
    int part = place < p.parts[1].first ? 0 : place < p.parts[2].first ? 1 : 2;
    if (is_one) {
        int64 block = ((p.unit_top + row) * p.row_of_units + p.unit_left + column) * p.unit_blocks + place;
        Pack<int16, SIDE> read = read_pack<SIDE>(reinterpret_cast<const int16 *>(p.source) + block * BLOCK + line * SIDE);
        const uint16 *quantizers = reinterpret_cast<const uint16 *>(p.quantizers) + part * BLOCK;
        Pack<uint16, SIDE> factors = read_pack<SIDE>(quantizers + line * SIDE);
        for (int i = 0; i < SIDE; i++) own[line * PITCH + i] = int(read.values[i]) * int(factors.values[i]);
    }
    __syncthreads();
    for (int i = 0; i < SIDE; i++) values[i] = own[i * PITCH + line];
    transform(values, FIRST_SHIFT, 1 << (FIRST_SHIFT - 1));
    for (int i = 0; i < SIDE; i++) own[i * PITCH + line] = values[i];
    __syncthreads();
    if (!is_one) return;
    for (int i = 0; i < SIDE; i++) values[i] = own[line * PITCH + i];
    transform(values, SECOND_SHIFT, (1 << (SECOND_SHIFT - 1)) + (MIDDLE << SECOND_SHIFT));
    Pack<uint8, SIDE> pack;
    for (int i = 0; i < SIDE; i++) pack.values[i] = to_byte(values[i]);
    const Part &c = p.parts[part];
    int part_across = c.across, inside = place - int(c.first);
    int y = (row * int(c.down) + inside / part_across) * SIDE + line;
    int x = (column * part_across + inside % part_across) * SIDE;
    write_pack<SIDE>(reinterpret_cast<uint8 *>(p.planes) + c.plane + int64(y) * c.stride + x, pack);
}

const int STORE = 16;
typedef Pack<uint8, STORE> Store;

// The samples of a component at eight neighbouring pixels; the column of the first is a multiple of eight.
__device__ inline void read_samples(const Part &c, const uint8 *planes, int y, int x, int *values) {
    int repeat_across = c.repeat_across, repeat_down = c.repeat_down, left = c.left, top = c.top;
    int near = repeat_down == 2 ? y / 2 : repeat_down == 1 ? y : y / repeat_down;
    const uint8 *row = planes + c.plane + (near - top) * c.stride;
    if (!(c.smooth_across | c.smooth_down)) {
        if (repeat_across == 1) {
            Pack<uint8, GROUP> pack = read_pack<GROUP>(row + x - left);
            for (int i = 0; i < GROUP; i++) values[i] = pack.values[i];
        } else if (repeat_across == 2) {
            Pack<uint8, 4> pack = read_pack<4>(row + x / 2 - left);
            for (int i = 0; i < GROUP; i++) values[i] = pack.values[i / 2];
        } else {
            for (int i = 0; i < GROUP; i++) values[i] = row[(x + i) / repeat_across - left];
        }
        return;
    }
    // In each smoothed direction: three quarters of the nearest sample plus a quarter of the next, rounded alternately up and down.
    const uint8 *other = row;
    if (c.smooth_down) {
        int far = min(max(near + (y % 2 ? 1 : -1), top), int(c.bottom) - 1);
        other = planes + c.plane + (far - top) * c.stride;
    }
    if (!c.smooth_across) {
        Pack<uint8, GROUP> nears = read_pack<GROUP>(row + x - left), fars = read_pack<GROUP>(other + x - left);
        for (int i = 0; i < GROUP; i++) values[i] = (3 * nears.values[i] + fars.values[i] + 1 + y % 2) >> 2;
        return;
    }
    int place = x / 2 - left, last = int(c.right) - 1 - left;
    int before = max(place - 1, 0), behind = min(place + 4, last);
    Pack<uint8, 4> nears = read_pack<4>(row + place), fars = read_pack<4>(other + place);
    int weight = c.smooth_down ? 3 : 1, of_far = c.smooth_down ? 1 : 0, sums[6];
    sums[0] = weight * row[before] + of_far * other[before];
    for (int i = 0; i < 4; i++)
        sums[1 + i] = place + i > last ? sums[i] : weight * nears.values[i] + of_far * fars.values[i];
    sums[5] = weight * row[behind] + of_far * other[behind];
    int shift = c.smooth_down ? 4 : 2, even = c.smooth_down ? 8 : 1, odd = c.smooth_down ? 7 : 2;
    for (int i = 0; i < 4; i++) {
        values[2 * i] = (3 * sums[1 + i] + sums[i] + even) >> shift;
        values[2 * i + 1] = (3 * sums[1 + i] + sums[2 + i] + odd) >> shift;
    }
}

// `value * factor / 65536`, rounded.
__device__ inline int scaled(int value, int factor) { return (value * factor + 32768) >> 16; }

// Each thread computes eight neighbouring pixels, or those of the eight that are in the window. A block's pixels, which are contiguous in
// the target, are collected in shared memory first: rows may begin at any address, but several bytes can only be written at once to an
// aligned one.
__global__ void convert_pixels(const int64 *__restrict__ first_blocks, const JpegImage *__restrict__ images, int samples,
                               int reverse) {
    __shared__ Store stores[THREADS * GROUP * 3 / STORE + 1];
    uint8 *made = stores[0].values;
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const JpegImage &p = images[sample];
    int left = p.left, width = p.width, channels = p.channels, first_group = left / GROUP;
    uint32 across = (left + width + GROUP - 1) / GROUP - first_group, groups = across * uint32(p.height);
    uint32 begin = uint32(blockIdx.x - first_blocks[sample]) * THREADS;
    auto pixels_before = [&](uint32 group) {
        uint32 row = group / across, column = group % across;
        return int64(row) * width + (column ? int(first_group + column) * GROUP - left : 0);
    };
    uint32 next = begin + THREADS < groups ? begin + THREADS : groups;
    int64 start = pixels_before(begin) * channels, end = pixels_before(next) * channels;
    uint8 *target = reinterpret_cast<uint8 *>(p.target) + start;
    int shift = int(uint64(target) % STORE), count = int(end - start);

    uint32 group = begin + threadIdx.x;
    if (group < groups) {
        int y = int(p.top) + int(group / across), x = (first_group + int(group % across)) * GROUP;
        int skipped = max(left - x, 0), until = min(left + width - x, GROUP);
        const uint8 *planes = reinterpret_cast<const uint8 *>(p.planes);
        uint8 *at = made + shift + int(pixels_before(group) * channels - start), pixels[3 * GROUP];
        int luma[GROUP], blue[GROUP], red[GROUP];
        read_samples(p.parts[0], planes, y, x, luma);
        if (channels == 1) {
            for (int i = 0; i < GROUP; i++)
                if (skipped <= i && i < until) at[i - skipped] = uint8(luma[i]);
        } else {
            if (p.components == 1) {
                for (int i = 0; i < GROUP; i++) blue[i] = red[i] = 128;
            } else {
                read_samples(p.parts[1], planes, y, x, blue);
                read_samples(p.parts[2], planes, y, x, red);
            }
            for (int i = 0; i < GROUP; i++) {
                int b = blue[i] - 128, r = red[i] - 128;
                uint8 reds = to_byte(luma[i] + r + scaled(r, RED_OF_CR));
                uint8 blues = to_byte(luma[i] + 2 * b + scaled(b, BLUE_OF_CB));
                pixels[3 * i] = reverse ? blues : reds;
                pixels[3 * i + 1] = to_byte(luma[i] - r + ((b * GREEN_OF_CB + r * GREEN_OF_CR + 32768) >> 16));
                pixels[3 * i + 2] = reverse ? reds : blues;
            }
            if (skipped == 0 && until == GROUP) {
                write_pixels<GROUP, 3>(at, pixels);
            } else {
                for (int i = 0; i < GROUP; i++)
                    for (int channel = 0; channel < 3; channel++)
                        if (skipped <= i && i < until) at[3 * (i - skipped) + channel] = pixels[3 * i + channel];
            }
        }
    }
    __syncthreads();
    for (int i = int(threadIdx.x) * STORE; i < shift + count; i += THREADS * STORE) {
        uint8 *at = target - shift + i;
        if (i >= shift && i + STORE <= shift + count) {
            write_pack<STORE>(at, stores[i / STORE]);
        } else {
            for (int k = max(shift - i, 0); k < min(shift + count - i, STORE); k++) at[k] = made[i + k];
        }
    }
}
