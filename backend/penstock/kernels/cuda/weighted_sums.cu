// Weighted sums along one axis of an array seen as (outer, size, inner), each of a band of its elements.

struct WeightedSums {
    uint64 source, target;
    int64 outer, size, rows, inner;     // size in the source, rows in the target
    int64 starts, weights;              // where the tables have this sample's bands
    int64 width;                        // weights of each
};

__global__ void weighted_sums(const int64 *__restrict__ first_blocks, const WeightedSums *__restrict__ plans,
                              int samples, const int32 *__restrict__ starts, const float *__restrict__ weights) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const WeightedSums &p = plans[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.outer * p.rows * p.inner) return;
    int64 i = element % p.inner, m = element / p.inner % p.rows, o = element / p.inner / p.rows;
    const float *band = weights + p.weights + m * p.width;
    const float *source = reinterpret_cast<const float *>(p.source) + (o * p.size + starts[p.starts + m]) * p.inner + i;
    float sum = 0.0f;
    for (int64 k = 0; k < p.width; k++) {
        // Bands are padded with zeros, perhaps past the end of the source.
        float weight = band[k];
        if (weight != 0.0f) sum += weight * source[k * p.inner];
    }
    reinterpret_cast<float *>(p.target)[element] = sum;
}
