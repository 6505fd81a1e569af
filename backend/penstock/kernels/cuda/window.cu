// Copies a box of an array to a box of another: for crop, slice, pad, flip, transpose, cast, join, erase and crop-mirror-normalize.
//
// A thread computes units of neighbouring target elements, and writes a unit with one instruction if possible. It finds the source of a
// unit's first element by divisions, and the others by adding strides. A block that lies within one line of the box divides only once; if
// arrays are only converted or joined, most blocks do.

const int SHORT_LINE = 64;

__device__ inline uint32 divided(uint32 value, const Dimension &by) {
    return divided(value, Divisor{uint32(by.extent), uint32(by.divisor), uint32(by.divisor >> 32)});
}
__device__ inline uint64 divided(uint64 value, const Dimension &by) { return value / uint64(by.extent); }

template <typename Index>
__device__ inline bool has(const Dimension &d, Index position) {
    return position >= Index(d.begin) && position < Index(d.end);
}

// The location of an element of the box: its positions along the two innermost dimensions, and its offsets in source and target.
template <typename Index>
struct Location {
    typedef typename Signed<Index>::Type Offset;
    Index x, y;
    Offset source, target;
    int outer_channel;
    bool outer_inside;

    __device__ Location(const Window &w, Index element) : outer_channel(0), outer_inside(true) {
        Index line = divided(element, w.dims[0]), rest = divided(line, w.dims[1]);
        x = element - line * Index(w.dims[0].extent);
        y = line - rest * Index(w.dims[1].extent);
        source = Offset(x) * Offset(w.dims[0].step) + Offset(y) * Offset(w.dims[1].step);
        target = Offset(x) * Offset(w.dims[0].target_step) + Offset(y) * Offset(w.dims[1].target_step);
        for (int d = 2; d < w.rank; d++) {
            Index outer = divided(rest, w.dims[d]), position = rest - outer * Index(w.dims[d].extent);
            source += Offset(position) * Offset(w.dims[d].step);
            target += Offset(position) * Offset(w.dims[d].target_step);
            outer_inside = outer_inside && has(w.dims[d], position);
            if (d == w.channel_dim) outer_channel = int(position);
            rest = outer;
        }
    }

    __device__ bool line_inside(const Window &w) const { return outer_inside && has(w.dims[1], y); }

    __device__ int channel(const Window &w) const {
        return w.channel_dim == 0 ? int(x) : w.channel_dim == 1 ? int(y) : outer_channel;
    }

    // Whether the next `count` elements are on one line.
    __device__ bool on_line(const Window &w, int count) const { return x + count <= Index(w.dims[0].extent); }

    // Whether the next `count` elements all lie in the source, or none of them does.
    __device__ bool all_inside(const Window &w, int count) const {
        return line_inside(w) && x >= Index(w.dims[0].begin) && x + count <= Index(w.dims[0].end);
    }
    __device__ bool none_inside(const Window &w, int count) const {
        return !line_inside(w) || x + count <= Index(w.dims[0].begin) || x >= Index(w.dims[0].end);
    }

    // Whether the next `count` elements are within the two innermost dimensions.
    __device__ bool on_plane(const Window &w, int count) const {
        return (Index(w.dims[1].extent) - y) * Index(w.dims[0].extent) - x >= count;
    }
};

// Iterates over the source elements of the two innermost dimensions.
template <typename Index>
struct Cursor {
    typedef typename Signed<Index>::Type Offset;
    Index x, y, extent;
    Offset offset, step, jump;      // step: to the next element of a line; jump: from the last element of a line to the next line

    __device__ Cursor(const Window &w, const Location<Index> &p)
        : x(p.x), y(p.y), extent(Index(w.dims[0].extent)), offset(p.source), step(Offset(w.dims[0].step)),
          jump(Offset(w.dims[1].step) - Offset(extent - 1) * step) {}

    __device__ void next() {
        x++;
        bool at_end = x == extent;
        offset += at_end ? jump : step;
        x = at_end ? 0 : x;
        y += at_end;
    }
};

// The result of a source value, and of an element outside the source. `PLAIN`: values are not normalized, and all channels are treated
// alike.
template <bool PLAIN, typename Out, typename In>
__device__ inline Out finished(const Window &w, const float *values, In value, int channel) {
    if (PLAIN || !w.normalize) return converted<Out>(value);
    const float *mean = values + w.fill_count, *factor = mean + w.channels;
    return converted<Out>((converted<float>(value) - mean[channel]) * factor[channel] + w.shift);
}

template <bool PLAIN, typename Out>
__device__ inline Out filled(const Window &w, const float *values, int channel) {
    return converted<Out>(values[!PLAIN && w.fill_count > 1 ? channel : 0]);
}

// Copies UNITS units of one line of the source; the units of the block's other threads lie between them.
template <int UNIT, int UNITS, bool PLAIN, typename In, typename Out, typename Index>
__device__ inline void copy_line(const Window &w, const float *values, const Location<Index> &p, int own, const In *source,
                                 Out *target) {
    typedef typename Signed<Index>::Type Offset;
    Offset step = Offset(w.dims[0].step), target_step = Offset(w.dims[0].target_step);
    Pack<In, UNIT> taken[UNITS];
    // All units are read before any is used, so that the reads overlap.
#pragma unroll
    for (int n = 0; n < UNITS; n++) {
        Offset first = own + n * int(UNIT * blockDim.x);
        taken[n] = read_pack<UNIT>(source + (p.source + first * step), step);
    }
    int channel = p.channel(w), next = w.channel_dim == 0;
#pragma unroll
    for (int n = 0; n < UNITS; n++) {
        Pack<Out, UNIT> results;
        Offset first = own + n * int(UNIT * blockDim.x);
        for (int i = 0; i < UNIT; i++) {
            int own_channel = channel + next * int(first + i);
            results.values[i] = finished<PLAIN, Out>(w, values, taken[n].values[i], own_channel);
        }
        write_pack<UNIT>(target + (p.target + first * target_step), results, target_step);
    }
}

// Fills a unit that lies outside the source, on one line.
template <int UNIT, typename Out, typename Index>
__device__ inline void fill_line(const Window &w, const float *values, const Location<Index> &p, Out *target) {
    Out fill = filled<true, Out>(w, values, 0);
    Pack<Out, UNIT> results;
    for (int i = 0; i < UNIT; i++) results.values[i] = fill;
    write_pack<UNIT>(target + p.target, results, w.dims[0].target_step);
}

// Copies a unit that lies within the two innermost dimensions to a contiguous target.
template <int UNIT, bool PLAIN, bool INSIDE, typename In, typename Out, typename Index>
__device__ inline void copy_lines(const Window &w, const float *values, const Location<Index> &p, const In *source, Out *target) {
    In taken[UNIT];
    int channels[UNIT];
    uint32 inside = 0;
    Cursor<Index> from(w, p);
#pragma unroll
    for (int i = 0; i < UNIT; i++, from.next()) {
        bool has_value = INSIDE || (p.outer_inside && has(w.dims[1], from.y) && has(w.dims[0], from.x));
        inside |= uint32(has_value) << i;
        if (!PLAIN) channels[i] = w.channel_dim == 0 ? int(from.x) : w.channel_dim == 1 ? int(from.y) : p.outer_channel;
        if (has_value) taken[i] = source[from.offset];
    }
    Pack<Out, UNIT> results;
#pragma unroll
    for (int i = 0; i < UNIT; i++) {
        int channel = PLAIN ? 0 : channels[i];
        results.values[i] = INSIDE || (inside >> i & 1) ? finished<PLAIN, Out>(w, values, taken[i], channel)
                                                        : filled<PLAIN, Out>(w, values, channel);
    }
    write_pack<UNIT>(target + p.target, results);
}

template <bool PLAIN, typename In, typename Out, typename Index>
__device__ inline void copy_one(const Window &w, const float *values, const Location<Index> &p, const In *source, Out *target) {
    bool has_value = p.line_inside(w) && has(w.dims[0], p.x);
    int channel = p.channel(w);
    target[p.target] = has_value ? finished<PLAIN, Out>(w, values, source[p.source], channel)
                                 : filled<PLAIN, Out>(w, values, channel);
}

template <typename In, typename Out, typename Index, bool PLAIN>
__global__ void __launch_bounds__(THREADS, 4) window(const int64 *__restrict__ first_blocks, const Window *__restrict__ windows,
                                                 int samples, const float *__restrict__ table) {
    const int UNIT = 16 / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Window &w = windows[sample];
    const float *values = table + w.values;
    const In *source = reinterpret_cast<const In *>(w.source);
    Out *target = reinterpret_cast<Out *>(w.target);
    // Units begin at aligned target addresses, so the first one may begin up to `missing` elements before the box.
    Index missing = w.contiguous ? Index(w.target / sizeof(Out) % UNIT) : 0, end = Index(w.volume) + missing;
    Index begin = Index(blockIdx.x - first_blocks[sample]) * BLOCK_ELEMENTS;
    if (begin >= missing && begin + BLOCK_ELEMENTS <= end) {
        Location<Index> first(w, begin - missing);
        if (first.on_line(w, BLOCK_ELEMENTS) && first.all_inside(w, BLOCK_ELEMENTS)) {
            const int UNITS = BLOCK_ELEMENTS / UNIT / THREADS;
            copy_line<UNIT, UNITS, PLAIN>(w, values, first, UNIT * threadIdx.x, source, target);
            return;
        }
    }
    if (!w.contiguous && Index(w.dims[0].extent) < SHORT_LINE) {
        // Writes to adjacent addresses are combined if adjacent threads make them.
        for (Index i = begin + threadIdx.x; i < end && i < begin + BLOCK_ELEMENTS; i += blockDim.x)
            copy_one<PLAIN>(w, values, Location<Index>(w, i), source, target);
        return;
    }
    for (int i = UNIT * threadIdx.x; i < BLOCK_ELEMENTS; i += UNIT * blockDim.x) {
        Index unit = begin + i;
        if (unit >= end) return;
        Index from = unit < missing ? missing : unit, to = end - unit < UNIT ? end : unit + UNIT;
        Location<Index> place(w, from - missing);
        bool is_whole = to - from == UNIT, on_line = is_whole && place.on_line(w, UNIT);
        if (on_line && place.all_inside(w, UNIT)) {
            copy_line<UNIT, 1, PLAIN>(w, values, place, 0, source, target);
        } else if (PLAIN && on_line && place.none_inside(w, UNIT)) {
            fill_line<UNIT>(w, values, place, target);
        } else if (is_whole && w.contiguous && place.on_plane(w, UNIT)) {
            if (w.inside) copy_lines<UNIT, PLAIN, true>(w, values, place, source, target);
            else copy_lines<UNIT, PLAIN, false>(w, values, place, source, target);
        } else {
#pragma unroll 1
            for (Index element = from; element < to; element++)
                copy_one<PLAIN>(w, values, Location<Index>(w, element - missing), source, target);
        }
    }
}
