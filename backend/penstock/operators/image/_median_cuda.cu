// The median of each window; the border repeats the edge.
#include "tiles.cuh"

// Converts values to unsigned keys that compare in the same order, and back.
template <typename T> struct Key {
    static __device__ uint32 of(T value) { return uint32(value) ^ flipped(); }
    static __device__ T back(uint32 key) { return T(key ^ flipped()); }
    static __device__ uint32 flipped() { return T(-1) < T(0) ? 1u << (8 * sizeof(T) - 1) : 0u; }
};
template <> struct Key<int16> {
    static __device__ uint32 of(int16 value) { return uint32(int(value) + 32768); }
    static __device__ int16 back(uint32 key) { return int16(int(key) - 32768); }
};
template <> struct Key<float> {
    union Bits {
        float value;
        uint32 bits;
    };
    static __device__ uint32 of(float value) {
        Bits all;
        all.value = value;
        return all.bits >> 31 ? ~all.bits : all.bits | 1u << 31;
    }
    static __device__ float back(uint32 key) {
        Bits all;
        all.bits = key >> 31 ? key ^ 1u << 31 : ~key;
        return all.value;
    }
};

template <typename T>
struct Keys {
    typedef uint32 Kept;
    static __device__ uint32 of(T value) { return Key<T>::of(value); }
};
template <typename T>
struct Unlocked {
    static __device__ T of(uint32 key) { return Key<T>::back(key); }
};

// One holds a key of one window. Two holds 16-bit keys of two adjacent windows, that of the left window in the low half.
struct One {
    uint32 bits;
    static __device__ One of(uint32 here, uint32) { return {here}; }
    static __device__ uint32 least(uint32 a, uint32 b) { return a < b ? a : b; }
    static __device__ uint32 greatest(uint32 a, uint32 b) { return a < b ? b : a; }
};
struct Two {
    uint32 bits;
    static __device__ Two of(uint32 here, uint32 next) { return {here | next << 16}; }
    static __device__ uint32 least(uint32 a, uint32 b) { return __vminu2(a, b); }
    static __device__ uint32 greatest(uint32 a, uint32 b) { return __vmaxu2(a, b); }
};

template <typename Unit>
__device__ inline void order(Unit &a, Unit &b) {
    uint32 least = Unit::least(a.bits, b.bits);
    b.bits = Unit::greatest(a.bits, b.bits);
    a.bits = least;
}

// Moves the least of COUNT units to the front and the greatest to the end, replaces the least with the next unit, and goes on without
// the greatest, until three units are left: the middle one is the median.
template <int COUNT, typename Unit>
__device__ inline void put_aside(Unit *kept, const Unit *next) {
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++) order(kept[i], kept[COUNT - 1 - i]);
#pragma unroll
    for (int i = 1; i <= (COUNT - 1) / 2; i++) order(kept[0], kept[i]);
#pragma unroll
    for (int i = COUNT / 2; i < COUNT - 1; i++) order(kept[i], kept[COUNT - 1]);
    if constexpr (COUNT > 3) {
        kept[0] = *next;
        put_aside<COUNT - 1>(kept, next + 1);
    }
}

// Returns the median of COUNT units without sorting all of them: neither the least nor the greatest of any COUNT / 2 + 2 units can
// be the median.
template <int COUNT, typename Unit>
__device__ inline Unit middle_of(const Unit (&all)[COUNT]) {
    const int MOST = COUNT / 2 + 2;
    Unit kept[MOST];
#pragma unroll
    for (int i = 0; i < MOST; i++) kept[i] = all[i];
    put_aside<MOST>(kept, all + MOST);
    return kept[1];
}

// Returns the median key of a window of any size. It is built bit by bit from the highest: a bit is set if at most half of the
// keys are less than the candidate with this bit.
template <typename T, typename Load>
__device__ inline uint32 middle_key(int rows, int columns, const Load &load) {
    const int64 half = int64(rows) * columns / 2;
    uint32 found = 0;
    for (int bit = 8 * sizeof(T) - 1; bit >= 0; bit--) {
        const uint32 candidate = found | 1u << bit;
        int64 less = 0;
        for (int j = 0; j < rows; j++) {
            int count = 0;
            for (int i = 0; i < columns; i++) count += load(j, i) < candidate;
            less += count;
        }
        if (less <= half) found = candidate;
    }
    return found;
}

template <bool SMALL> struct UnitFor { typedef One Type; };
template <> struct UnitFor<true> { typedef Two Type; };

// Each block computes a tile. SIDE: the side of the windows if all are squares of this side and fit into registers, else 0.
template <typename T, int SIDE>
__global__ void __launch_bounds__(256, 3)
    median_tiles(const int64 *__restrict__ first_blocks, const Median *__restrict__ medians, int samples) {
    extern __shared__ __align__(16) uint32 memory[];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Median &p = medians[sample];
    const Tiles &tiles = p.tiles;
    const Tile tile = tile_of(tiles, blockIdx.x - first_blocks[sample]);
    const int pitch = tiles.pitch, inner = tiles.inner;
    uint32 *keys = memory, *results = keys + (tiles.rows + tiles.reach_y) * pitch;
    int32 *shifts = reinterpret_cast<int32 *>(results + tiles.rows * tiles.out_pitch);

    read_tile<T, Keys<T>>(tiles, tile, 0u, keys, shifts);
    __syncthreads();

    if (SIDE) {
        const bool SMALL = sizeof(T) <= 2;
        const int WIDTH = SMALL ? 2 : 1, COUNT = SIDE ? SIDE : 3;
        typedef typename UnitFor<SMALL>::Type Unit;
        each_place(tile.rows, (tile.columns + WIDTH - 1) / WIDTH * inner, [&](int row, int lane) {
            const int element = lane % inner + lane / inner * WIDTH * inner;
            Unit units[COUNT * COUNT];
#pragma unroll
            for (int j = 0; j < COUNT; j++) {
                const uint32 *line = keys + (row + j) * pitch + shifts[row + j] + element;
                uint32 here = line[0];
#pragma unroll
                for (int i = 0; i < COUNT; i++) {
                    uint32 next = SMALL || i < COUNT - 1 ? line[(i + 1) * inner] : 0;
                    units[j * COUNT + i] = Unit::of(here, next);
                    here = next;
                }
            }
            const Unit middle = middle_of(units);
            uint32 *to = results + row * tiles.out_pitch + element;
            to[0] = SMALL ? middle.bits & 0xFFFF : middle.bits;
            if (SMALL) to[inner] = middle.bits >> 16;
        });
    } else {
        each_place(tile.rows, tile.columns * inner, [&](int row, int lane) {
            results[row * tiles.out_pitch + lane] = middle_key<T>(p.window_height, p.window_width, [&](int j, int i) {
                return keys[(row + j) * pitch + shifts[row + j] + lane + i * inner];
            });
        });
    }
    __syncthreads();
    write_tile<T, Unlocked<T>>(tiles, tile, results);
}

// For windows that do not fit into shared memory: each thread computes one element.
template <typename T>
__global__ void median(const int64 *__restrict__ first_blocks, const Median *__restrict__ medians, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Median &p = medians[sample];
    const Tiles &t = p.tiles;
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    Spot spot = spot_of(element, t.height, t.width, t.inner);
    if (spot.plane >= t.planes) return;
    const T *source = reinterpret_cast<const T *>(t.source) + spot.plane * t.height * t.width * t.inner + spot.inner;
    uint32 key = middle_key<T>(p.window_height, p.window_width, [&](int j, int i) {
        int y = within(spot.y - t.above + j, t.height, t.border), x = within(spot.x - t.left + i, t.width, t.border);
        return Key<T>::of(source[(int64(y) * t.width + x) * t.inner]);
    });
    reinterpret_cast<T *>(t.target)[element] = Key<T>::back(key);
}
