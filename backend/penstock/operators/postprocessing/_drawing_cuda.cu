// Shapes on images: outlines of boxes, and texts. A thread copies BYTES neighbouring bytes of an image, but for those of pixels that shapes
// cover: the last shape counts. A block compares its run of bytes with many shapes at a time, and its threads look at those only that reach
// it.

const int RUN_BYTES = THREADS * BYTES;

// The rows and columns that a run of bytes touches, without the ends.
struct Area {
    int64 top, bottom, left, right;
};

__device__ inline Area area_of(const Picture &p, int64 begin, int64 end) {
    if (begin >= end) return {0, 0, 0, 0};
    Place first = place_of(begin / p.channels, p.width), last = place_of((end - 1) / p.channels, p.width);
    bool is_one_row = first.row == last.row;
    return {first.row, last.row + 1, is_one_row ? first.column : 0, is_one_row ? last.column + 1 : int64(p.width)};
}

// Copies a run of a picture, with shapes. A set of shapes is told by `Shapes`: `read` fills one, and returns false where there is none;
// `reaches` says whether one may cover a pixel of an area, and `colour_at` where the colour of a pixel begins among the values, -1: nowhere.
template <typename Shapes>
__device__ inline void draw(const Picture &p, int64 run, const Shapes &shapes, const uint8 *values) {
    __shared__ typename Shapes::Shape near[THREADS];
    __shared__ uint32 reaching[THREADS / 32];
    int self = threadIdx.x, word = self / 32, lane = self % 32;
    int64 begin = run * RUN_BYTES, end = begin + RUN_BYTES < p.bytes ? begin + RUN_BYTES : p.bytes;
    Area area = area_of(p, begin, end);
    int64 first = begin + int64(self) * BYTES;
    int size = first >= end ? 0 : end - first < BYTES ? int(end - first) : BYTES;
    const uint8 *source = reinterpret_cast<const uint8 *>(p.source) + first;
    Pack<uint8, BYTES> bytes;
    if (size == BYTES) bytes = read_pack<BYTES>(source);
    for (int i = 0; i < size && size < BYTES; i++) bytes.values[i] = source[i];
    Area own_area = area_of(p, first, first + size);
    Place pixel = place_of(size ? first / p.channels : 0, p.width);
    int channel = size ? int(first % p.channels) : 0;
    uint32 open = (1u << size) - 1u;  // the bytes that no shape has covered
    for (int64 left = p.shapes; left > 0; left -= THREADS) {
        if (lane == 0) reaching[word] = 0;
        __syncthreads();
        typename Shapes::Shape own;
        int64 number = left - 1 - self;
        bool reaches = number >= 0 && shapes.read(number, own) && shapes.reaches(own, area);
        if (reaches) atomicOr(&reaching[word], 1u << lane);
        __syncthreads();
        int place = __popc(reaching[word] & ((1u << lane) - 1u)), count = 0;
        for (int i = 0; i < THREADS / 32; i++) {
            int found = __popc(reaching[i]);
            if (i < word) place += found;
            count += found;
        }
        if (reaches) near[place] = own;
        __syncthreads();
        for (int number = 0; number < count && open; number++) {
            if (!shapes.reaches(near[number], own_area)) continue;
            int64 x = pixel.column, y = pixel.row;
            int c = channel, colour = shapes.colour_at(near[number], x, y);
#pragma unroll
            for (int i = 0; i < BYTES; i++) {
                if (colour >= 0 && (open >> i & 1u)) {
                    bytes.values[i] = values[colour + c];
                    open &= ~(1u << i);
                }
                if (++c < p.channels) continue;
                c = 0;
                if (++x == p.width) {
                    x = 0;
                    y++;
                }
                colour = shapes.colour_at(near[number], x, y);
            }
        }
        __syncthreads();
    }
    uint8 *target = reinterpret_cast<uint8 *>(p.target) + first;
    if (size == BYTES) write_pack<BYTES>(target, bytes);
    for (int i = 0; i < size && size < BYTES; i++) target[i] = bytes.values[i];
}

// -- outlines ----------------------------------------------------------------------------------------------------------

struct Outline {
    int64 left, top, right, bottom;
    int colour;
};

// A coordinate between pixels, as on the CPU (_drawing.py).
__device__ inline int64 edge_of(double value) {
    return int64(rint(value < -MAX_COORDINATE ? -MAX_COORDINATE : value > MAX_COORDINATE ? MAX_COORDINATE : value));
}

template <typename Number>
__device__ inline double to_double(Number value) { return double(value); }
template <>
__device__ inline double to_double<float16>(float16 value) { return double(to_float(value)); }

// `faults` gets the first box with a coordinate that is NaN; null: that is not asked for.
template <typename Number>
struct Outlines {
    typedef Outline Shape;
    const Number *boxes;
    const int *labels;
    int thickness, colours, channels;
    uint64 *faults;

    __device__ bool read(int64 number, Outline &outline) const {
        double edges[4];
        bool is_good = true;
        for (int i = 0; i < 4; i++) {
            edges[i] = to_double(boxes[4 * number + i]);
            is_good = is_good && edges[i] == edges[i];
        }
        if (!is_good) {
            if (faults) atomicMin(faults, uint64(number));
            return false;
        }
        int label = labels ? labels[number] % colours : 0;
        int colour = (label < 0 ? label + colours : label) * channels;
        outline = {edge_of(edges[0]), edge_of(edges[1]), edge_of(edges[2]), edge_of(edges[3]), colour};
        return true;
    }

    __device__ bool reaches(const Outline &o, const Area &a) const {
        bool is_apart = a.bottom <= o.top || a.top >= o.bottom || a.right <= o.left || a.left >= o.right;
        bool is_within = a.top >= o.top + thickness && a.bottom <= o.bottom - thickness && a.left >= o.left + thickness &&
                         a.right <= o.right - thickness;
        return !is_apart && !is_within;
    }

    __device__ int colour_at(const Outline &o, int64 x, int64 y) const {
        return reaches(o, {y, y + 1, x, x + 1}) ? o.colour : -1;
    }
};

template <typename Number>
__global__ void draw_outlines(const int64 *__restrict__ first_blocks, const Picture *__restrict__ pictures, int count,
                              const uint8 *__restrict__ values, int colours, int thickness, uint64 *__restrict__ faults) {
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Picture p = pictures[sample];
    int64 run = blockIdx.x - first_blocks[sample];
    Outlines<Number> outlines = {reinterpret_cast<const Number *>(p.boxes), reinterpret_cast<const int *>(p.labels), thickness,
                                 colours, p.channels, run == 0 ? faults + sample : nullptr};
    draw(p, run, outlines, values);
}

// -- texts -------------------------------------------------------------------------------------------------------------

struct Texts {
    typedef Text Shape;
    const Text *texts;
    const uint16 *glyphs;
    int scale;

    __device__ bool read(int64 number, Text &text) const {
        text = texts[number];
        return true;
    }

    __device__ bool reaches(const Text &t, const Area &a) const {
        return a.bottom > t.top && a.top < t.bottom && a.right > t.left && a.left < t.right;
    }

    __device__ int colour_at(const Text &t, int64 x, int64 y) const {
        if (!reaches(t, {y, y + 1, x, x + 1})) return -1;
        int64 row = (y - t.top) / scale, column = (x - t.left) / scale;
        int bits = glyphs[(t.first_glyph + column / GLYPH_WIDTH) * GLYPH_HEIGHT + row];
        return bits >> (GLYPH_WIDTH - 1 - column % GLYPH_WIDTH) & 1 ? t.ink : t.paper;
    }
};

__global__ void draw_texts(const int64 *__restrict__ first_blocks, const Picture *__restrict__ pictures, int count,
                           const uint8 *__restrict__ values, const Text *__restrict__ texts,
                           const uint16 *__restrict__ glyphs, int scale) {
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Picture p = pictures[sample];
    draw(p, blockIdx.x - first_blocks[sample], Texts{texts + p.first_shape, glyphs, scale}, values);
}
