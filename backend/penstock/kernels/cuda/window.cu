// A box of an array into a box of another: crop, slice, pad, flip, transpose, cast, join, erase, crop-mirror-normalize.
//
// A thread makes a unit of neighbouring elements of the target at a time, which it writes at once where it can. Where
// the first of them comes from is worked out by divisions; from there on it steps.

const int DIMS = 6;
const int BLOCK_ELEMENTS = 4096;    // of a block; as in window.py

struct Dimension {
    int64 extent;                   // of the box
    int64 begin, end;               // the positions that the source has
    int64 step, target_step;        // from one position to the next, in elements; negative where it is read backwards
    uint32 factor, shift;           // as of a Divisor by the extent
};

struct Window {
    uint64 source, target;          // of the box's first element, even where the source does not have that
    int64 volume;                   // elements of the box
    Dimension dims[DIMS];           // from the innermost on; at least two
    int32 rank;                     // dimensions in use
    int32 contiguous;               // whether the box lies in the target without gaps
    int32 channel_dim;              // the dimension of channels, or -1
    int32 channels;                 // those that the source has
    int32 normalize, fill_count;
    int32 values;                   // where the table has: fill values, then each channel's mean and factor
    float shift;
};

__device__ inline uint32 divided(uint32 value, const Dimension &by) {
    return divided(value, Divisor{uint32(by.extent), by.factor, by.shift});
}
__device__ inline uint64 divided(uint64 value, const Dimension &by) { return value / uint64(by.extent); }

template <typename Index>
__device__ inline bool has(const Dimension &d, Index position) {
    return position >= Index(d.begin) && position < Index(d.end);
}

// A place in the box: positions along the two innermost dimensions, and what the others amount to.
template <typename Index>
struct Walk {
    Index element, x, y;
    int64 offset, place;            // in source and target
    int outer_channel;
    bool outer_inside;

    __device__ Walk(const Window &w, Index first) : element(first), outer_channel(0), outer_inside(true) {
        Index rest = divided(first, w.dims[0]);
        x = first - rest * Index(w.dims[0].extent);
        Index line = rest;
        rest = divided(line, w.dims[1]);
        y = line - rest * Index(w.dims[1].extent);
        offset = int64(x) * w.dims[0].step + int64(y) * w.dims[1].step;
        place = int64(x) * w.dims[0].target_step + int64(y) * w.dims[1].target_step;
        for (int d = 2; d < w.rank; d++) {
            Index outer = divided(rest, w.dims[d]), position = rest - outer * Index(w.dims[d].extent);
            offset += int64(position) * w.dims[d].step;
            place += int64(position) * w.dims[d].target_step;
            outer_inside = outer_inside && has(w.dims[d], position);
            if (d == w.channel_dim) outer_channel = int(position);
            rest = outer;
        }
    }

    // To the next element; not beyond the two innermost dimensions.
    __device__ void next(const Window &w) {
        element++;
        x++;
        offset += w.dims[0].step;
        place += w.dims[0].target_step;
        if (x < Index(w.dims[0].extent)) return;
        offset += w.dims[1].step - int64(x) * w.dims[0].step;
        place += w.dims[1].target_step - int64(x) * w.dims[0].target_step;
        x = 0;
        y++;
    }

    // Elements from here to the end of the two innermost dimensions.
    __device__ Index left(const Window &w) const {
        return (Index(w.dims[1].extent) - y) * Index(w.dims[0].extent) - x;
    }

    __device__ bool inside(const Window &w) const { return outer_inside && has(w.dims[1], y) && has(w.dims[0], x); }

    // Whether this and the next elements, `count` in all, are of one line, and of the source.
    __device__ bool on_line(const Window &w, int count) const {
        return outer_inside && has(w.dims[1], y) && x >= Index(w.dims[0].begin) && x + count <= Index(w.dims[0].end);
    }

    __device__ int channel(const Window &w) const {
        return w.channel_dim == 0 ? int(x) : w.channel_dim == 1 ? int(y) : outer_channel;
    }
};

template <typename Out, typename In>
__device__ inline Out finished(const Window &w, const float *values, In value, int channel) {
    if (!w.normalize) return converted<Out>(value);
    const float *mean = values + w.fill_count, *factor = mean + w.channels;
    return converted<Out>((converted<float>(value) - mean[channel]) * factor[channel] + w.shift);
}

template <typename Out>
__device__ inline Out filled(const Window &w, const float *values, int channel) {
    return converted<Out>(values[w.fill_count > 1 ? channel : 0]);
}

// A unit of one line of the source.
template <typename In, typename Out, typename Index>
__device__ inline void copy_line(const Window &w, const float *values, const Walk<Index> &walk) {
    const int UNIT = pack_size<Out>();
    Pack<In, UNIT> taken = read_pack<UNIT>(reinterpret_cast<const In *>(w.source) + walk.offset, w.dims[0].step);
    Pack<Out, UNIT> results;
    int channel = walk.channel(w), next = w.channel_dim == 0;
    for (int i = 0; i < UNIT; i++) results.values[i] = finished<Out>(w, values, taken.values[i], channel + i * next);
    write_pack<UNIT>(reinterpret_cast<Out *>(w.target) + walk.place, results, w.dims[0].target_step);
}

// A unit of the two innermost dimensions, to where the target goes on without gaps.
template <typename In, typename Out, typename Index>
__device__ inline void gather(const Window &w, const float *values, Walk<Index> walk) {
    const int UNIT = pack_size<Out>();
    const In *source = reinterpret_cast<const In *>(w.source);
    Out *target = reinterpret_cast<Out *>(w.target) + walk.place;
    In taken[UNIT];
    int channels[UNIT];
    uint32 inside = 0;
    // All is read before any of it is used, so that it is read at the same time.
#pragma unroll
    for (int i = 0; i < UNIT; i++, walk.next(w)) {
        bool has_value = walk.inside(w);
        inside |= uint32(has_value) << i;
        channels[i] = walk.channel(w);
        if (has_value) taken[i] = source[walk.offset];
    }
    Pack<Out, UNIT> results;
    for (int i = 0; i < UNIT; i++) {
        bool has_value = inside >> i & 1;
        results.values[i] = has_value ? finished<Out>(w, values, taken[i], channels[i]) : filled<Out>(w, values, channels[i]);
    }
    write_pack<UNIT>(target, results);
}

// From anywhere to anywhere.
template <typename In, typename Out, typename Index>
__device__ inline void copy_each(const Window &w, const float *values, Walk<Index> walk, int count) {
    const In *source = reinterpret_cast<const In *>(w.source);
    Out *target = reinterpret_cast<Out *>(w.target);
#pragma unroll 1
    for (int i = 0; i < count; i++, walk.next(w)) {
        if (!walk.left(w)) walk = Walk<Index>(w, walk.element);
        int channel = walk.channel(w);
        target[walk.place] = walk.inside(w) ? finished<Out>(w, values, source[walk.offset], channel)
                                            : filled<Out>(w, values, channel);
    }
}

template <typename In, typename Out, typename Index>
__global__ void window(const int64 *__restrict__ first_blocks, const Window *__restrict__ windows, int samples,
                       const float *__restrict__ table) {
    const int UNIT = pack_size<Out>();
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Window &w = windows[sample];
    const float *values = table + w.values;
    // Units begin where the target is aligned; what is missing of the first one is in front of the box.
    Index missing = w.contiguous ? Index(w.target / sizeof(Out) % UNIT) : 0, end = Index(w.volume) + missing;
    Index begin = Index(blockIdx.x - first_blocks[sample]) * BLOCK_ELEMENTS;
    for (int i = UNIT * threadIdx.x; i < BLOCK_ELEMENTS; i += UNIT * blockDim.x) {
        Index unit = begin + i;
        if (unit >= end) return;
        Index from = unit < missing ? missing : unit, to = end - unit < UNIT ? end : unit + UNIT;
        Walk<Index> walk(w, from - missing);
        int count = int(to - from);
        if (count == UNIT && walk.on_line(w, UNIT)) copy_line<In, Out>(w, values, walk);
        else if (count == UNIT && w.contiguous && walk.left(w) >= UNIT) gather<In, Out>(w, values, walk);
        else copy_each<In, Out>(w, values, walk, count);
    }
}
