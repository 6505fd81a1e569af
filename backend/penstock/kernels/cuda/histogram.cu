// Histogram equalization of planes of bytes, as a whole or in tiles: the first kernel counts values, the second makes tables
// from the counts, and the third looks up each pixel in the tables of the tiles around it.

// VALUES is also the number of threads of a block.
const int COPIES = 8;               // histograms of each channel: neighbouring threads, with similar pixels, count in different ones
const int TOGETHER = 16;            // the number of bytes that are read at once
const int ROW = 4;                  // pixels that a thread looks up, one after the other

// Whether a single tile covers the plane exactly.
__device__ inline bool is_whole(const Plane &p) {
    return p.tiles_y == 1 && p.tiles_x == 1 && p.tile_height == p.height && p.tile_width == p.width;
}
__device__ inline bool is_gapless(const Plane &p) { return p.step == p.channels; }

__global__ void count_values(const int64 *__restrict__ first_blocks, const Plane *__restrict__ planes, int samples) {
    __shared__ uint32 counts[MAX_CHANNELS * VALUES * COPIES];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Plane &p = planes[sample];
    const int channels = p.channels;
    int block = int(blockIdx.x - first_blocks[sample]), tile = block / p.chunks;
    for (int i = threadIdx.x; i < channels * VALUES * COPIES; i += VALUES) counts[i] = 0;
    __syncthreads();
    const uint8 *source = reinterpret_cast<const uint8 *>(p.source);
    uint32 *own = counts + threadIdx.x % COPIES;
    int64 area = int64(p.tile_height) * p.tile_width, begin = int64(block % p.chunks) * CHUNK;
    int64 end = begin + CHUNK < area ? begin + CHUNK : area;
    if (is_whole(p) && is_gapless(p)) {
        int64 bytes = end * channels;
        for (int64 i = begin * channels + TOGETHER * threadIdx.x; i < bytes; i += TOGETHER * VALUES) {
            int channel = int(i % channels);
            Pack<uint8, TOGETHER> some;
            int count = bytes - i < TOGETHER ? int(bytes - i) : TOGETHER;
            if (count == TOGETHER) some = read_pack<TOGETHER>(source + i);
            for (int k = 0; k < TOGETHER; k++) {
                if (k >= count) break;
                uint8 value = count == TOGETHER ? some.values[k] : source[i + k];
                atomicAdd(own + (channel * VALUES + value) * COPIES, 1u);
                channel = channel + 1 == channels ? 0 : channel + 1;
            }
        }
    } else {
        int y0 = tile / p.tiles_x * p.tile_height, x0 = tile % p.tiles_x * p.tile_width;
        for (int64 i = begin + threadIdx.x; i < end; i += VALUES) {
            // Tiles may extend beyond the border.
            Place place = place_of(i, p.tile_width);
            int y = within(y0 + int(place.row), p.height, BORDER_REFLECT_101);
            int x = within(x0 + int(place.column), p.width, BORDER_REFLECT_101);
            const uint8 *pixel = source + (int64(y) * p.width + x) * p.step;
            for (int channel = 0; channel < channels; channel++)
                atomicAdd(own + (channel * VALUES + pixel[channel]) * COPIES, 1u);
        }
    }
    __syncthreads();
    uint32 *target = reinterpret_cast<uint32 *>(p.counts) + int64(block) * channels * VALUES;
    for (int channel = 0; channel < channels; channel++) {
        uint32 count = 0;
        for (int copy = 0; copy < COPIES; copy++)
            count += counts[(channel * VALUES + threadIdx.x) * COPIES + (copy + threadIdx.x) % COPIES];
        target[channel * VALUES + threadIdx.x] = count;
    }
}

// The sum of the values of all threads up to and including this one; all threads of a block must call it.
__device__ inline int running_sum(int value, int *sums) {
    int self = threadIdx.x;
    __syncthreads();
    sums[self] = value;
    __syncthreads();
    for (int distance = 1; distance < VALUES; distance *= 2) {
        int before = self >= distance ? sums[self - distance] : 0;
        __syncthreads();
        sums[self] += before;
        __syncthreads();
    }
    return sums[self];
}

__device__ inline uint8 rounded(float value) { return uint8(fminf(fmaxf(rintf(value), 0.0f), 255.0f)); }

// Each block makes the table of one channel of a tile; each thread makes the entry of one value.
__global__ void make_tables(const int64 *__restrict__ first_blocks, const Plane *__restrict__ planes, int samples) {
    __shared__ int sums[VALUES];
    __shared__ int least;
    int sample = sample_of(first_blocks, samples, blockIdx.x), value = threadIdx.x;
    const Plane &p = planes[sample];
    int64 table = blockIdx.x - first_blocks[sample], tile = table / p.channels, channel = table % p.channels;
    const uint32 *counts = reinterpret_cast<const uint32 *>(p.counts) + (tile * p.chunks * p.channels + channel) * VALUES + value;
    int count = 0;
    for (int chunk = 0; chunk < p.chunks; chunk++) count += int(counts[int64(chunk) * p.channels * VALUES]);
    int area = p.tile_height * p.tile_width;
    uint8 entry;
    if (p.limit < 0) {
        int sum = running_sum(count, sums);
        // The lowest value that occurs is mapped to 0; its thread is the only one with a count and no lower counts.
        if (count && sum == count) least = count;
        __syncthreads();
        entry = least == area ? uint8(value) : rounded(float(sum - least) * (255.0f / float(area - least)));
    } else {
        if (p.limit > 0) {
            // The counts above the limit are distributed evenly over all values, and the remainder over values at equal distances.
            running_sum(max(count - p.limit, 0), sums);
            int excess = sums[VALUES - 1], rest = excess % VALUES;
            count = min(count, p.limit) + excess / VALUES;
            if (rest) {
                int distance = max(VALUES / rest, 1);
                if (value % distance == 0 && value / distance < rest) count++;
            }
        }
        entry = rounded(float(running_sum(count, sums)) * (255.0f / float(area)));
    }
    reinterpret_cast<uint8 *>(p.tables)[table * VALUES + value] = entry;
}

// Looks up ROW pixels; each result is interpolated between the tables of the tiles around the pixel.
__device__ inline void look_up_tiled(const Plane &p, const uint8 *source, uint8 *target, int64 pixel) {
    Place place = place_of(pixel, p.width);
    const float per_height = 1.0f / float(p.tile_height), per_width = 1.0f / float(p.tile_width);
    const int64 column_step = int64(p.channels) * VALUES, row_step = column_step * p.tiles_x;
    for (int k = 0; k < ROW && pixel + k < p.pixels; k++) {
        float y = float(place.row) * per_height - 0.5f, x = float(place.column) * per_width - 0.5f;
        int upper = int(floorf(y)), left = int(floorf(x));
        float fy = y - float(upper), fx = x - float(left);
        int64 rows[2] = {max(upper, 0) * row_step, min(upper + 1, p.tiles_y - 1) * row_step};
        int64 columns[2] = {max(left, 0) * column_step, min(left + 1, p.tiles_x - 1) * column_step};
        for (int channel = 0; channel < p.channels; channel++) {
            int64 offset = (pixel + k) * p.step + channel;
            const uint8 *tables = reinterpret_cast<const uint8 *>(p.tables) + channel * VALUES + source[offset];
            float lines[2];
            for (int i = 0; i < 2; i++) {
                const uint8 *line = tables + rows[i];
                lines[i] = float(line[columns[0]]) * (1.0f - fx) + float(line[columns[1]]) * fx;
            }
            target[offset] = rounded(lines[0] * (1.0f - fy) + lines[1] * fy);
        }
        if (++place.column == p.width) place = {place.row + 1, 0};
    }
}

__global__ void look_up(const int64 *__restrict__ first_blocks, const Plane *__restrict__ planes, int samples) {
    __shared__ uint8 tables[MAX_CHANNELS * VALUES];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Plane p = planes[sample];
    const int channels = p.channels;
    const uint8 *source = reinterpret_cast<const uint8 *>(p.source);
    uint8 *target = reinterpret_cast<uint8 *>(p.target);
    int64 begin = (blockIdx.x - first_blocks[sample]) * SPAN, end = begin + SPAN < p.pixels ? begin + SPAN : p.pixels;
    bool single = p.tiles_y == 1 && p.tiles_x == 1;
    if (single)
        for (int c = 0; c < channels; c++)
            tables[c * VALUES + threadIdx.x] = reinterpret_cast<const uint8 *>(p.tables)[c * VALUES + threadIdx.x];
    __syncthreads();
    if (!single) {
        for (int64 pixel = begin + ROW * threadIdx.x; pixel < end; pixel += ROW * VALUES) look_up_tiled(p, source, target, pixel);
        return;
    }
    if (!is_gapless(p)) {
        for (int64 pixel = begin + threadIdx.x; pixel < end; pixel += VALUES)
            for (int c = 0; c < channels; c++)
                target[pixel * p.step + c] = tables[c * VALUES + source[pixel * p.step + c]];
        return;
    }
    int64 bytes = end * channels;
    for (int64 i = begin * channels + TOGETHER * threadIdx.x; i < bytes; i += TOGETHER * VALUES) {
        int channel = int(i % channels);
        bool all = i + TOGETHER <= bytes;
        Pack<uint8, TOGETHER> some;
        if (all) some = read_pack<TOGETHER>(source + i);
        for (int k = 0; k < TOGETHER; k++) {
            if (all) some.values[k] = tables[channel * VALUES + some.values[k]];
            else if (i + k < bytes) target[i + k] = tables[channel * VALUES + source[i + k]];
            channel = channel + 1 == channels ? 0 : channel + 1;
        }
        if (all) write_pack<TOGETHER>(target + i, some);
    }
}
