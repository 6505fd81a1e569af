// Converts values to a logarithmic scale, relative to a constant or to a reference of each sample.

__global__ void to_decibels(const int64 *__restrict__ first_blocks, const Decibels *__restrict__ jobs, int samples,
                            float per_reference, float smallest, float log_smallest, float factor) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Decibels &job = jobs[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= job.length) return;
    if (job.reference) {
        float reference = *reinterpret_cast<const float *>(job.reference);
        per_reference = reference == 0.0f ? 1.0f : 1.0f / reference;
    }
    float ratio = reinterpret_cast<const float *>(job.source)[element] * per_reference;
    // NaN, too, becomes `smallest`. As `smallest` may be denormal, which the device treats as 0, its logarithm is an argument.
    reinterpret_cast<float *>(job.target)[element] = (ratio > smallest ? logf(ratio) : log_smallest) * factor;
}
