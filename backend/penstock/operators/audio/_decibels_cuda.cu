// A logarithmic scale, relative to a constant or to each sample's own reference.

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
    // NaN becomes the smallest, too. That may be denormal, which counts as 0 on the device.
    reinterpret_cast<float *>(job.target)[element] = (ratio > smallest ? logf(ratio) : log_smallest) * factor;
}
