// One function of broadcast operands; the function `compute` and the types are generated in front of this.

const int DIMS = 6;
const int OPERANDS = 3;

struct Expression {
    uint64 target;
    uint64 operands[OPERANDS];
    int64 extents[DIMS];
    int64 strides[OPERANDS][DIMS];  // 0 where an operand is repeated
};

__global__ void evaluate(const int64 *first_blocks, const Expression *expressions, int samples, int *divided_by_zero) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Expression &e = expressions[sample];
    int64 volume = 1;
    for (int d = 0; d < DIMS; d++) volume *= e.extents[d];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= volume) return;
    int64 rest = element, offset[OPERANDS] = {0, 0, 0};
    for (int d = DIMS - 1; d >= 0; d--) {
        int64 position = rest % e.extents[d];
        rest /= e.extents[d];
        for (int k = 0; k < OPERANDS; k++) offset[k] += position * e.strides[k][d];
    }
    reinterpret_cast<Result *>(e.target)[element] = compute(e.operands, offset, divided_by_zero);
}
