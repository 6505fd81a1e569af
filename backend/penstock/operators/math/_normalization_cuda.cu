// Normalization: (x - mean) * (scale / deviation) + shift. Arrays are treated as having the shape (outer, kept, inner), with one mean
// and one deviation for each index of the middle dimension.

const int IN_TABLE = 256;               // if `kept` is at most this, a block first copies means and factors to shared memory

__device__ inline float factor_of(const Normalized &n, int64 position, float scale) {
    float deviation = reinterpret_cast<const float *>(n.deviation)[position * n.deviation_step];
    return deviation == 0.0f ? 0.0f : scale / deviation;
}

template <typename In, typename Out>
__global__ void normalize(const int64 *__restrict__ first_blocks, const Normalized *__restrict__ samples, int count,
                          float scale, float shift) {
    __shared__ float means[IN_TABLE], factors[IN_TABLE];
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Normalized n = samples[sample];
    const float *mean = reinterpret_cast<const float *>(n.mean);
    bool table = n.kept <= IN_TABLE;
    if (table && threadIdx.x < n.kept) {
        means[threadIdx.x] = mean[threadIdx.x * n.mean_step];
        factors[threadIdx.x] = factor_of(n, threadIdx.x, scale);
    }
    __syncthreads();
    const In *source = reinterpret_cast<const In *>(n.source);
    Out *target = reinterpret_cast<Out *>(n.target);
    #pragma unroll 1
    for (int round = 0; round < ROUNDS; round++) {
        int64 first = TOGETHER * (((blockIdx.x - first_blocks[sample]) * ROUNDS + round) * blockDim.x + threadIdx.x);
        if (first >= n.elements) return;
        bool all = first + TOGETHER <= n.elements;
        Pack<In, TOGETHER> values;
        Pack<Out, TOGETHER> results;
        if (all) values = read_pack<TOGETHER>(source + first);
        Place place = place_of(first, n.inner);
        int64 position = n.kept == 1 ? 0 : place_of(place.row, n.kept).column;
        for (int i = 0; i < TOGETHER; i++) {
            if (!all && first + i >= n.elements) break;
            float value = converted<float>(all ? values.values[i] : source[first + i]);
            float middle = table ? means[position] : mean[position * n.mean_step];
            float factor = table ? factors[position] : factor_of(n, position, scale);
            Out result = converted<Out>((value - middle) * factor + shift);
            if (all) results.values[i] = result;
            else target[first + i] = result;
            if (++place.column == n.inner) {
                place.column = 0;
                if (++position == n.kept) position = 0;
            }
        }
        if (all) write_pack<TOGETHER>(target + first, results);
    }
}
