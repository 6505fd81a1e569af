// Draws shapes on images: outlines of boxes, and texts. First, images are copied at the speed of memory. Then, blocks draw parts of shapes
// in any order. A pixel must get the colour of the last shape that covers it, so a thread draws a pixel only if no later shape covers the
// pixel. Later shapes that do not reach the part are left out beforehand.

typedef Pack<uint64, BYTES / 8> Bytes;
const int RUN_BYTES = THREADS * BYTES * ROUNDS;

__global__ void copy_pictures(const int64 *__restrict__ first_blocks, const Picture *__restrict__ pictures, int count) {
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Picture p = pictures[sample];
    int64 begin = (blockIdx.x - first_blocks[sample]) * RUN_BYTES;
    int size = p.bytes - begin < RUN_BYTES ? int(p.bytes - begin) : RUN_BYTES, copied = 0;
    const uint8 *source = reinterpret_cast<const uint8 *>(p.source) + begin;
    uint8 *target = reinterpret_cast<uint8 *>(p.target) + begin;
    if ((uint64(source) | uint64(target)) % BYTES == 0) {
        int packs = size / BYTES;
        copied = packs * BYTES;
        Bytes bytes[ROUNDS];
#pragma unroll
        for (int i = 0; i < ROUNDS; i++)
            if (threadIdx.x + i * THREADS < packs) bytes[i] = reinterpret_cast<const Bytes *>(source)[threadIdx.x + i * THREADS];
#pragma unroll
        for (int i = 0; i < ROUNDS; i++)
            if (threadIdx.x + i * THREADS < packs) reinterpret_cast<Bytes *>(target)[threadIdx.x + i * THREADS] = bytes[i];
    }
    for (int place = copied + threadIdx.x; place < size; place += THREADS) target[place] = source[place];
}

// A range of rows and one of columns; `bottom` and `right` are exclusive.
struct Area {
    int64 top, bottom, left, right;
};

// Lists those of the next THREADS shapes from `begin` on that reach an area; returns their number.
template <typename Shapes>
__device__ inline int list_near(const Shapes &shapes, int64 begin, int64 end, const Area &area, typename Shapes::Shape *near) {
    __shared__ int found;
    // Other threads may still be reading the previous list.
    __syncthreads();
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    int64 number = begin + threadIdx.x;
    typename Shapes::Shape own;
    if (number < end && shapes.read(number, own) && shapes.reaches(own, area)) near[atomicAdd(&found, 1)] = own;
    __syncthreads();
    return found;
}

// Draws one of the PARTS of a shape. `Shapes` gives access to all shapes of a picture: `read` fetches a shape, and returns false if the
// shape cannot be drawn; `part` returns the area of a part, `reaches` whether a shape may cover a pixel of an area, and `colour_at` the
// position in `values` at which the colour of a pixel begins, or -1 if the shape does not cover the pixel.
template <typename Shapes>
__device__ inline void draw(const Picture &p, int64 block, const Shapes &shapes, const uint8 *values) {
    __shared__ typename Shapes::Shape near[THREADS];
    int64 number = block / PARTS;
    typename Shapes::Shape own;
    if (!shapes.read(number, own)) return;
    Area part = shapes.part(own, int(block % PARTS));
    part = {part.top < 0 ? 0 : part.top, part.bottom > p.height ? p.height : part.bottom, part.left < 0 ? 0 : part.left,
            part.right > p.width ? p.width : part.right};
    if (part.top >= part.bottom || part.left >= part.right) return;
    int64 width = part.right - part.left, pixels = (part.bottom - part.top) * width, later = p.shapes - number - 1;
    int listed = 0;
    for (int64 first = 0; first < pixels; first += THREADS) {
        Place place = place_of(first + threadIdx.x, width);
        int64 x = part.left + place.column, y = part.top + place.row;
        int colour = first + threadIdx.x < pixels ? shapes.colour_at(own, x, y) : -1;
        for (int64 begin = number + 1; begin < p.shapes; begin += THREADS) {
            // If all later shapes fit into one list, it is made only once, as it is the same for all pixels.
            if (first == 0 || later > THREADS) listed = list_near(shapes, begin, p.shapes, part, near);
            for (int i = 0; i < listed && colour >= 0; i++)
                if (shapes.colour_at(near[i], x, y) >= 0) colour = -1;
        }
        if (colour < 0) continue;
        uint8 *target = reinterpret_cast<uint8 *>(p.target) + (y * p.width + x) * p.channels;
        for (int c = 0; c < p.channels; c++) target[c] = values[colour + c];
    }
}

// -- outlines ----------------------------------------------------------------------------------------------------------

struct Outline {
    int64 left, top, right, bottom;
    int colour;
};

// Rounds a coordinate to the nearest edge between pixels, as on the CPU (_drawing.py).
__device__ inline int64 edge_of(double value) {
    return int64(rint(value < -MAX_COORDINATE ? -MAX_COORDINATE : value > MAX_COORDINATE ? MAX_COORDINATE : value));
}

template <typename Number>
__device__ inline double to_double(Number value) { return double(value); }
template <>
__device__ inline double to_double<float16>(float16 value) { return double(to_float(value)); }

// The outlines of one picture's boxes. `faults` gets the first box with a coordinate that is NaN; such a box cannot be drawn.
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
            atomicMin(faults, uint64(number));
            return false;
        }
        int label = labels ? labels[number] % colours : 0;
        int colour = (label < 0 ? label + colours : label) * channels;
        outline = {edge_of(edges[0]), edge_of(edges[1]), edge_of(edges[2]), edge_of(edges[3]), colour};
        return true;
    }

    // Parts 0 and 1 are the upper and the lower line, parts 2 and 3 the left and the right line between these.
    __device__ Area part(const Outline &o, int number) const {
        int64 top = o.top + thickness, bottom = o.bottom - thickness, left = o.left + thickness, right = o.right - thickness;
        if (number == 0) return {o.top, top < o.bottom ? top : o.bottom, o.left, o.right};
        if (number == 1) return {bottom > top ? bottom : top, o.bottom, o.left, o.right};
        if (number == 2) return {top, bottom, o.left, left < o.right ? left : o.right};
        return {top, bottom, right > left ? right : left, o.right};
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
    Outlines<Number> outlines = {reinterpret_cast<const Number *>(p.boxes), reinterpret_cast<const int *>(p.labels), thickness,
                                 colours, p.channels, faults + sample};
    draw(p, blockIdx.x - first_blocks[sample], outlines, values);
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

    __device__ Area part(const Text &t, int number) const {
        int64 height = t.bottom - t.top;
        return {t.top + height * number / PARTS, t.top + height * (number + 1) / PARTS, t.left, t.right};
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
