// The greatest or the least of the values under a line, along one axis of an array seen as (outer, n, inner).

struct Line {
    uint64 source, target;
    int64 outer, size, inner;
    int32 length, anchor, border, padding;
};

struct Greatest {
    template <typename T> static __device__ T of(T a, T b) { return a < b ? b : a; }
};
struct Least {
    template <typename T> static __device__ T of(T a, T b) { return b < a ? b : a; }
};

template <typename T, typename Extreme>
__global__ void extreme(const int64 *__restrict__ first_blocks, const Line *__restrict__ lines, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Line &p = lines[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.outer * p.size * p.inner) return;
    Place inner = place_of(element, p.inner), outer = place_of(inner.row, p.size);
    const T *source = reinterpret_cast<const T *>(p.source) + outer.row * p.size * p.inner + inner.column;
    T value = reinterpret_cast<const T *>(p.source)[element];
    for (int k = 0; k < p.length; k++) {
        // What lies beyond a constant border changes nothing.
        int place = within(int(outer.column) - p.anchor + k, int(p.size), p.border);
        if (place >= 0) value = Extreme::of(value, source[place * p.inner]);
    }
    reinterpret_cast<T *>(p.target)[element] = value;
}
