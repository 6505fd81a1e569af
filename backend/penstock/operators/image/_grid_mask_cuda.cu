// Copies images, with zeros in the squares of a rotated grid. As kernels are compiled without fused multiply-adds, each operation is
// rounded as on the CPU.

__device__ inline bool in_square(float along, float ratio) { return !(along - floorf(along) >= ratio); }

template <typename T>
__global__ void grid_mask(const int64 *__restrict__ first_blocks, const Grid *__restrict__ grids, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Grid &g = grids[sample];
    int64 pixel = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (pixel >= g.pixels) return;
    Place place = place_of(pixel, g.width);
    float x = float(place.column), y = float(place.row);
    float along_x = x * g.cosine - y * g.sine - g.shift_x, along_y = x * g.sine + y * g.cosine - g.shift_y;
    T kept = in_square(along_x, g.ratio) && in_square(along_y, g.ratio) ? T(0) : T(1);
    const T *source = reinterpret_cast<const T *>(g.source) + pixel * g.channels;
    T *target = reinterpret_cast<T *>(g.target) + pixel * g.channels;
    for (int c = 0; c < g.channels; c++) target[c] = source[c] * kept;
}
