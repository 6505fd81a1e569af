// Weighted sums along the middle axis of arrays of shape (outer, size, inner). Each sum covers a band of consecutive elements.

__global__ void weighted_sums(const int64 *__restrict__ first_blocks, const WeightedSums *__restrict__ plans,
                              int samples, const int32 *__restrict__ starts, const float *__restrict__ weights) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const WeightedSums &p = plans[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.outer * p.rows * p.inner) return;
    Place inner = place_of(element, p.inner), row = place_of(inner.row, p.rows);
    const int width = int(p.width);
    const int64 m = row.column, step = p.inner;
    const float *band = weights + p.weights + m * width;
    const float *source = reinterpret_cast<const float *>(p.source) + (row.row * p.size + starts[p.starts + m]) * step + inner.column;
    float sum = 0.0f;
    for (int k = 0; k < width; k++, source += step) {
        // Bands are padded with zero weights, and the padding may reach past the end of the source, which must not be read.
        float weight = band[k];
        if (weight != 0.0f) sum += weight * *source;
    }
    reinterpret_cast<float *>(p.target)[element] = sum;
}
