// Resamples signals with a windowed sinc filter. A block computes OUTPUTS consecutive output samples of all channels.

template <typename In>
__device__ inline float unit_of(In value, const Levels &levels) {
    float unit = to_float(value) * levels.in_scale;
    if (levels.change > 0) return (unit + 1.0f) * 0.5f;
    return levels.change < 0 ? unit * 2.0f - 1.0f : unit;
}

template <typename In, typename Out>
__global__ void resample_signals(const int64 *__restrict__ first_blocks, const Resampling *__restrict__ jobs,
                                 int samples, const float *__restrict__ table, int lobes,
                                 const Levels *__restrict__ levels) {
    __shared__ float positions[OUTPUTS];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Resampling &job = jobs[sample];
    int64 begin = (blockIdx.x - first_blocks[sample]) * int64(OUTPUTS);
    int64 rest = job.length - begin;
    int outputs = rest < OUTPUTS ? int(rest) : OUTPUTS;
    double block_position = double(begin) * job.step;
    int64 base = int64(floor(block_position));
    if (threadIdx.x == 0) {
        // One thread adds the steps sequentially, because the rounding errors of the running sum are part of the result.
        float position = float(block_position - double(base)), step = float(job.step);
        for (int i = 0; i < outputs; i++, position += step) positions[i] = position;
    }
    __syncthreads();
    const In *source = reinterpret_cast<const In *>(job.source) + base * job.channels;
    Out *target = reinterpret_cast<Out *>(job.target) + begin * job.channels;
    const float center = float(lobes * 32 + 1);
    for (int64 o = threadIdx.x; o < outputs * job.channels; o += blockDim.x) {
        float position = positions[o / job.channels];
        int64 channel = o % job.channels;
        int64 first = int64(ceilf(position)) - lobes, stop = int64(floorf(position)) + lobes + 1;
        if (first < -base) first = -base;
        if (stop > job.size - base) stop = job.size - base;
        float x = float(first) - position, total = 0.0f;
        for (int64 k = first; k < stop; k++, x += 1.0f) {
            float place = x * 32.0f + center;
            int index = int(floorf(place));
            float low = table[index];
            float weight = low + (place - float(index)) * (table[index + 1] - low);
            total += unit_of(source[k * job.channels + channel], *levels) * weight;
        }
        target[o] = converted<Out>(total * levels->out_scale);
    }
}
