// Correlation of images with any window, one thread an element.

struct Correlation {
    uint64 source, target;
    uint64 window, fill;            // on the GPU; 0: the window is in the table, the fill is `outside`
    int64 elements;                 // of the target
    int32 height, width, inner;     // of the source
    int32 out_height, out_width;
    int32 window_height, window_width, anchor_y, anchor_x;
    int32 border, place;            // place: of the window in the table
    float outside;
};

template <typename In, typename Out>
__global__ void correlate(const int64 *__restrict__ first_blocks, const Correlation *__restrict__ correlations,
                          int samples, const float *__restrict__ table) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Correlation &p = correlations[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.elements) return;
    Spot spot = spot_of(element, p.out_height, p.out_width, p.inner);
    const In *source = reinterpret_cast<const In *>(p.source) + spot.plane * p.height * p.width * p.inner + spot.inner;
    const float *window = p.window ? reinterpret_cast<const float *>(p.window) : table + p.place;
    float outside = p.fill ? to_float(*reinterpret_cast<const In *>(p.fill)) : p.outside, sum = 0.0f;
    int y0 = spot.y - p.anchor_y, x0 = spot.x - p.anchor_x;
    bool whole = x0 >= 0 && x0 + p.window_width <= p.width;
    for (int j = 0; j < p.window_height; j++, window += p.window_width) {
        int y = within(y0 + j, p.height, p.border);
        const In *row = source + int64(max(y, 0)) * p.width * p.inner;
        if (whole && y >= 0) {
            row += int64(x0) * p.inner;
            for (int i = 0; i < p.window_width; i++) sum = fmaf(window[i], to_float(row[int64(i) * p.inner]), sum);
            continue;
        }
        for (int i = 0; i < p.window_width; i++) {
            int x = y < 0 ? -1 : within(x0 + i, p.width, p.border);
            sum = fmaf(window[i], x < 0 ? outside : to_float(row[int64(x) * p.inner]), sum);
        }
    }
    // Integers are rounded to the nearest, ties to even.
    bool whole_numbers = Out(0.5) == Out(0);
    reinterpret_cast<Out *>(p.target)[element] = converted<Out>(whole_numbers ? rintf(sum) : sum);
}
