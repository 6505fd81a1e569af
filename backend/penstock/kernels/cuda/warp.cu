// Affine warping of images (depth 1) and volumes. Pixel centres are at +0.5 in input and output.

struct Warp {
    uint64 source, target;
    int32 depth, height, width, channels;
    int32 out_depth, out_height, out_width;
    int32 volumetric, linear, has_fill;
    float matrix[12];           // rows x, y, z of [M|t]
    float fill;
    int32 padding;
};

const int TILE = 256;

// The position in the input: computed anew at the beginning of each tile of a row, and added up inside it, as on the CPU.
__device__ inline float position(const float *m, int x, float cy, float cz, bool volumetric) {
    int begin = x / TILE * TILE;
    float value = m[3] + m[0] * (begin + 0.5f);
    value += m[1] * cy;
    if (volumetric) value += m[2] * cz;
    for (int i = begin; i < x; i++) value += m[0];
    return value;
}

template <typename In>
__device__ inline float tap(const Warp &w, const In *source, int x, int y, int z, int c) {
    if (w.has_fill && (x < 0 || x >= w.width || y < 0 || y >= w.height || z < 0 || z >= w.depth)) return w.fill;
    x = min(max(x, 0), w.width - 1);
    y = min(max(y, 0), w.height - 1);
    z = min(max(z, 0), w.depth - 1);
    return to_float(source[((int64(z) * w.height + y) * w.width + x) * w.channels + c]);
}

template <typename In, typename Out>
__global__ void warp(const int64 *__restrict__ first_blocks, const Warp *__restrict__ warps, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Warp w = warps[sample];
    int64 pixel = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (pixel >= int64(w.out_depth) * w.out_height * w.out_width) return;
    int x = int(pixel % w.out_width), y = int(pixel / w.out_width % w.out_height), z = int(pixel / w.out_width / w.out_height);
    float shift = w.linear ? 0.5f : 0.0f;
    float sx = position(w.matrix, x, y + 0.5f, z + 0.5f, w.volumetric) - shift;
    float sy = position(w.matrix + 4, x, y + 0.5f, z + 0.5f, w.volumetric) - shift;
    float sz = w.volumetric ? position(w.matrix + 8, x, y + 0.5f, z + 0.5f, true) - shift : 0.0f;
    int x0 = int(floorf(sx)), y0 = int(floorf(sy)), z0 = int(floorf(sz));
    float fx = sx - x0, fy = sy - y0, fz = sz - z0;
    const In *source = reinterpret_cast<const In *>(w.source);
    Out *target = reinterpret_cast<Out *>(w.target) + pixel * w.channels;
    for (int c = 0; c < w.channels; c++) {
        float value;
        if (!w.linear) {
            value = tap(w, source, x0, y0, z0, c);
        } else if (!w.volumetric) {
            float a = tap(w, source, x0, y0, 0, c), b = tap(w, source, x0 + 1, y0, 0, c);
            float d = tap(w, source, x0, y0 + 1, 0, c), e = tap(w, source, x0 + 1, y0 + 1, 0, c);
            float top = a + (b - a) * fx, low = d + (e - d) * fx;
            value = top + (low - top) * fy;
        } else {
            value = 0.0f;
            for (int k = 0; k < 8; k++) {
                int i = k & 1, j = (k >> 1) & 1, n = k >> 2;
                float weight = (i ? fx : 1 - fx) * (j ? fy : 1 - fy) * (n ? fz : 1 - fz);
                value += weight * tap(w, source, x0 + i, y0 + j, z0 + n, c);
            }
        }
        target[c] = converted<Out>(value);
    }
}
