// The preemphasis filter: y[i] = x[i] - coefficient * x[i - 1].

// In and Out: the elements' types; Work: the type of the arithmetic, float or double.
template <typename In, typename Work, typename Out>
__global__ void preemphasize(const int64 *__restrict__ first_blocks, const Preemphasis *__restrict__ jobs, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Preemphasis &job = jobs[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= job.length) return;
    const In *signal = reinterpret_cast<const In *>(job.source);
    if (!job.coefficient) {
        reinterpret_cast<Out *>(job.target)[element] = converted<Out>(signal[element]);
        return;
    }
    int64 previous = element ? element - 1 : job.before;
    Work before = previous < 0 ? Work(0) : converted<Work>(signal[previous]);
    Work value = converted<Work>(signal[element]) - Work(job.coefficient) * before;
    reinterpret_cast<Out *>(job.target)[element] = converted<Out>(value);
}
