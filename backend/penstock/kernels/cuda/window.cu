// A box of an array into another: crop, slice, pad, flip, transpose, cast, and crop-mirror-normalize.

const int DIMS = 6;

struct Window {
    uint64 source, target;
    int64 extents[DIMS];        // of the target, in its own order of dimensions
    int64 anchors[DIMS];        // where the box begins in the source, in the target's order
    int64 sizes[DIMS];          // of the source, in the target's order
    int64 strides[DIMS];        // of the source, in the target's order, in elements
    int32 mirrored[DIMS];
    int32 channel_dim;          // the dimension of channels in the target, or -1
    int32 channels;             // those that the source has
    int32 normalize, fill_count;
    float mean[16], factor[16];
    double fill[16];
    float shift;
    int32 padding;
};

template <typename In, typename Out>
__global__ void window(const int64 *first_blocks, const Window *windows, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Window &w = windows[sample];
    int64 volume = 1;
    for (int d = 0; d < DIMS; d++) volume *= w.extents[d];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= volume) return;
    int64 rest = element, offset = 0;
    int channel = 0;
    bool inside = true, added = false;
    for (int d = DIMS - 1; d >= 0; d--) {
        int64 extent = w.extents[d];
        int64 position = rest % extent;
        rest /= extent;
        if (d == w.channel_dim) {
            channel = int(position);
            added = position >= w.channels && w.normalize;
        }
        if (w.mirrored[d]) position = extent - 1 - position;
        position += w.anchors[d];
        inside &= position >= 0 && position < w.sizes[d];
        offset += position * w.strides[d];
    }
    Out *target = reinterpret_cast<Out *>(w.target);
    if (!inside || added) {
        target[element] = converted<Out>(w.fill[w.fill_count > 1 ? channel : 0]);
        return;
    }
    In value = reinterpret_cast<const In *>(w.source)[offset];
    if (w.normalize)
        target[element] = converted<Out>((converted<float>(value) - w.mean[channel]) * w.factor[channel] + w.shift);
    else
        target[element] = converted<Out>(value);
}
