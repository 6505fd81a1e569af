// Pastes the masks of boxes into images, with the same operations as on the CPU (_paste_masks_cpu.py) in the same order.

// The area of the image that a mask with a border of one zero covers, and the steps in the mask from one pixel of the image to the next.
struct Window {
    int64 left, top, wide, high;
    float step_x, step_y;
};

// Returns the area of a box's mask. `fault` gets the first box with a coordinate that is NaN or far beyond any image.
template <typename Box>
__device__ inline Window window_of(const Masks &m, int64 number, uint64 *fault) {
    const Box *at = reinterpret_cast<const Box *>(m.boxes) + 4 * number;
    float edges[4];
    for (int i = 0; i < 4; i++) {
        edges[i] = to_float(at[i]);
        if (fabsf(edges[i]) <= MAX_COORDINATE) continue;
        atomicMin(fault, uint64(number));
        return {0, 0, 0, 0, 0.0f, 0.0f};
    }
    float half_x = (edges[2] - edges[0]) * 0.5f * m.factor_x, half_y = (edges[3] - edges[1]) * 0.5f * m.factor_y;
    float x = (edges[2] + edges[0]) * 0.5f, y = (edges[3] + edges[1]) * 0.5f;
    int64 left = int64(x - half_x), top = int64(y - half_y);
    int64 wide = int64(x + half_x) - left + 1, high = int64(y + half_y) - top + 1;
    if (wide < 1) wide = 1;
    if (high < 1) high = 1;
    return {left, top, wide, high, float(m.mask_width + 2) / float(wide), float(m.mask_height + 2) / float(high)};
}

// Returns the interpolated value of a mask with a border of zeros at (x, y); the centre of the mask's first pixel is at (1, 1).
template <typename Mask>
__device__ inline float read_at(const Masks &m, const Mask *mask, float x, float y) {
    int column = int(x), row = int(y);
    float right = x - float(column), lower = y - float(row), total = 0.0f;
    for (int i = 0; i < 2; i++) {
        if (row + i < 1 || row + i > m.mask_height) continue;
        const Mask *line = mask + int64(row + i - 1) * m.mask_width;
        float along = 0.0f;
        for (int j = 0; j < 2; j++)
            if (column + j >= 1 && column + j <= m.mask_width)
                along += to_float(line[column + j - 1]) * (j ? right : 1.0f - right);
        total += along * (i ? lower : 1.0f - lower);
    }
    return total;
}

// Returns the position in the padded mask of the centre of a pixel of the image; `most`: the greatest position, which has no next
// neighbour to interpolate with.
__device__ inline float position_of(int64 pixel, float step, float most) {
    float place = (float(pixel) + 0.5f) * step - 0.5f;
    return place < 0.0f ? 0.0f : place > most ? most : place;
}

template <typename Mask, typename Box, typename Out>
__global__ void paste_masks(const int64 *__restrict__ first_blocks, const Masks *__restrict__ samples, int count, float limit,
                            uint64 *__restrict__ faults) {
    const int PACK = pack_size<Out>();
    const bool is_binary = sizeof(Out) == 1;
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Masks m = samples[sample];
    int64 first = ((blockIdx.x - first_blocks[sample]) * THREADS + threadIdx.x) * PACK;
    if (first >= m.elements) return;
    int size = m.elements - first < PACK ? int(m.elements - first) : PACK;
    Spot spot = spot_of(first, m.height, m.width, 1);
    const Mask *mask = reinterpret_cast<const Mask *>(m.masks) + spot.plane * m.mask_height * m.mask_width;
    Window window = window_of<Box>(m, spot.plane, faults + sample);
    Pack<Out, PACK> results;
    for (int i = 0; i < size; i++) {
        int64 column = spot.x - window.left, row = spot.y - window.top;
        float value = 0.0f;
        if (column >= 0 && column < window.wide && row >= 0 && row < window.high)
            value = read_at(m, mask, position_of(column, window.step_x, float(m.mask_width + 1)),
                            position_of(row, window.step_y, float(m.mask_height + 1)));
        results.values[i] = is_binary ? Out(value > limit) : Out(value);
        if (++spot.x < m.width) continue;
        spot.x = 0;
        if (++spot.y < m.height || i + 1 == size) continue;
        spot.y = 0;
        mask += int64(m.mask_height) * m.mask_width;
        window = window_of<Box>(m, ++spot.plane, faults + sample);
    }
    Out *target = reinterpret_cast<Out *>(m.target) + first;
    if (size == PACK) write_pack<PACK>(target, results);
    for (int i = 0; i < size && size < PACK; i++) target[i] = results.values[i];
}
