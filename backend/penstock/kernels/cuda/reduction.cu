// Reduces arrays along some dimensions. The number of threads per output depends on the number of elements reduced to it.

// The lowest and highest finite values of a type.
template <typename T> struct Finite : Limits<T> {};
template <> struct Finite<float> {
    static __device__ float lowest() { return -3.402823466e+38f; }
    static __device__ float highest() { return 3.402823466e+38f; }
};

// The values to merge: the elements themselves, or the squares of their differences from the mean.
struct Plain {
    template <typename T> static __device__ T of(T value, T) { return value; }
};
struct Squares {
    template <typename T> static __device__ T of(T value, T mean) { return (value - mean) * (value - mean); }
};

// How values are merged, and the value to start from.
struct Add {
    template <typename T> static __device__ T start() { return T(0); }
    template <typename T> static __device__ T of(T a, T b) { return a + b; }
};
struct Least {
    template <typename T> static __device__ T start() { return Finite<T>::highest(); }
    template <typename T> static __device__ T of(T a, T b) { return b < a ? b : a; }
};
struct Greatest {
    template <typename T> static __device__ T start() { return Finite<T>::lowest(); }
    template <typename T> static __device__ T of(T a, T b) { return b > a ? b : a; }
};
struct GreatestPositive : Greatest {
    template <typename T> static __device__ T start() { return T(0); }
};

__device__ inline double finished(double value, const Reduction &r) {
    if (r.divides) value /= r.divisor;
    return r.root ? sqrt(value + r.epsilon) : value;
}
__device__ inline float finished(float value, const Reduction &) { return value; }

// Means of integers are truncated.
template <typename T> __device__ inline T finished(T value, const Reduction &r) {
    if (r.divides) value = r.divisor != 0.0 ? T(trunc(double(value) / r.divisor)) : T(0);
    return r.root ? T(sqrt(double(value))) : value;
}

// The offset of element number `index` in an array with these extents and strides.
__device__ inline int64 offset_of(int64 index, const int64 *extents, const int64 *strides, int rank) {
    if (rank == 1) return index * strides[0];
    int64 offset = 0;
    for (int d = rank - 1; d >= 0; d--) {
        offset += index % extents[d] * strides[d];
        index /= extents[d];
    }
    return offset;
}

template <typename In, typename Value, typename Sum, typename Out, typename Map, typename Merge>
__global__ void reduce(const int64 *__restrict__ first_blocks, const Reduction *__restrict__ reductions, int samples) {
    extern __shared__ __align__(16) char shared[];
    Sum *partial = reinterpret_cast<Sum *>(shared);
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Reduction &r = reductions[sample];
    int lane = threadIdx.x % r.lanes;
    int64 result = (blockIdx.x - first_blocks[sample]) * (blockDim.x / r.lanes) + threadIdx.x / r.lanes;
    Sum sum = Merge::template start<Sum>();
    if (result < r.outputs * r.parts) {
        int64 output = result, begin = 0, end = r.elements;
        if (r.parts > 1) {
            int64 share = (r.elements + r.parts - 1) / r.parts;
            output = result / r.parts;
            begin = result % r.parts * share;
            if (begin + share < end) end = begin + share;
        }
        const In *source = reinterpret_cast<const In *>(r.source) + offset_of(output, r.kept, r.kept_strides, r.kept_rank);
        Value mean = r.mean ? Value(reinterpret_cast<const float *>(r.mean)[output * r.mean_step]) : Value(0);
        for (int64 i = begin + lane; i < end; i += r.lanes) {
            In element = source[offset_of(i, r.reduced, r.reduced_strides, r.reduced_rank)];
            sum = Merge::of(sum, Sum(Map::of(converted<Value>(element), mean)));
        }
    }
    partial[threadIdx.x] = sum;
    for (int half = r.lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half) partial[threadIdx.x] = Merge::of(partial[threadIdx.x], partial[threadIdx.x + half]);
    }
    if (lane == 0 && result < r.outputs * r.parts)
        reinterpret_cast<Out *>(r.target)[result] = converted<Out>(finished(partial[threadIdx.x], r));
}
