// Affine warping of images (depth 1) and volumes. Pixel centres are at +0.5 in input and output.
//
// As on the CPU, positions in the input are computed anew at the beginning of each tile of a row and added up inside it,
// so that both round alike. One thread adds up a whole tile and leaves marks, from which each pixel's thread goes on.

struct Warp {
    uint64 source, target;
    uint64 matrix_at;           // where the prepared matrix is; 0: it is `matrix`
    int32 depth, height, width, channels;
    int32 out_depth, out_height, out_width;
    int32 tiles, rows;          // of a row; rows of a block, more than one only where a tile is a row
    int32 volumetric, linear, has_fill;
    float matrix[12];           // rows x, y, z of [M|t]
    float fill;
    int32 padding;
};

// What becomes of a matrix [M|t] that a user gave, of type float.
struct Given {
    uint64 source, target;
    int32 rank, inverted;
};

__global__ void prepare(const int64 *__restrict__, const Given *__restrict__ matrices, int samples) {
    int sample = blockIdx.x * blockDim.x + threadIdx.x;
    if (sample >= samples) return;
    const Given &p = matrices[sample];
    const float *source = reinterpret_cast<const float *>(p.source);
    float *target = reinterpret_cast<float *>(p.target);
    // Of three dimensions, whatever it is of; without translation.
    double m[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, inverse[9], determinant = 0.0;
    float moved[3] = {0.0f, 0.0f, 0.0f};
    for (int i = 0; i < p.rank; i++) {
        for (int j = 0; j < p.rank; j++) m[3 * i + j] = source[i * (p.rank + 1) + j];
        moved[i] = source[i * (p.rank + 1) + p.rank];
    }
    if (p.inverted) {
        for (int i = 0; i < 9; i++) {
            int a = (i % 3 + 1) % 3 * 3, b = (i % 3 + 2) % 3 * 3, c = (i / 3 + 1) % 3, d = (i / 3 + 2) % 3;
            inverse[i] = m[a + c] * m[b + d] - m[a + d] * m[b + c];
        }
        for (int j = 0; j < 3; j++) determinant += m[3 * j] * inverse[j];
        for (int i = 0; i < 9; i++) m[i] = inverse[i] / determinant;
    }
    for (int i = 0; i < 3; i++) {
        float translation = 0.0f;
        for (int j = 0; j < 3; j++) {
            target[4 * i + j] = float(m[3 * i + j]);
            translation += float(m[3 * i + j]) * moved[j];
        }
        target[4 * i + 3] = p.inverted ? -translation : moved[i];
    }
}

const int TILE = 256;
const int MARK = 16;            // pixels from mark to mark

// The position of the first pixel of a tile, in the order of additions that the CPU has.
__device__ inline float beginning(const float *m, int x, float cy, float cz, bool volumetric) {
    float value = m[3] + m[0] * (x + 0.5f);
    value += m[1] * cy;
    if (volumetric) value += m[2] * cz;
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

template <typename In>
__device__ inline float interpolated(const Warp &w, const In *source, float sx, float sy, float sz, int c) {
    int x = int(floorf(sx)), y = int(floorf(sy)), z = int(floorf(sz));
    if (!w.linear) return tap(w, source, x, y, z, c);
    float fx = sx - x, fy = sy - y, fz = sz - z;
    if (!w.volumetric) {
        float a = tap(w, source, x, y, 0, c), b = tap(w, source, x + 1, y, 0, c);
        float d = tap(w, source, x, y + 1, 0, c), e = tap(w, source, x + 1, y + 1, 0, c);
        float top = a + (b - a) * fx, low = d + (e - d) * fx;
        return top + (low - top) * fy;
    }
    float value = 0.0f;
    for (int k = 0; k < 8; k++) {
        int i = k & 1, j = (k >> 1) & 1, n = k >> 2;
        float weight = (i ? fx : 1 - fx) * (j ? fy : 1 - fy) * (n ? fz : 1 - fz);
        value += weight * tap(w, source, x + i, y + j, z + n, c);
    }
    return value;
}

template <typename In, typename Out>
__global__ void warp(const int64 *__restrict__ first_blocks, const Warp *__restrict__ warps, int samples) {
    __shared__ float marks[3 * TILE];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Warp &w = warps[sample];
    const float *matrix = w.matrix_at ? reinterpret_cast<const float *>(w.matrix_at) : w.matrix;
    int block = int(blockIdx.x - first_blocks[sample]);
    int begin_x = block % w.tiles * TILE, begin_row = block / w.tiles * w.rows;
    int all_rows = w.out_depth * w.out_height;
    int width = min(w.out_width, TILE), marks_per_row = (width + MARK - 1) / MARK;
    int axes = w.volumetric ? 3 : 2;
    for (int i = threadIdx.x; i < w.rows * axes; i += blockDim.x) {
        int row = begin_row + i / axes, axis = i % axes;
        if (row >= all_rows) break;
        const float *m = matrix + 4 * axis;
        float cy = row % w.out_height + 0.5f, cz = row / w.out_height + 0.5f;
        float value = beginning(m, begin_x, cy, cz, w.volumetric), step = m[0];
        float *own = marks + axis * TILE + i / axes * marks_per_row;
        for (int k = 0; k < marks_per_row; k++) {
            own[k] = value;
            for (int j = 0; j < MARK; j++) value += step;
        }
    }
    __syncthreads();
    int local = threadIdx.x / width, column = threadIdx.x % width;
    int row = begin_row + local, x = begin_x + column;
    if (local >= w.rows || row >= all_rows || x >= w.out_width) return;
    float position[3] = {0.0f, 0.0f, 0.0f};
    for (int axis = 0; axis < axes; axis++) {
        float value = marks[axis * TILE + local * marks_per_row + column / MARK], step = matrix[4 * axis];
        for (int j = 0; j < column % MARK; j++) value += step;
        position[axis] = w.linear ? value - 0.5f : value;
    }
    const In *source = reinterpret_cast<const In *>(w.source);
    Out *target = reinterpret_cast<Out *>(w.target) + (int64(row) * w.out_width + x) * w.channels;
    for (int c = 0; c < w.channels; c++)
        target[c] = converted<Out>(interpolated(w, source, position[0], position[1], position[2], c));
}
