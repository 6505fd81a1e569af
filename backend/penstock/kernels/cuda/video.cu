// Converts decoded video frames from planes of luma and chroma to pixels, in the same order of operations as kernels/cpu/video_colour.py,
// so that results are equal.

template <typename In>
__device__ inline float value_at(const Planes &p, uint64 plane, int64 pitch, int row, int column) {
    return float(reinterpret_cast<const In *>(plane + row * pitch)[column]) * p.unit;
}

__device__ inline float within_byte(float value) { return fminf(fmaxf(value, 0.0f), 255.0f); }

// Floating-point results are neither rounded nor clamped.
template <typename Out> __device__ inline Out stored(float value, float factor);
template <> __device__ inline uint8 stored<uint8>(float value, float) { return uint8(rintf(within_byte(value))); }
template <> __device__ inline float stored<float>(float value, float factor) { return value * factor; }

// The chroma of a pixel, centred at 0 and scaled; interpolated if the chroma planes have half the resolution.
template <typename In>
__device__ inline float chroma_at(const Planes &p, uint64 plane, float scale, int row, int x) {
    if (!p.halved) return (value_at<In>(p, plane, p.chroma_pitch, row, x * p.step) - 128.0f) * scale;
    int rows = (p.height + 1) / 2, columns = (p.width + 1) / 2;
    int near = row / 2, far = near + (row % 2 ? 1 : -1);
    far = far < 0 ? 0 : far >= rows ? rows - 1 : far;
    int left = x / 2, other = left + (x % 2 ? 1 : -1);
    other = other < 0 ? 0 : other >= columns ? columns - 1 : other;
    float down[2];
    for (int i = 0; i < 2; i++) {
        int column = (i ? other : left) * p.step;
        float a = (value_at<In>(p, plane, p.chroma_pitch, near, column) - 128.0f) * scale;
        float b = (value_at<In>(p, plane, p.chroma_pitch, far, column) - 128.0f) * scale;
        down[i] = a * 0.75f + b * 0.25f;
    }
    return down[0] * 0.75f + down[1] * 0.25f;
}

template <typename In, typename Out, int COLOURS>
__device__ inline void convert_pixel(const Planes &p, int row, int x, Out *pixel) {
    float luma = value_at<In>(p, p.luma, p.luma_pitch, row, x);
    if (COLOURS == RGB || COLOURS == GREY) {
        float grey = p.full_range ? luma : (luma - 16.0f) * LUMA_SCALE;
        pixel[0] = stored<Out>(grey, p.factor);
        if (COLOURS == GREY) return;
        float scale = p.full_range ? 1.0f : CHROMA_SCALE;
        float u = chroma_at<In>(p, p.u, scale, row, x), v = chroma_at<In>(p, p.v, scale, row, x);
        pixel[0] = stored<Out>(grey + V_TO_R * v, p.factor);
        pixel[1] = stored<Out>((grey + U_TO_G * u) + V_TO_G * v, p.factor);
        pixel[2] = stored<Out>(grey + U_TO_B * u, p.factor);
        return;
    }
    float scale = p.full_range ? CHROMA_TO_STUDIO : 1.0f;
    pixel[0] = stored<Out>(p.full_range ? luma * TO_STUDIO + 16.0f : luma, p.factor);
    pixel[1] = stored<Out>(chroma_at<In>(p, p.u, scale, row, x) + 128.0f, p.factor);
    pixel[2] = stored<Out>(chroma_at<In>(p, p.v, scale, row, x) + 128.0f, p.factor);
}

template <typename In, typename Out, int COLOURS>
__global__ void convert(const int64 *__restrict__ first_blocks, const Planes *__restrict__ frames, int count) {
    const int CHANNELS = COLOURS == GREY ? 1 : 3;
    int frame = sample_of(first_blocks, count, blockIdx.x);
    const Planes &p = frames[frame];
    int units = (p.width + UNIT - 1) / UNIT;
    int64 unit = (blockIdx.x - first_blocks[frame]) * THREADS + threadIdx.x;
    if (unit >= int64(p.height) * units) return;
    Place place = place_of(unit, units);
    int row = int(place.row), x = int(place.column) * UNIT;
    int here = p.width - x < UNIT ? p.width - x : UNIT;
    Out pixels[UNIT * CHANNELS];
    for (int i = 0; i < here; i++) convert_pixel<In, Out, COLOURS>(p, row, x + i, pixels + i * CHANNELS);
    Out *target = reinterpret_cast<Out *>(p.target) + (int64(row) * p.width + x) * CHANNELS;
    write_pixels<UNIT, CHANNELS>(target, pixels, here);
}
