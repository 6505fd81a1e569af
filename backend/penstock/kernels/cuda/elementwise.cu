// Applies a function to broadcast operands; `compute` and its types are generated and inserted before this file.
// 
// A thread computes units of neighbouring results. It finds the operands of a unit's first result by divisions, and the others by
// adding strides. A block that lies within one line of the innermost dimension makes the divisions only once.

const int UNIT = sizeof(Result) <= 2 ? 8 : 16 / sizeof(Result);

__device__ inline uint32 divided(uint32 value, const Dimension &by) {
    return divided(value, Divisor{uint32(by.extent), uint32(by.divisor), uint32(by.divisor >> 32)});
}
__device__ inline uint64 divided(uint64 value, const Dimension &by) { return value / uint64(by.extent); }

// An element: its positions along the two innermost dimensions, and the offsets of its operands.
template <typename Index>
struct Walk {
    Index x, y;
    int64 offsets[OPERANDS];

    __device__ Walk(const Elementwise &e, Index element) : offsets{0, 0, 0} {
        Index rest = element, positions[2] = {0, 0};
        for (int d = 0; d < e.rank; d++) {
            Index outer = divided(rest, e.dims[d]), position = rest - outer * Index(e.dims[d].extent);
            if (d < 2) positions[d] = position;
            for (int k = 0; k < OPERANDS; k++) offsets[k] += int64(position) * e.dims[d].strides[k];
            rest = outer;
        }
        x = positions[0];
        y = positions[1];
    }

    // Moves to the next element of the two innermost dimensions; there must be one.
    __device__ void next(const Elementwise &e) {
        const Dimension &inner = e.dims[0];
        x++;
        bool at_end = x == Index(inner.extent);
        for (int k = 0; k < OPERANDS; k++) {
            offsets[k] += inner.strides[k];
            if (at_end) offsets[k] += e.dims[1].strides[k] - inner.extent * inner.strides[k];
        }
        if (at_end) x = 0;
        y += at_end;
    }

    // The number of elements from this one to the end of the two innermost dimensions.
    __device__ Index left(const Elementwise &e) const {
        return (Index(e.dims[1].extent) - y) * Index(e.dims[0].extent) - x;
    }
};

// Computes the results of a block that lies within one line of the innermost dimension.
__device__ inline void evaluate_line(const Elementwise &e, const int64 *first, Result *target, int *divided_by_zero) {
    const int UNITS = BLOCK_ELEMENTS / UNIT / THREADS;
    Pack<Result, UNIT> results[UNITS];
    int64 strides[OPERANDS];
    for (int k = 0; k < OPERANDS; k++) strides[k] = e.dims[0].strides[k];
    // All operands are read before any result is written, so that the reads overlap.
#pragma unroll
    for (int n = 0; n < UNITS; n++) {
#pragma unroll
        for (int i = 0; i < UNIT; i++) {
            int place = (n * THREADS + threadIdx.x) * UNIT + i;
            int64 offsets[OPERANDS];
            for (int k = 0; k < OPERANDS; k++) offsets[k] = first[k] + place * strides[k];
            results[n].values[i] = compute(e.operands, offsets, divided_by_zero);
        }
    }
#pragma unroll
    for (int n = 0; n < UNITS; n++) write_pack<UNIT>(target + (n * THREADS + threadIdx.x) * UNIT, results[n]);
}

template <typename Index>
__global__ void evaluate(const int64 *__restrict__ first_blocks, const Elementwise *__restrict__ jobs, int samples,
                         int *divided_by_zero) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Elementwise &e = jobs[sample];
    Index begin = Index(blockIdx.x - first_blocks[sample]) * BLOCK_ELEMENTS, volume = Index(e.volume);
    if (begin + BLOCK_ELEMENTS <= volume) {
        Walk<Index> walk(e, begin);
        if (walk.x + BLOCK_ELEMENTS <= Index(e.dims[0].extent)) {
            evaluate_line(e, walk.offsets, reinterpret_cast<Result *>(e.target) + begin, divided_by_zero);
            return;
        }
    }
    for (int i = UNIT * threadIdx.x; i < BLOCK_ELEMENTS; i += UNIT * blockDim.x) {
        Index element = begin + i;
        if (element >= volume) return;
        Walk<Index> walk(e, element);
        Result *target = reinterpret_cast<Result *>(e.target) + element;
        if (volume - element >= UNIT && walk.left(e) >= UNIT) {
            Pack<Result, UNIT> results;
#pragma unroll
            for (int k = 0; k < UNIT; k++, walk.next(e)) results.values[k] = compute(e.operands, walk.offsets, divided_by_zero);
            write_pack<UNIT>(target, results);
            continue;
        }
#pragma unroll 1
        for (int k = 0; k < UNIT && element + k < volume; k++) {
            Walk<Index> own(e, element + k);
            target[k] = compute(e.operands, own.offsets, divided_by_zero);
        }
    }
}
