// Tiles of images: each thread block reads the part of the source that it needs once, into shared memory.
//
// Arrays are viewed as (planes, height, width, inner). Rows are contiguous: a step along the width is a step of `inner` elements. Each
// block computes one tile of the target.

template <typename T>
struct alignas(4 * sizeof(T)) Four {
    T values[4];
};

// The part of the target that a block computes.
struct Tile {
    int64 plane;
    int y, x, rows, columns;
};

__device__ inline Tile tile_of(const Tiles &p, int64 block) {
    uint32 number = uint32(block), row = number / uint32(p.across), plane = row / uint32(p.down);
    int y = int(row - plane * p.down) * p.rows, x = int(number - row * p.across) * p.columns;
    return {int64(plane), y, x, min(p.rows, p.out_height - y), min(p.columns, p.out_width - x)};
}

// Calls `act(row, lane)` for all rows and lanes; neighbouring threads get neighbouring lanes.
template <typename Act>
__device__ inline void each_place(int rows, int lanes, const Act &act) {
    if (lanes <= 0) return;
    int across = min(lanes, int(blockDim.x)), down = int(blockDim.x) / across, first = int(threadIdx.x) / across;
    if (first >= down) return;
    for (int lane = int(threadIdx.x) % across; lane < lanes; lane += across)
        for (int row = first; row < rows; row += down) act(row, lane);
}

// Converts elements to values in shared memory.
template <typename In>
struct Float {
    typedef float Kept;
    static __device__ float of(In value) { return to_float(value); }
};

// Reads the part of the source that a tile needs, and fills in values beyond the border.
//
// Four elements are read at once if they are aligned, so each row in shared memory is shifted by 0 to 3 elements.
template <typename In, typename As>
__device__ void read_tile(const Tiles &p, const Tile &tile, typename As::Kept outside, typename As::Kept *values,
                          int32 *shifts) {
    typedef typename As::Kept Kept;
    // The number of reads that are in flight at once: one after the other, each would wait for memory.
    const int BATCH = sizeof(In) <= 4 ? 4 : 2;
    const int most = p.rows + p.reach_y, rows = tile.rows + p.reach_y, count = (tile.columns + p.reach_x) * p.inner;
    const int x = tile.x - p.left, first = x * p.inner, extent = p.width * p.inner;
    const In *plane = reinterpret_cast<const In *>(p.source) + tile.plane * p.height * extent;
    auto row_at = [&](int row) { return within(tile.y - p.above + row, p.height, p.border); };
    auto line_at = [&](int y) { return plane + int64(max(y, 0)) * extent + first; };
    auto shift_of = [&](const In *line) { return int(reinterpret_cast<uint64>(line) / sizeof(In) % 4); };
    for (int row = threadIdx.x; row < most; row += blockDim.x) shifts[row] = shift_of(line_at(row_at(row)));

    // Threads divide the groups of four of all rows among themselves; a shifted row may have one group more.
    const int fours = (count + 3 + 3) / 4, step = int(blockDim.x) / fours, rest = int(blockDim.x) % fours;
    int row = int(threadIdx.x) / fours, place = int(threadIdx.x) % fours;
    while (row < rows) {
        Four<In> read[BATCH];
        int32 at[BATCH];  // where the group goes in shared memory, or -1
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            at[i] = -1;
            if (row < rows) {
                const In *line = line_at(row_at(row));
                const int begin = 4 * place - shift_of(line);
                if (first + begin >= 0 && first + begin + 4 <= extent) {
                    read[i] = *reinterpret_cast<const Four<In> *>(line + begin);
                    at[i] = row * p.pitch + 4 * place;
                }
            }
            row += step;
            place += rest;
            if (place >= fours) {
                place -= fours;
                row++;
            }
        }
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            if (at[i] < 0) continue;
            Four<Kept> four;
#pragma unroll
            for (int k = 0; k < 4; k++) four.values[k] = As::of(read[i].values[k]);
            *reinterpret_cast<Four<Kept> *>(values + at[i]) = four;
        }
    }

    // The elements beyond the left and right borders, and up to three next to each border that do not fill a group of four.
    const int left = max(0, min(count, 3 - first)), right = max(left, min(count, extent - first - 3));
    each_place(rows, left + count - right, [&](int row, int lane) {
        const int element = lane < left ? lane : lane - left + right, column = element / p.inner;
        const int y = row_at(row), from = within(x + column, p.width, p.border);
        const In *line = line_at(y);
        values[row * p.pitch + shift_of(line) + element] =
            from < 0 ? outside : As::of((line - first)[int64(from) * p.inner + element - column * p.inner]);
    });
    if (p.border != BORDER_CONSTANT || (tile.y >= p.above && tile.y - p.above + rows <= p.height)) return;
    // Rows above and below the source were read from its first row; replace them by the constant of the border.
    __syncthreads();
    each_place(rows, count, [&](int row, int lane) {
        const int y = row_at(row);
        if (y < 0) values[row * p.pitch + shift_of(line_at(y)) + lane] = outside;
    });
}

template <typename Out>
struct Convertible {
    static __device__ Out of(float value) { return converted<Out>(value); }
};
// The same for bytes, with fewer operations: NaN becomes 0. The number just below one half is added, so that a fraction of one half is
// rounded up, but none below it.
template <>
struct Convertible<uint8> {
    static __device__ uint8 of(float value) {
        return uint8(int(fminf(fmaxf(value, 0.0f), 255.0f) + 0.49999997f));
    }
};

// Writes four elements of a row of a tile, the first at `column`; only the first `count` of them exist.
template <typename Out, typename Finish, typename Kept>
__device__ inline void write_four(const Tiles &p, const Tile &tile, int row, int column, const Four<Kept> &four) {
    int64 place = ((tile.plane * p.out_height + tile.y + row) * p.out_width + tile.x) * p.inner + column;
    Out *target = reinterpret_cast<Out *>(p.target) + place;
    int count = tile.columns * p.inner - column;
    if (count >= 4 && reinterpret_cast<uint64>(target) % sizeof(Four<Out>) == 0) {
        Four<Out> all;
#pragma unroll
        for (int i = 0; i < 4; i++) all.values[i] = Finish::of(four.values[i]);
        *reinterpret_cast<Four<Out> *>(target) = all;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < count) target[i] = Finish::of(four.values[i]);
}

// Writes a whole tile from shared memory.
template <typename Out, typename Finish, typename Kept>
__device__ inline void write_tile(const Tiles &p, const Tile &tile, const Kept *values) {
    each_place(tile.rows, (tile.columns * p.inner + 3) / 4, [&](int row, int lane) {
        const Kept *four = values + row * p.out_pitch + 4 * lane;
        write_four<Out, Finish>(p, tile, row, 4 * lane, *reinterpret_cast<const Four<Kept> *>(four));
    });
}

// Weighted sums over N lines of values, each of which begins one value after the line before. Terms are added to 0, in the order of the
// values.
template <int N, typename Value>
struct Weighted {
    const float *window;  // aligned to four floats, and padded to a multiple of four
    Value sums[N];
    float weights[N];

    __device__ explicit Weighted(const float *window) : window(window), sums() {}
    __device__ void prepare(int first, int count) {
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            if (first + i >= count) break;
            Four<float> four = *reinterpret_cast<const Four<float> *>(window + first + i);
#pragma unroll
            for (int k = 0; k < 4; k++) weights[i + k] = four.values[k];
        }
    }
    __device__ void take(int line, int step, float value) { sums[line] = fmaf(weights[step], value, sums[line]); }
    __device__ void take(int line, int step, const Four<float> &value) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            sums[line].values[i] = fmaf(weights[step], value.values[i], sums[line].values[i]);
    }
};

// Passes `taker` the values at 0 to `count` for the first of N lines, at 1 to `count + 1` for the next, and so on; loads each value
// only once.
template <int N, typename Value, typename Load, typename Taker>
__device__ inline void slide(int count, const Load &load, Taker &taker) {
    Value kept[N];
#pragma unroll
    for (int i = 0; i < N - 1; i++) kept[i] = load(i);
    for (int first = 0; first < count; first += N) {
        taker.prepare(first, count);
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (first + i >= count) break;
            kept[(i + N - 1) % N] = load(first + i + N - 1);
#pragma unroll
            for (int line = 0; line < N; line++) taker.take(line, i, kept[(i + line) % N]);
        }
    }
}
