// One function of broadcast operands; the function `compute` and its types are generated in front of this.

const int DIMS = 6;
const int OPERANDS = 3;

struct Elementwise {
    uint64 target;
    uint64 operands[OPERANDS];
    int64 extents[DIMS];
    int64 strides[OPERANDS][DIMS];  // 0 where an operand is repeated
    int64 volume;
    int32 rank, padding;            // dimensions in use
};

template <typename Index>
__global__ void evaluate(const int64 *__restrict__ first_blocks, const Elementwise *__restrict__ jobs, int samples,
                         int *divided_by_zero) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Elementwise &e = jobs[sample];
    Index element = Index(blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= Index(e.volume)) return;
    Index rest = element;
    int64 offsets[OPERANDS] = {0, 0, 0};
    for (int d = e.rank - 1; d >= 0; d--) {
        Index extent = Index(e.extents[d]);
        int64 position = rest % extent;
        rest /= extent;
        for (int k = 0; k < OPERANDS; k++) offsets[k] += position * e.strides[k][d];
    }
    reinterpret_cast<Result *>(e.target)[element] = compute(e.operands, offsets, divided_by_zero);
}
