// Cuts images into the patches or tiles of a model, with values looked up in tables, as _pieces_cpu.py does.

// Each thread computes one value of the target, so that writes are coalesced.
template <int PATCH, int MERGE, int TEMPORAL, bool CHANNELS_LAST, bool BESIDE>
__global__ void fill_patches(const int64 *__restrict__ first_blocks, const Patching *__restrict__ images, int samples,
                             const float *__restrict__ table) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Patching p = images[sample];
    uint32 element = uint32(blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.elements) return;
    float *target = reinterpret_cast<float *>(p.target);
    uint32 channels = p.channels, size = channels * TEMPORAL * PATCH * PATCH;
    uint32 number = element / size, within = element % size;
    uint32 channel, y, x, frame = 0;
    if (BESIDE) {
        uint32 width = p.patches * PATCH, line = element / width, column = element % width;
        number = column / PATCH;
        x = column % PATCH;
        y = line % PATCH;
        channel = line / PATCH;
        target += (int64(line) * p.total + p.first) * PATCH + column;
    } else {
        target += element;
        if (number >= p.patches) {
            *target = 0.0f;
            return;
        }
        if (CHANNELS_LAST) {
            channel = within % channels;
            x = within / channels % PATCH;
            y = within / channels / PATCH;
        } else {
            x = within % PATCH;
            y = within / PATCH % PATCH;
            frame = within / (PATCH * PATCH) % TEMPORAL;
            channel = within / (PATCH * PATCH * TEMPORAL);
        }
    }
    uint32 columns = p.columns, area = p.rows * columns, place = number % area;
    // Patches are ordered in squares of MERGE x MERGE, and the squares row by row.
    uint32 square = place / (MERGE * MERGE), inside = place % (MERGE * MERGE), squares = columns / MERGE;
    uint32 row = square / squares * MERGE + inside / MERGE, column = square % squares * MERGE + inside % MERGE;
    // The last frame is repeated for missing ones.
    frame = min(number / area * TEMPORAL + frame, uint32(p.frames - 1));
    int64 pixel = frame * p.frame + int64(row * PATCH + y) * p.width + column * PATCH + x;
    uint8 value = reinterpret_cast<const uint8 *>(p.source)[pixel * channels + channel];
    *target = table[(p.several ? channel * 256 : 0) + value];
}

// Each thread computes four adjacent values.
__global__ void fill_tiles(const int64 *__restrict__ first_blocks, const Tiling *__restrict__ images, int samples,
                           const float *__restrict__ table, const float *__restrict__ blank) {
    const int COUNT = 4;
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Tiling p = images[sample];
    uint32 element = (uint32(blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x) * COUNT;
    if (element >= p.elements) return;
    uint32 wide = p.wide, high = p.high, channels = p.channels;
    uint32 line = element / wide, x = element % wide;
    Pack<float, COUNT> values;
    int filled = min(uint32(COUNT), uint32(p.elements) - element);
    for (int k = 0; k < COUNT && k < filled; line++, x = 0) {
        uint32 plane = line / high, tile = plane / channels, channel = plane % channels;
        int row = int(tile / p.columns * high + line % high) - p.top;
        int left = int(tile % p.columns * wide) - p.left;
        bool inside = row >= 0 && row < p.height;
        const uint8 *pixels = reinterpret_cast<const uint8 *>(p.source) + int64(row) * p.width * channels + channel;
        const float *own = table + (p.several ? channel * 256 : 0);
        for (; k < filled && x < wide; k++, x++) {
            int column = left + int(x);
            bool known = inside && column >= 0 && column < p.width;
            values.values[k] = known ? own[pixels[column * int(channels)]] : blank[channel];
        }
    }
    float *target = reinterpret_cast<float *>(p.target) + element;
    if (filled == COUNT)
        write_pack<COUNT>(target, values);
    else
        for (int k = 0; k < filled; k++) target[k] = values.values[k];
}
