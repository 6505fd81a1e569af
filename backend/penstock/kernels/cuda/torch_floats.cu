// Resamples float32 with PyTorch's order of operations, as kernels/cpu/torch_floats.py does.

// Each thread computes one element of (outer, out_size, inner).
__global__ void resample_widened(const int64 *__restrict__ first_blocks, const FloatAxis *__restrict__ plans, int samples,
                                 const int32 *__restrict__ starts, const int32 *__restrict__ counts,
                                 const float *__restrict__ weights) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const FloatAxis p = plans[sample];
    uint32 element = uint32(blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.elements) return;
    uint32 inner = p.inner, row = element / inner, i = element % inner;
    uint32 outer = row / uint32(p.out_size), y = row % uint32(p.out_size);
    const float *source =
        reinterpret_cast<const float *>(p.source) + (int64(outer) * p.size + starts[p.starts + y]) * inner + i;
    const float *own = weights + p.weights + int64(y) * p.taps;
    int count = counts[p.starts + y];
    // After the first tap, groups of four taps are multiplied and then added; the remaining ones use fused multiply-add.
    int apart = 1 + (count - 1) / 4 * 4;
    float total = source[0] * own[0];
    for (int k = 1; k < apart; k++) total = total + source[int64(k) * inner] * own[k];
    for (int k = apart; k < count; k++) total = fmaf(source[int64(k) * inner], own[k], total);
    reinterpret_cast<float *>(p.target)[element] = total;
}
