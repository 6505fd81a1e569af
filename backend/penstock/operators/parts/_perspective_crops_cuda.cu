// Warps quadrilaterals to rectangles with the same sequence of operations as OpenCV's `cv2.warpPerspective`.

#include "homography.cuh"

// Interpolates between four neighbours: `a` and `b` above, `d` and `e` below.
__device__ inline float fused_between(float a, float b, float d, float e, float fx, float fy) {
    float top = fmaf(b - a, fx, a), low = fmaf(e - d, fx, d);
    return fmaf(low - top, fy, top);
}

template <typename T> __device__ inline T stored(float value) { return converted<T>(rintf(value)); }
template <> __device__ inline float stored<float>(float value) { return value; }

// Returns a value of the image; 0 for a negative position, which `within` returns for positions in a constant border.
template <typename T, int CHANNELS>
__device__ inline float value_at(const T *source, const Crop &c, int x, int y, int channel) {
    return x < 0 || y < 0 ? 0.0f : to_float(source[(int64(y) * c.width + x) * CHANNELS + channel]);
}

template <typename T, int CHANNELS>
__global__ void cut_quadrilaterals(const int64 *__restrict__ first_blocks, const Crop *__restrict__ crops, int count,
                                   int border, int is_nearest) {
    int number = sample_of(first_blocks, count, blockIdx.x);
    const Crop &c = crops[number];
    int64 pixel = (blockIdx.x - first_blocks[number]) * THREADS + threadIdx.x;
    if (pixel >= c.pixels) return;
    Place place = place_of(pixel, c.out_width);
    // If the crop is turned, by 90 degrees counterclockwise, its first row is the last column of the upright crop.
    int x = int(c.is_turned ? c.upright_width - 1 - place.row : place.column), y = int(c.is_turned ? place.column : place.row);
    float sx, sy;
    position<float>(c.matrix, float(x), float(y), c.upright_width / 16 * 16, sx, sy);
    const T *source = reinterpret_cast<const T *>(c.source);
    T *target = reinterpret_cast<T *>(c.target) + pixel * CHANNELS;
    if (is_nearest) {
        int from_x = within(int(rintf(sx)), c.width, border), from_y = within(int(rintf(sy)), c.height, border);
        for (int i = 0; i < CHANNELS; i++) target[i] = T(value_at<T, CHANNELS>(source, c, from_x, from_y, i));
        return;
    }
    float first_x = floorf(sx), first_y = floorf(sy), fx = sx - first_x, fy = sy - first_y;
    int left = int(first_x), upper = int(first_y);
    if (left >= 0 && upper >= 0 && left + 1 < c.width && upper + 1 < c.height) {
        const T *above = source + (int64(upper) * c.width + left) * CHANNELS;
        float high[2 * CHANNELS], low[2 * CHANNELS];
        read_values<2 * CHANNELS>(above, high);
        read_values<2 * CHANNELS>(above + int64(c.width) * CHANNELS, low);
        for (int i = 0; i < CHANNELS; i++)
            target[i] = stored<T>(fused_between(high[i], high[CHANNELS + i], low[i], low[CHANNELS + i], fx, fy));
        return;
    }
    int right = within(left + 1, c.width, border), lower = within(upper + 1, c.height, border);
    left = within(left, c.width, border);
    upper = within(upper, c.height, border);
    for (int i = 0; i < CHANNELS; i++) {
        float a = value_at<T, CHANNELS>(source, c, left, upper, i), b = value_at<T, CHANNELS>(source, c, right, upper, i);
        float d = value_at<T, CHANNELS>(source, c, left, lower, i), e = value_at<T, CHANNELS>(source, c, right, lower, i);
        target[i] = stored<T>(fused_between(a, b, d, e, fx, fy));
    }
}
