// A box of an array into a box of another: crop, slice, pad, flip, transpose, cast, join, erase, crop-mirror-normalize.

const int DIMS = 6;

struct Window {
    uint64 source, target;
    int64 extents[DIMS];            // of the box, in the target's order of dimensions, as all that follows
    int64 anchors[DIMS];            // where the box begins in the source
    int64 sizes[DIMS];              // of the source
    int64 strides[DIMS];            // of the source, in elements
    int64 target_strides[DIMS];
    int64 volume;                   // elements of the box
    int32 rank, mirrored;           // dimensions in use; one bit for each that is read backwards
    int32 channel_dim;              // the dimension of channels, or -1
    int32 channels;                 // those that the source has
    int32 normalize, fill_count;
    int32 values, padding;          // where the table has: fill values, then each channel's mean and factor
    float shift;
    int32 padding2;
};

template <typename In, typename Out, typename Index>
__global__ void window(const int64 *__restrict__ first_blocks, const Window *__restrict__ windows, int samples,
                       const float *__restrict__ table) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Window &w = windows[sample];
    Index rest = Index(blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (rest >= Index(w.volume)) return;
    int64 offset = 0, place = 0;
    int channel = 0;
    bool inside = true;
    for (int d = w.rank - 1; d >= 0; d--) {
        Index extent = Index(w.extents[d]);
        int64 position = rest % extent;
        rest /= extent;
        place += position * w.target_strides[d];
        if (d == w.channel_dim) {
            channel = int(position);
            // Channels that padding adds have no value to normalize.
            inside &= !w.normalize || channel < w.channels;
        }
        if (w.mirrored >> d & 1) position = int64(extent) - 1 - position;
        position += w.anchors[d];
        inside &= position >= 0 && position < w.sizes[d];
        offset += position * w.strides[d];
    }
    Out *target = reinterpret_cast<Out *>(w.target) + place;
    const float *values = table + w.values;
    if (!inside) {
        *target = converted<Out>(values[w.fill_count > 1 ? channel : 0]);
        return;
    }
    In value = reinterpret_cast<const In *>(w.source)[offset];
    if (w.normalize) {
        const float *mean = values + w.fill_count, *factor = mean + w.channels;
        *target = converted<Out>((converted<float>(value) - mean[channel]) * factor[channel] + w.shift);
    } else {
        *target = converted<Out>(value);
    }
}
