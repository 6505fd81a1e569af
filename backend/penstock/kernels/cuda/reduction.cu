// Reductions over some dimensions of arrays: each output takes as many threads as its number of elements is worth.

const int DIMS = 6;

struct Reduction {
    uint64 source, target, mean;            // mean: of the outputs' shape, or 0
    int64 kept[DIMS], kept_strides[DIMS];
    int64 reduced[DIMS], reduced_strides[DIMS];
    int64 outputs, count;                   // how many there are, and the elements of each
    double divisor, epsilon;
    int32 kept_rank, reduced_rank;
    int32 lanes, root;                      // threads of an output; whether to take the square root
};

struct Plain {
    template <typename T> static __device__ T of(T value, T) { return value; }
};
struct Squares {
    template <typename T> static __device__ T of(T value, T mean) { return (value - mean) * (value - mean); }
};

struct Add {
    template <typename T> static __device__ T of(T a, T b) { return a + b; }
};
struct Least {
    template <typename T> static __device__ T of(T a, T b) { return b < a ? b : a; }
};
struct Greatest {
    template <typename T> static __device__ T of(T a, T b) { return b > a ? b : a; }
};

__device__ inline double finished(double value, const Reduction &r) {
    value /= r.divisor;
    return r.root ? sqrt(value + r.epsilon) : value;
}
template <typename T> __device__ inline T finished(T value, const Reduction &) { return value; }

// Where element `index` of some dimensions is.
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
    int64 output = (blockIdx.x - first_blocks[sample]) * (blockDim.x / r.lanes) + threadIdx.x / r.lanes;
    bool working = output < r.outputs && lane < r.count;
    Sum sum = Sum(0);
    if (working) {
        const In *source = reinterpret_cast<const In *>(r.source) + offset_of(output, r.kept, r.kept_strides, r.kept_rank);
        Value mean = r.mean ? Value(reinterpret_cast<const float *>(r.mean)[output]) : Value(0);
        for (int64 i = lane; i < r.count; i += r.lanes) {
            In element = source[offset_of(i, r.reduced, r.reduced_strides, r.reduced_rank)];
            Sum value = Sum(Map::of(converted<Value>(element), mean));
            sum = i == lane ? value : Merge::of(sum, value);
        }
    }
    partial[threadIdx.x] = sum;
    for (int half = r.lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        // There are never more lanes than elements, so each has something to merge.
        if (lane < half) partial[threadIdx.x] = Merge::of(partial[threadIdx.x], partial[threadIdx.x + half]);
    }
    if (lane == 0 && output < r.outputs)
        reinterpret_cast<Out *>(r.target)[output] = converted<Out>(finished(partial[threadIdx.x], r));
}
