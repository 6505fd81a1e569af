// Cuts boxes out of images. `fill` has one value for each channel, or a single one for all channels.

template <typename T>
__global__ void cut_boxes(const int64 *__restrict__ first_blocks, const Crop *__restrict__ crops, int count,
                          const T *__restrict__ fill, int fills) {
    int number = sample_of(first_blocks, count, blockIdx.x);
    const Crop c = crops[number];
    int64 first = ((blockIdx.x - first_blocks[number]) * THREADS + threadIdx.x) * PACK;
    if (first >= c.elements) return;
    int size = c.elements - first < PACK ? int(c.elements - first) : PACK;
    Spot spot = spot_of(first, int(c.out_height), int(c.out_width), c.inner);
    const T *source = reinterpret_cast<const T *>(c.source);
    Pack<T, PACK> values;
    for (int i = 0; i < size; i++) {
        int64 y = spot.y + c.top, x = spot.x + c.left;
        int64 place = ((spot.plane * c.height + y) * c.width + x) * c.inner + spot.inner;
        bool is_inside = y >= 0 && y < c.height && x >= 0 && x < c.width;
        // For CHW images, the plane is the channel and the inner position is 0; for HWC images, it is the other way round.
        values.values[i] = is_inside ? source[place] : fill[fills == 1 ? 0 : spot.plane + spot.inner];
        if (++spot.inner < c.inner) continue;
        spot.inner = 0;
        if (++spot.x < c.out_width) continue;
        spot.x = 0;
        if (++spot.y < c.out_height) continue;
        spot.y = 0;
        spot.plane++;
    }
    T *target = reinterpret_cast<T *>(c.target) + first;
    if (size == PACK) write_pack<PACK>(target, values);
    for (int i = 0; i < size && size < PACK; i++) target[i] = values.values[i];
}
