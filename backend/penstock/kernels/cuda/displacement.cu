// Displaces the pixels of images: by maps, as on a ball, or in waves. Computes the same as on the CPU (kernels/cpu/remap.py),
// operation for operation.

struct Position {
    float x, y;
};

struct Given {
    static __device__ Position of(const Displacement &d, const float *, int64 pixel, int, int) {
        return {reinterpret_cast<const float *>(d.map_x)[pixel], reinterpret_cast<const float *>(d.map_y)[pixel]};
    }
};
struct Ball {
    static __device__ Position of(const Displacement &d, const float *, int64, int column, int row) {
        float middle_x = 0.5f * d.width, middle_y = 0.5f * d.height;
        float x = column + (0.5f - middle_x), y = row + (0.5f - middle_y);
        float distance = sqrtf(x * x + y * y) / float(max(max(d.width, d.height) / 2, 1));
        return {middle_x + distance * x, middle_y + distance * y};
    }
};
struct Waves {
    static __device__ Position of(const Displacement &d, const float *table, int64, int column, int row) {
        return {column + table[d.across + row], row + table[d.down + column]};
    }
};

template <typename T>
__device__ inline float tap(const Displacement &d, int y, int x, int c) {
    if (y < 0 || y >= d.height || x < 0 || x >= d.width) return d.fill;
    return to_float(reinterpret_cast<const T *>(d.source)[(int64(y) * d.width + x) * d.channels + c]);
}

// Interpolates all channels of a pixel; its position is relative to the centre of the first pixel.
template <typename T>
__device__ inline void interpolate(const Displacement &d, float x, float y, T *target) {
    int left = int(floorf(x)), upper = int(floorf(y));
    float fx = float(double(x) - left), fy = float(double(y) - upper);
    bool inside = left >= 0 && left + 1 < d.width && upper >= 0 && upper + 1 < d.height;
    const T *above = reinterpret_cast<const T *>(d.source) + (inside ? (int64(upper) * d.width + left) * d.channels : 0);
    const T *below = above + int64(d.width) * d.channels;
    if (inside && d.channels == 3) {
        interpolate_pixel<3>(above, below, fx, fy, target);
        return;
    }
    for (int c = 0; c < d.channels; c++) {
        float a = inside ? to_float(above[c]) : tap<T>(d, upper, left, c);
        float b = inside ? to_float(above[d.channels + c]) : tap<T>(d, upper, left + 1, c);
        float e = inside ? to_float(below[c]) : tap<T>(d, upper + 1, left, c);
        float f = inside ? to_float(below[d.channels + c]) : tap<T>(d, upper + 1, left + 1, c);
        target[c] = converted<T>(between(a, b, e, f, fx, fy));
    }
}

template <typename Source, typename T>
__device__ inline void make_pixel(const Displacement &d, const float *table, int64 pixel) {
    T *target = reinterpret_cast<T *>(d.target) + pixel * d.channels;
    if (!d.displaced) {
        const T *source = reinterpret_cast<const T *>(d.source) + pixel * d.channels;
        for (int c = 0; c < d.channels; c++) target[c] = source[c];
        return;
    }
    Place place = place_of(pixel, d.out_width);
    Position from = Source::of(d, table, pixel, int(place.column), int(place.row));
    float x = from.x + d.shift, y = from.y + d.shift;
    // Negated, so that it holds for NaN as well.
    if (!(-1 < x && double(x) < d.width && -1 < y && double(y) < d.height)) {
        for (int c = 0; c < d.channels; c++) target[c] = converted<T>(d.fill);
        return;
    }
    if (d.linear) {
        interpolate(d, x, y, target);
        return;
    }
    // A single addition is used, so that positions just below a pixel's edge stay below it.
    float to_nearest = d.shift + 0.5f;
    int left = int(floorf(from.x + to_nearest)), upper = int(floorf(from.y + to_nearest));
    for (int c = 0; c < d.channels; c++) target[c] = converted<T>(tap<T>(d, upper, left, c));
}

template <typename Source, typename T>
__global__ void displace(const int64 *__restrict__ first_blocks, const Displacement *__restrict__ displacements,
                         int samples, const float *__restrict__ table) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Displacement &d = displacements[sample];
    int64 begin = (blockIdx.x - first_blocks[sample]) * BLOCK_PIXELS;
    for (int64 pixel = begin + threadIdx.x; pixel < d.pixels && pixel < begin + BLOCK_PIXELS; pixel += blockDim.x)
        make_pixel<Source, T>(d, table, pixel);
}
