// Affine warping of images (depth 1) and volumes. Pixel centres are at +0.5 in input and output.
//
// As on the CPU, a row is cut into tiles; the input position is computed anew at the beginning of each tile, and steps are added to it
// within the tile, so that both round alike. One thread adds up a whole row of a tile and stores marks, positions from which the pixels'
// threads continue.

// Inverts matrices of rows of three floats, with the same roundings as `inverse_in_single`.
__device__ inline void invert_two_rows(const float *m, float *inverse) {
    float determinant = m[0] * m[4] - m[1] * m[3];
    inverse[0] = m[4] / determinant;
    inverse[1] = -m[1] / determinant;
    inverse[3] = -m[3] / determinant;
    inverse[4] = m[0] / determinant;
}

// `inverse` must be the identity matrix at first; `m` is overwritten.
__device__ inline void invert_three_rows(float *m, float *inverse) {
    for (int pivot = 0; pivot < 3; pivot++) {
        int best = pivot;
        for (int row = pivot + 1; row < 3; row++)
            if (fabsf(m[3 * row + pivot]) > fabsf(m[3 * best + pivot])) best = row;
        for (int j = 0; j < 3; j++) {
            float own = m[3 * pivot + j], other = inverse[3 * pivot + j];
            m[3 * pivot + j] = m[3 * best + j], inverse[3 * pivot + j] = inverse[3 * best + j];
            m[3 * best + j] = own, inverse[3 * best + j] = other;
        }
        float factor = 1.0f / m[4 * pivot];
        for (int j = 0; j < 3; j++) {
            if (j > pivot) m[3 * pivot + j] *= factor;
            inverse[3 * pivot + j] *= factor;
        }
        for (int row = 0; row < 3; row++) {
            if (row == pivot) continue;
            double multiple = -m[3 * row + pivot];
            for (int j = 0; j < 3; j++) {
                if (j > pivot) m[3 * row + j] = float(multiple * m[3 * pivot + j] + m[3 * row + j]);
                inverse[3 * row + j] = float(multiple * inverse[3 * pivot + j] + inverse[3 * row + j]);
            }
        }
    }
}

// Prepares users' matrices: inverts them if needed, and pads them to three dimensions.
__global__ void prepare(const int64 *__restrict__, const Given *__restrict__ matrices, int samples) {
    int sample = blockIdx.x * blockDim.x + threadIdx.x;
    if (sample >= samples) return;
    const Given &p = matrices[sample];
    const float *source = reinterpret_cast<const float *>(p.source);
    float *target = reinterpret_cast<float *>(p.target);
    // The matrices are padded to three dimensions; `moved` is the translation.
    float m[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, inverse[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, moved[3] = {0.0f, 0.0f, 0.0f};
    for (int i = 0; i < p.rank; i++) {
        for (int j = 0; j < p.rank; j++) m[3 * i + j] = source[i * (p.rank + 1) + j];
        moved[i] = source[i * (p.rank + 1) + p.rank];
    }
    if (p.inverted && p.rank == 2) invert_two_rows(m, inverse);
    if (p.inverted && p.rank == 3) invert_three_rows(m, inverse);
    for (int i = 0; i < 3; i++) {
        float translation = 0.0f;
        for (int j = 0; j < 3; j++) {
            float element = p.inverted ? inverse[3 * i + j] : m[3 * i + j];
            target[4 * i + j] = element;
            translation += element * moved[j];
        }
        target[4 * i + 3] = p.inverted ? -translation : moved[i];
    }
}

// A block computes ROWS rows of a tile.
const int MARKED = 4;           // pixels from one mark to the next
const int MARKS = TILE / MARKED + 1;    // marks per row; odd, so that threads that write the same mark of all rows use different banks

// The input position of the first pixel of a tile, with additions in the CPU's order.
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
__device__ inline float interpolated_in_volume(const Warp &w, const In *source, float sx, float sy, float sz, int c) {
    int x = int(floorf(sx)), y = int(floorf(sy)), z = int(floorf(sz));
    float fx = sx - x, fy = sy - y, fz = sz - z;
    float planes[2];
    for (int n = 0; n < 2; n++) {
        float lines[2];
        for (int j = 0; j < 2; j++)
            lines[j] = tap(w, source, x, y + j, z + n, c) * (1 - fx) + tap(w, source, x + 1, y + j, z + n, c) * fx;
        planes[n] = lines[0] * (1 - fy) + lines[1] * fy;
    }
    return planes[0] + (planes[1] - planes[0]) * fz;
}

// Interpolates between two neighbours above (a, b) and two below (d, e), with the same roundings as on the CPU.
__device__ inline float blended(float a, float b, float d, float e, float fx, float fy) {
    float top = a * (1 - fx) + b * fx, low = d * (1 - fx) + e * fx;
    return top + (low - top) * fy;
}

// `CHANNELS`: the number of channels of a pixel; 0: `channels` is that number. The same in the functions below.
template <int CHANNELS, typename In, typename Out>
__device__ inline void interpolate(const Warp &w, const In *source, float sx, float sy, int channels, Out *target) {
    int x = int(floorf(sx)), y = int(floorf(sy));
    float fx = sx - x, fy = sy - y;
    if (x >= 0 && x < w.width - 1 && y >= 0 && y < w.height - 1) {
        const In *upper = source + (int64(y) * w.width + x) * channels, *lower = upper + int64(w.width) * channels;
        if constexpr (CHANNELS > 0) {
            float above[2 * CHANNELS], below[2 * CHANNELS];
            read_values<2 * CHANNELS>(upper, above);
            read_values<2 * CHANNELS>(lower, below);
            for (int c = 0; c < CHANNELS; c++) {
                float value = blended(above[c], above[CHANNELS + c], below[c], below[CHANNELS + c], fx, fy);
                target[c] = converted<Out>(value);
            }
        } else {
            for (int c = 0; c < channels; c++) {
                float a = to_float(upper[c]), b = to_float(upper[channels + c]);
                float d = to_float(lower[c]), e = to_float(lower[channels + c]);
                target[c] = converted<Out>(blended(a, b, d, e, fx, fy));
            }
        }
        return;
    }
    if (w.has_fill && (x < -1 || x >= w.width || y < -1 || y >= w.height)) {
        Out fill = converted<Out>(blended(w.fill, w.fill, w.fill, w.fill, fx, fy));
        for (int c = 0; c < channels; c++) target[c] = fill;
        return;
    }
    for (int c = 0; c < channels; c++) {
        float a = tap(w, source, x, y, 0, c), b = tap(w, source, x + 1, y, 0, c);
        float d = tap(w, source, x, y + 1, 0, c), e = tap(w, source, x + 1, y + 1, 0, c);
        target[c] = converted<Out>(blended(a, b, d, e, fx, fy));
    }
}

// Computes all channels of the pixel that is at `position` in the source.
template <int CHANNELS, typename In, typename Out>
__device__ inline void make_pixel(const Warp &w, const In *source, const float *position, int channels, Out *target) {
    float sx = position[0], sy = position[1], sz = position[2];
    if (!w.linear) {
        for (int c = 0; c < channels; c++)
            target[c] = converted<Out>(tap(w, source, int(floorf(sx)), int(floorf(sy)), int(floorf(sz)), c));
    } else if (!w.volumetric) {
        interpolate<CHANNELS>(w, source, sx - 0.5f, sy - 0.5f, channels, target);
    } else {
        for (int c = 0; c < channels; c++)
            target[c] = converted<Out>(interpolated_in_volume(w, source, sx - 0.5f, sy - 0.5f, sz - 0.5f, c));
    }
}

template <typename In, typename Out, int CHANNELS>
__global__ void warp(const int64 *__restrict__ first_blocks, const Warp *__restrict__ warps, int samples) {
    __shared__ float marks[3][ROWS][MARKS];
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Warp &w = warps[sample];
    const float *matrix = w.matrix_at ? reinterpret_cast<const float *>(w.matrix_at) : w.matrix;
    int block = int(blockIdx.x - first_blocks[sample]);
    int begin_x = block % w.tiles * TILE, begin_row = block / w.tiles * ROWS;
    int rows = min(ROWS, w.out_depth * w.out_height - begin_row);
    int columns = min(TILE, w.out_width - begin_x), axes = w.volumetric ? 3 : 2;
    for (int i = threadIdx.x; i < rows * axes; i += blockDim.x) {
        int axis = i / rows, row = begin_row + i % rows;
        const float *m = matrix + 4 * axis;
        float cy = row % w.out_height + 0.5f, cz = row / w.out_height + 0.5f;
        float value = beginning(m, begin_x, cy, cz, w.volumetric), step = m[0];
        for (int k = 0; k * MARKED < columns; k++) {
            marks[axis][i % rows][k] = value;
            for (int j = 0; j < MARKED; j++) value += step;
        }
    }
    __syncthreads();
    int rows_at_once = blockDim.x / columns, column = threadIdx.x % columns, channels = CHANNELS ? CHANNELS : w.channels;
    int own_row = threadIdx.x / columns;
    if (own_row >= rows_at_once) return;
    const In *source = reinterpret_cast<const In *>(w.source);
    float steps[3];
#pragma unroll
    for (int axis = 0; axis < 3; axis++) steps[axis] = axis < axes ? matrix[4 * axis] : 0.0f;
    for (int row = own_row; row < rows; row += rows_at_once) {
        float position[3];
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            float value = axis < axes ? marks[axis][row][column / MARKED] : 0.0f;
            for (int j = 1; j < MARKED; j++) value = column % MARKED >= j ? value + steps[axis] : value;
            position[axis] = value;
        }
        int64 place = int64(begin_row + row) * w.out_width + begin_x + column;
        Out *target = reinterpret_cast<Out *>(w.target) + place * channels;
        if (!CHANNELS) {
            make_pixel<CHANNELS>(w, source, position, channels, target);
            continue;
        }
        // All channels are read before any is written, so that the reads overlap.
        Out made[CHANNELS ? CHANNELS : 1];
        make_pixel<CHANNELS>(w, source, position, CHANNELS, made);
        for (int c = 0; c < CHANNELS; c++) target[c] = made[c];
    }
}
