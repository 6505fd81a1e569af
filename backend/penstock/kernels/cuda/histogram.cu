// Equalization of histograms, of planes of bytes as a whole or of their tiles: values are counted, tables are made of the
// counts, and each pixel becomes what the tables of the tiles around it say.

struct Plane {
    uint64 source, target;          // of the plane's first pixel
    uint64 counts, tables;          // 256 for each tile
    int64 pixels;
    int32 height, width, step;      // step: from pixel to pixel
    int32 tiles_y, tiles_x, tile_height, tile_width;
    int32 chunks;                   // blocks that count a tile
    int32 limit;                    // how often a value is counted at most; 0: as it is; -1: the whole plane's rules
    int32 padding;
};

const int VALUES = 256;             // also the number of a block's threads
const int CHUNK = 16 * VALUES;      // pixels that a block counts

__global__ void count_values(const int64 *__restrict__ first_blocks, const Plane *__restrict__ planes, int samples) {
    __shared__ uint32 counts[VALUES];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Plane &p = planes[sample];
    int block = int(blockIdx.x - first_blocks[sample]), tile = block / p.chunks;
    counts[threadIdx.x] = 0;
    __syncthreads();
    const uint8 *source = reinterpret_cast<const uint8 *>(p.source);
    int y0 = tile / p.tiles_x * p.tile_height, x0 = tile % p.tiles_x * p.tile_width;
    int64 area = int64(p.tile_height) * p.tile_width, begin = int64(block % p.chunks) * CHUNK;
    int64 end = begin + CHUNK < area ? begin + CHUNK : area;
    for (int64 i = begin + threadIdx.x; i < end; i += VALUES) {
        // Tiles may reach beyond the border.
        Place place = place_of(i, p.tile_width);
        int y = within(y0 + int(place.row), p.height, BORDER_REFLECT_101);
        int x = within(x0 + int(place.column), p.width, BORDER_REFLECT_101);
        atomicAdd(counts + source[(int64(y) * p.width + x) * p.step], 1u);
    }
    __syncthreads();
    uint32 count = counts[threadIdx.x];
    if (count) atomicAdd(reinterpret_cast<uint32 *>(p.counts) + int64(tile) * VALUES + threadIdx.x, count);
}

// The sum of the values of all threads up to this one; all threads of a block must come here.
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

// A block makes a tile's table, a thread each value's entry.
__global__ void make_tables(const int64 *__restrict__ first_blocks, const Plane *__restrict__ planes, int samples) {
    __shared__ int sums[VALUES];
    __shared__ int least;
    int sample = sample_of(first_blocks, samples, blockIdx.x), value = threadIdx.x;
    const Plane &p = planes[sample];
    int64 tile = blockIdx.x - first_blocks[sample];
    int count = int(reinterpret_cast<const uint32 *>(p.counts)[tile * VALUES + value]);
    int area = p.tile_height * p.tile_width;
    uint8 entry;
    if (p.limit < 0) {
        int sum = running_sum(count, sums);
        // The least value of all becomes 0; its thread is the only one that counts and has nothing below.
        if (count && sum == count) least = count;
        __syncthreads();
        entry = least == area ? uint8(value) : rounded(float(sum - least) * (255.0f / float(area - least)));
    } else {
        if (p.limit > 0) {
            // What is beyond the limit is spread over all values, what then remains over some at equal distances.
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
    reinterpret_cast<uint8 *>(p.tables)[tile * VALUES + value] = entry;
}

__global__ void look_up(const int64 *__restrict__ first_blocks, const Plane *__restrict__ planes, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Plane &p = planes[sample];
    int64 pixel = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (pixel >= p.pixels) return;
    int64 offset = pixel * p.step;
    const uint8 *tables = reinterpret_cast<const uint8 *>(p.tables) + reinterpret_cast<const uint8 *>(p.source)[offset];
    uint8 *target = reinterpret_cast<uint8 *>(p.target) + offset;
    if (p.tiles_y == 1 && p.tiles_x == 1) {
        *target = *tables;
        return;
    }
    Place place = place_of(pixel, p.width);
    float y = float(place.row) * (1.0f / float(p.tile_height)) - 0.5f, x = float(place.column) * (1.0f / float(p.tile_width)) - 0.5f;
    int upper = int(floorf(y)), left = int(floorf(x));
    float fy = y - float(upper), fx = x - float(left);
    int rows[2] = {max(upper, 0), min(upper + 1, p.tiles_y - 1)}, columns[2] = {max(left, 0), min(left + 1, p.tiles_x - 1)};
    float lines[2];
    for (int i = 0; i < 2; i++) {
        const uint8 *line = tables + int64(rows[i]) * p.tiles_x * VALUES;
        lines[i] = float(line[int64(columns[0]) * VALUES]) * (1.0f - fx) + float(line[int64(columns[1]) * VALUES]) * fx;
    }
    *target = rounded(lines[0] * (1.0f - fy) + lines[1] * fy);
}
