// Computes the tables of resampling filters on the GPU, where they are used: operation for operation as in kernels/filters.py, so
// that tables are equal bit for bit.

__device__ inline double filter_value(double distance, const double *values, int entries) {
    if (!entries) return 1.0 - distance > 0.0 ? 1.0 - distance : 0.0;
    double position = distance * 32.0;
    if (position > entries - 1.0) position = entries - 1.0;
    int index = min(int(position), entries - 2);
    return values[index] + (position - index) * (values[index + 1] - values[index]);
}

__device__ inline int32 nearest(const Taps &p, int output) {
    float edge;
    if (p.kind == NEAREST_COLUMN) {
        edge = p.origin + (float(output) + 0.5f) * p.single_step;
    } else {
        edge = p.origin + 0.5f * p.single_step;
        for (int i = 0; i < output; i++) edge = edge + p.single_step;
    }
    return int32(fminf(fmaxf(floorf(edge), 0.0f), float(p.size - 1)));
}

__device__ inline int64 clamped(int64 value, int64 low, int64 high) {
    value = value < low ? low : value;
    return value > high ? high : value;
}

// Each thread computes the start and the weights of one output position. `copied` is put before all weights.
__global__ void fill_taps(const int64 *__restrict__ first_blocks, const Taps *__restrict__ plans, int count,
                          const double *__restrict__ filters, const float *__restrict__ copied, int copies,
                          int32 *__restrict__ starts, float *__restrict__ weights) {
    if (blockIdx.x == 0)
        for (int i = threadIdx.x; i < copies; i += blockDim.x) weights[i] = copied[i];
    int axis = sample_of(first_blocks, count, blockIdx.x);
    const Taps p = plans[axis];
    int number = int(blockIdx.x - first_blocks[axis]) * blockDim.x + threadIdx.x;
    if (number >= p.outputs) return;
    int output = p.first + p.direction * number;
    float *row = weights + p.weights + int64(number) * p.output_stride;
    if (p.kind == NEAREST_COLUMN || p.kind == NEAREST_ROW) {
        starts[p.starts + number] = nearest(p, output);
        row[0] = 1.0f;
        return;
    }
    double centre = (output + 0.5) * p.step + p.start - 0.5;
    double edge = p.kind == FROM_ORIGIN ? double(ceilf(float(output) * p.single_step + p.origin)) : ceil(centre - p.radius);
    int64 first = int64(edge);
    const double *values = filters + p.values;
    double total = 0.0;
    for (int tap = 0; tap < p.taps; tap++) total += filter_value(fabs((double(first + tap) - centre) / p.width), values, p.entries);
    int64 most = p.size - 1;
    int64 begin = clamped(first, 0, most);
    begin = begin > p.size - p.used ? p.size - p.used : begin;
    starts[p.starts + number] = int32(begin);
    // Weights of taps outside of the input are added to those at its edges, in the order of the taps.
    int slot = 0;
    double folded = 0.0;
    for (int tap = 0; tap < p.taps; tap++) {
        int place = int(clamped(first + tap, 0, most) - begin);
        for (; slot < place; slot++) {
            row[int64(slot) * p.tap_stride] = float(folded);
            folded = 0.0;
        }
        folded += filter_value(fabs((double(first + tap) - centre) / p.width), values, p.entries) / total;
    }
    for (; slot < p.used; slot++) {
        row[int64(slot) * p.tap_stride] = float(folded);
        folded = 0.0;
    }
}
