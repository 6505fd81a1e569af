// Warps images by a homography, with the same operations as on the CPU (_perspective_cpu.py) in the same order.

#include "homography.cuh"

// Prepares matrices from users: if necessary, makes them relative to the first pixel's centre, and inverts them.
__global__ void prepare(const int64 *__restrict__, const Given *__restrict__ matrices, int samples) {
    int sample = blockIdx.x * blockDim.x + threadIdx.x;
    if (sample >= samples) return;
    const Given &p = matrices[sample];
    const float *source = reinterpret_cast<const float *>(p.source);
    double *target = reinterpret_cast<double *>(p.target), m[9];
    for (int i = 0; i < 9; i++) m[i] = source[i];
    if (p.to_centres) {
        // Single precision and this order decide which of two equally near pixels is chosen.
        for (int i = 0; i < 9; i += 3) m[i + 2] = float(m[i + 2]) + (0.5f * float(m[i]) + 0.5f * float(m[i + 1]));
        for (int i = 0; i < 6; i++) m[i] = float(m[i]) - 0.5f * float(m[6 + i % 3]);
    }
    double minors[9], determinant = 0.0;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            int a = (j + 1) % 3 * 3, b = (j + 2) % 3 * 3, c = (i + 1) % 3, d = (i + 2) % 3;
            minors[3 * i + j] = m[a + c] * m[b + d] - m[a + d] * m[b + c];
        }
    }
    for (int j = 0; j < 3; j++) determinant += m[3 * j] * minors[j];
    // A matrix that cannot be inverted becomes 0, which maps all pixels to positions outside the image.
    for (int i = 0; i < 9; i++) target[i] = !p.inverted ? m[i] : determinant != 0.0 ? minors[i] / determinant : 0.0;
}

// Fills the weights of Keys' cubic convolution, a = -0.75, at the fraction `f`.
__device__ inline void cubic_weights(float f, float *weights) {
    const double a = -0.75;
    for (int i = 0; i < 4; i++) {
        double d = fabs(double(f) + 1 - i);
        weights[i] = float(d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a);
    }
}

// Fills the weights of the taps along one axis; returns the position of the first tap.
template <typename Real>
__device__ inline int weights_at(int taps, Real at, float *weights) {
    if (taps == 1) {
        weights[0] = 1.0f;
        return int(rint(at));
    }
    Real first = floor(at);
    float fraction = float(at - first);
    if (taps == 4) {
        cubic_weights(fraction, weights);
        return int(first) - 1;
    }
    weights[0] = float(1.0 - double(fraction));
    weights[1] = fraction;
    return int(first);
}

// The taps of a pixel: the position of the first tap along each axis, and the weights.
struct Taps {
    int x, y;
    float wx[4], wy[4];
};

__device__ inline Taps taps_of(const Perspective &p, const double *m, int x, int y) {
    Taps taps;
    // Use OpenCV's precision, which decides which of two equally near pixels is chosen.
    if (p.coarse) {
        double sx, sy;
        position<double>(m, x, y, 0, sx, sy);
        taps.x = weights_at(p.taps, rint(sx * 32) / 32, taps.wx);
        taps.y = weights_at(p.taps, rint(sy * 32) / 32, taps.wy);
    } else {
        float sx, sy;
        position<float>(m, x, y, p.out_width / 16 * 16, sx, sy);
        taps.x = weights_at(p.taps, sx, taps.wx);
        taps.y = weights_at(p.taps, sy, taps.wy);
    }
    return taps;
}

// Returns one channel of a pixel; `inside`: whether all taps are in the source.
template <typename T>
__device__ inline float interpolated(const Perspective &p, const Taps &taps, bool inside, const T *source, int channel) {
    int64 row = int64(p.width) * p.inner;
    const T *first = source + (inside ? (int64(taps.y) * p.width + taps.x) * p.inner : 0);
    if (inside && p.taps == 2) {
        float a = to_float(first[0]), b = to_float(first[p.inner]);
        float d = to_float(first[row]), e = to_float(first[row + p.inner]);
        return between(a, b, d, e, taps.wx[1], taps.wy[1]);
    }
    float total = 0.0f;
    if (inside) {
        for (int j = 0; j < p.taps; j++, first += row) {
            float line = 0.0f;
            for (int i = 0; i < p.taps; i++) line += taps.wx[i] * to_float(first[int64(i) * p.inner]);
            total += taps.wy[j] * line;
        }
        return total;
    }
    for (int j = 0; j < p.taps; j++) {
        int y = within(taps.y + j, p.height, p.border);
        for (int i = 0; i < p.taps; i++) {
            int x = within(taps.x + i, p.width, p.border);
            bool outside = x < 0 || y < 0;
            float value = outside ? p.fill[channel] : to_float(source[y * row + int64(x) * p.inner]);
            total += taps.wx[i] * taps.wy[j] * value;
        }
    }
    return total;
}

template <typename T>
__global__ void warp_perspective(const int64 *__restrict__ first_blocks, const Perspective *__restrict__ warps,
                                 int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Perspective &p = warps[sample];
    const double *m = p.matrix_at ? reinterpret_cast<const double *>(p.matrix_at) : p.matrix;
    int64 begin = (blockIdx.x - first_blocks[sample]) * BLOCK_PIXELS;
    for (int64 pixel = begin + threadIdx.x; pixel < p.pixels && pixel < begin + BLOCK_PIXELS; pixel += blockDim.x) {
        Spot spot = spot_of(pixel, p.out_height, p.out_width, 1);
        Taps taps = taps_of(p, m, spot.x, spot.y);
        bool inside = taps.x >= 0 && taps.y >= 0 && taps.x + p.taps <= p.width && taps.y + p.taps <= p.height;
        const T *source = reinterpret_cast<const T *>(p.source) + spot.plane * p.height * p.width * p.inner;
        T *target = reinterpret_cast<T *>(p.target) + pixel * p.inner;
        if (inside && p.taps == 2 && p.inner == 3) {
            const T *upper = source + (int64(taps.y) * p.width + taps.x) * 3;
            interpolate_pixel<3>(upper, upper + int64(p.width) * 3, taps.wx[1], taps.wy[1], target);
            continue;
        }
        for (int c = 0; c < p.inner; c++) target[c] = converted<T>(interpolated(p, taps, inside, source + c, c));
    }
}
