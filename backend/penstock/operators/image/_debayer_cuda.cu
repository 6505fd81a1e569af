// Demosaicing: each colour that a pixel lacks is the mean of the neighbours that have this colour. Pixels on the edge get the
// colours of the nearest inner pixel.

template <typename T>
__global__ void debayer(const int64 *__restrict__ first_blocks, const Mosaic *__restrict__ mosaics, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Mosaic &p = mosaics[sample];
    int64 pixel = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (pixel >= p.pixels) return;
    Place place = place_of(pixel, p.width);
    T *target = reinterpret_cast<T *>(p.target) + 3 * pixel;
    if (p.height <= 2 || p.width <= 2) {
        target[0] = target[1] = target[2] = 0;
        return;
    }
    int y = min(max(int(place.row), 1), p.height - 2), x = min(max(int(place.column), 1), p.width - 2);
    const T *here = reinterpret_cast<const T *>(p.source) + int64(y) * p.width + x, *above = here - p.width, *below = here + p.width;
    uint32 beside = uint32(here[-1]) + here[1], along = uint32(*above) + *below;
    bool blue_row = (y & 1) == p.blue_y, blue_column = (x & 1) == p.blue_x;
    uint32 green = *here, of_row, of_column;    // of_row: the colour, red or blue, that this row has; of_column: the other one
    if (blue_row == blue_column) {
        green = (beside + along + 2) >> 2;
        of_row = *here;
        of_column = (uint32(above[-1]) + above[1] + below[-1] + below[1] + 2) >> 2;
    } else {
        of_row = (beside + 1) >> 1;
        of_column = (along + 1) >> 1;
    }
    target[0] = T(blue_row ? of_column : of_row);
    target[1] = T(green);
    target[2] = T(blue_row ? of_row : of_column);
}
