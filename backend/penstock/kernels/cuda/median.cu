// The median of each window, the edge repeated beyond the border.
//
// It is found bit by bit, from the highest down: a bit is set where no more than half of the values are less than what
// it makes. That takes no memory, whatever the window's size; small windows of one size are kept in registers.

struct Median {
    uint64 source, target;
    int64 elements;
    int32 height, width, inner;
    int32 window_height, window_width, padding;
};

// Values as unsigned numbers of the same order.
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

// SIDE: of all windows, or 0 where they differ.
template <typename T, int SIDE>
__global__ void median(const int64 *__restrict__ first_blocks, const Median *__restrict__ medians, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Median &p = medians[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.elements) return;
    Spot spot = spot_of(element, p.height, p.width, p.inner);
    const T *source = reinterpret_cast<const T *>(p.source) + spot.plane * p.height * p.width * p.inner + spot.inner;
    const int rows = SIDE ? SIDE : p.window_height, columns = SIDE ? SIDE : p.window_width;
    const int y0 = spot.y - rows / 2, x0 = spot.x - columns / 2;
    uint32 kept[SIDE ? SIDE * SIDE : 1];
    if (SIDE) {
#pragma unroll
        for (int k = 0; k < SIDE * SIDE; k++) {
            int y = min(max(y0 + k / (SIDE ? SIDE : 1), 0), p.height - 1);
            int x = min(max(x0 + k % (SIDE ? SIDE : 1), 0), p.width - 1);
            kept[k] = Key<T>::of(source[(int64(y) * p.width + x) * p.inner]);
        }
    }
    uint32 found = 0;
    for (int bit = 8 * sizeof(T) - 1; bit >= 0; bit--) {
        uint32 candidate = found | 1u << bit;
        int64 less = 0;
        if (SIDE) {
            int count = 0;
#pragma unroll
            for (int k = 0; k < SIDE * SIDE; k++) count += kept[k] < candidate;
            less = count;
        } else {
            for (int j = 0; j < rows; j++) {
                const T *row = source + int64(min(max(y0 + j, 0), p.height - 1)) * p.width * p.inner;
                for (int i = 0; i < columns; i++)
                    less += Key<T>::of(row[int64(min(max(x0 + i, 0), p.width - 1)) * p.inner]) < candidate;
            }
        }
        if (less <= int64(rows) * columns / 2) found = candidate;
    }
    reinterpret_cast<T *>(p.target)[element] = Key<T>::back(found);
}
