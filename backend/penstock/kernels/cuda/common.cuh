// Code shared by all kernels: types, conversion, and finding the sample that a block belongs to. Structs that kernels read, and constants
// that Python needs as well, are declared in the Python module next to a `.cu` file; their C declarations are inserted before the text of
// that file.

typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;
typedef signed char int8;
typedef short int16;
typedef int int32;
typedef long long int64;

struct float16 {
    unsigned short bits;
};

template <typename T>
__device__ inline float to_float(T value) { return float(value); }

#ifdef __CUDACC__
__device__ inline float of_half(float16 value) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
}
__device__ inline float16 to_half(float value) {
    float16 result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}
#else  // a C++ compiler for the CPU, as in the tests
inline float of_half(float16 value) {
    _Float16 half;
    memcpy(&half, &value, sizeof(half));
    return float(half);
}
inline float16 to_half(float value) {
    _Float16 half = _Float16(value);
    float16 result;
    memcpy(&result, &half, sizeof(half));
    return result;
}
#endif

template <>
__device__ inline float to_float<float16>(float16 value) { return of_half(value); }

template <typename T> struct Limits;
#define LIMITS(T, LOW, HIGH, OF_NAN) \
    template <> struct Limits<T> { \
        static __device__ double low() { return LOW; } \
        static __device__ double high() { return HIGH; } \
        static __device__ T lowest() { return T(LOW); } \
        static __device__ T highest() { return T(~T(LOW)); } \
        static __device__ T of_nan() { return T(OF_NAN); } \
    };
LIMITS(uint8, 0, 255.0, 0)
LIMITS(uint16, 0, 65535.0, 0)
LIMITS(uint32, 0, 4294967295.0, 0)
LIMITS(uint64, 0, 18446744073709551615.0, 1ull << 63)
LIMITS(int8, -128, 127.0, 0)
LIMITS(int16, -32768, 32767.0, 0)
LIMITS(int32, -2147483647 - 1, 2147483647.0, -2147483647 - 1)
LIMITS(int64, -9223372036854775807ll - 1, 9223372036854775807.0, -9223372036854775807ll - 1)

// Converts as the rest of Penstock does: results of integer types are rounded half away from zero and saturate; NaN becomes 0, or the
// integer with only the highest bit set (32-bit signed and 64-bit types).
template <typename Out, typename In>
struct Convert {
    static __device__ Out from(In value) {
        double wide = double(value);
        if (In(0.5) != In(0)) {
            if (wide != wide) return Limits<Out>::of_nan();
            if (wide <= Limits<Out>::low()) return Limits<Out>::lowest();
            if (wide >= Limits<Out>::high()) return Limits<Out>::highest();
            return Out(round(wide));
        }
        return integer(value);
    }
    static __device__ Out integer(In value) {
        const bool in_signed = In(-1) < In(0);
        if (in_signed && value < In(0)) {
            const bool out_signed = Out(-1) < Out(0);
            if (!out_signed) return Out(0);
            return int64(value) < int64(Limits<Out>::lowest()) ? Limits<Out>::lowest() : Out(value);
        }
        return uint64(value) > uint64(Limits<Out>::highest()) ? Limits<Out>::highest() : Out(value);
    }
};
template <typename Out>
struct Convert<Out, float> {
    static __device__ Out from(float value) {
        if (value != value) return Limits<Out>::of_nan();
        if (value <= float(Limits<Out>::low())) return Limits<Out>::lowest();
        if (value >= float(Limits<Out>::high())) return Limits<Out>::highest();
        return Out(roundf(value));
    }
};
template <> struct Convert<float, float> { static __device__ float from(float v) { return v; } };
template <typename In> struct Convert<float, In> { static __device__ float from(In v) { return float(v); } };
template <typename In> struct Convert<double, In> { static __device__ double from(In v) { return double(v); } };
template <> struct Convert<double, float> { static __device__ double from(float v) { return double(v); } };
template <typename Out> struct Convert<Out, bool> { static __device__ Out from(bool v) { return Out(v ? 1 : 0); } };
template <> struct Convert<float, bool> { static __device__ float from(bool v) { return v ? 1.0f : 0.0f; } };
template <> struct Convert<double, bool> { static __device__ double from(bool v) { return v ? 1.0 : 0.0; } };
template <typename In> struct Convert<bool, In> {
    static __device__ bool from(In v) { return In(0.5) != In(0) ? !(fabs(double(v)) < 0.5) : v != In(0); }
};
template <> struct Convert<bool, float> { static __device__ bool from(float v) { return !(fabsf(v) < 0.5f); } };
template <> struct Convert<bool, bool> { static __device__ bool from(bool v) { return v; } };
template <typename In> struct Convert<float16, In> {
    static __device__ float16 from(In value) { return to_half(float(value)); }
};
template <> struct Convert<float16, float> { static __device__ float16 from(float value) { return to_half(value); } };
template <> struct Convert<float16, bool> {
    static __device__ float16 from(bool v) { return Convert<float16, float>::from(v ? 1.0f : 0.0f); }
};
template <> struct Convert<float16, float16> { static __device__ float16 from(float16 v) { return v; } };
template <typename Out> struct Convert<Out, float16> {
    static __device__ Out from(float16 v) { return Convert<Out, float>::from(to_float(v)); }
};
template <> struct Convert<float, float16> { static __device__ float from(float16 v) { return to_float(v); } };
template <> struct Convert<double, float16> { static __device__ double from(float16 v) { return to_float(v); } };
template <> struct Convert<bool, float16> { static __device__ bool from(float16 v) { return Convert<bool, float>::from(to_float(v)); } };

template <typename Out, typename In>
__device__ inline Out converted(In value) { return Convert<Out, In>::from(value); }

// Neighbouring elements that are read or written with one instruction if they are aligned.
template <typename T, int COUNT>
struct alignas(sizeof(T) * COUNT < 16 ? sizeof(T) * COUNT : 16) Pack {
    T values[COUNT];
    static __device__ bool fits(const T *at) { return uint64(at) % alignof(Pack) == 0; }
};

// Reads COUNT elements that are `step` elements apart.
template <int COUNT, typename T>
__device__ inline Pack<T, COUNT> read_pack(const T *at, int64 step = 1) {
    typedef Pack<T, COUNT> Whole;
    if (step == 1 && Whole::fits(at)) return *reinterpret_cast<const Whole *>(at);
    Whole pack;
    for (int i = 0; i < COUNT; i++) pack.values[i] = at[i * step];
    return pack;
}

template <int COUNT, typename T>
__device__ inline void write_pack(T *at, const Pack<T, COUNT> &pack, int64 step = 1) {
    typedef Pack<T, COUNT> Whole;
    if (step == 1 && Whole::fits(at)) {
        *reinterpret_cast<Whole *>(at) = pack;
        return;
    }
    for (int i = 0; i < COUNT; i++) at[i * step] = pack.values[i];
}

// Reads COUNT neighbouring pixels with interleaved channels.
template <int COUNT, int CHANNELS, typename T>
__device__ inline void read_pixels(const T *at, T *pixels) {
#pragma unroll
    for (int part = 0; part < CHANNELS; part++) {
        Pack<T, COUNT> pack = read_pack<COUNT>(at + part * COUNT);
        for (int i = 0; i < COUNT; i++) pixels[part * COUNT + i] = pack.values[i];
    }
}

// Writes the first `count` pixels.
template <int COUNT, int CHANNELS, typename T>
__device__ inline void write_pixels(T *at, const T *pixels, int count = COUNT) {
#pragma unroll
    for (int part = 0; part < CHANNELS; part++) {
        Pack<T, COUNT> pack;
        for (int i = 0; i < COUNT; i++) pack.values[i] = pixels[part * COUNT + i];
        if (count == COUNT) {
            write_pack<COUNT>(at + part * COUNT, pack);
            continue;
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            if (part * COUNT + i < count * CHANNELS) at[part * COUNT + i] = pack.values[i];
    }
}

// Reads COUNT neighbouring values and converts them to floats.
template <int COUNT, typename In>
__device__ inline void read_values(const In *at, float *values) {
    for (int i = 0; i < COUNT; i++) values[i] = to_float(at[i]);
}

// Two pixels of three bytes are read as the two or three 32-bit words that contain them: as threads read scattered addresses, each
// read takes its full latency, so fewer reads are faster.
template <>
__device__ inline void read_values<6, uint8>(const uint8 *at, float *values) {
    const uint32 *words = reinterpret_cast<const uint32 *>(uint64(at) & ~uint64(3));
    int skipped = 8 * int(uint64(at) & 3);
    uint64 bytes = (words[0] | uint64(words[1]) << 32) >> skipped;
    if (skipped > 16) bytes |= uint64(words[2]) << (64 - skipped);
    for (int i = 0; i < 6; i++) values[i] = float(uint8(bytes >> 8 * i));
}

// Interpolates linearly between two neighbours above (a, b) and two below (d, e).
__device__ inline float between(float a, float b, float d, float e, float fx, float fy) {
    float top = a + (b - a) * fx, low = d + (e - d) * fx;
    return top + (low - top) * fy;
}

// Interpolates all channels of the pixel between four neighbours; `upper` and `lower` point to the two on the left.
template <int CHANNELS, typename Out, typename In>
__device__ inline void interpolate_pixel(const In *upper, const In *lower, float fx, float fy, Out *target) {
    float above[2 * CHANNELS], below[2 * CHANNELS];
    read_values<2 * CHANNELS>(upper, above);
    read_values<2 * CHANNELS>(lower, below);
    for (int c = 0; c < CHANNELS; c++)
        target[c] = converted<Out>(between(above[c], above[CHANNELS + c], below[c], below[CHANNELS + c], fx, fy));
}

// The signed type as wide as an index type.
template <typename Index> struct Signed { typedef int64 Type; };
template <> struct Signed<uint32> { typedef int32 Type; };

// The number of elements that are written at once: 16 bytes, but no more than 8 elements.
template <typename T>
__device__ constexpr int pack_size() { return sizeof(T) <= 2 ? 8 : int(16 / sizeof(T)); }

// An extent, and the factor and shift that replace a division by it, as multiplying is much faster. For dividends below 2^31.
struct Divisor {
    uint32 extent, factor, shift;
};

__device__ inline uint32 divided(uint32 value, const Divisor &by) {
    return uint32(uint64(2 * value) * by.factor >> 32) >> by.shift;
}

// The sample that a block belongs to: the last one whose first block is not after `block`.
__device__ inline int sample_of(const int64 *first_blocks, int samples, int64 block) {
    int low = 0, high = samples - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (first_blocks[middle] <= block) low = middle; else high = middle - 1;
    }
    return low;
}

struct Place {
    int64 row, column;
};

// The row and column of the element at `position` of an array with `columns` columns. Divides with 32 bits if they suffice, which is much
// faster.
__device__ inline Place place_of(int64 position, int64 columns) {
    if ((position | columns) >> 32) return {position / columns, position % columns};
    uint32 row = uint32(position) / uint32(columns);
    return {int64(row), int64(uint32(position) - row * uint32(columns))};
}

// The position of an element in an array viewed as (planes, height, width, inner).
struct Spot {
    int64 plane;
    int y, x, inner;
};

__device__ inline Spot spot_of(int64 element, int height, int width, int inner) {
    Place pixel = place_of(element, inner), row = place_of(pixel.row, width), plane = place_of(row.row, height);
    return {plane.row, int(plane.column), int(row.column), int(pixel.column)};
}

// The position in [0, size) whose value is used for `index`; -1: the constant outside of the border.
__device__ inline int within(int index, int size, int border) {
    if (index >= 0 && index < size) return index;
    if (border == BORDER_CONSTANT) return -1;
    if (border == BORDER_REPLICATE || (border == BORDER_REFLECT_101 && size == 1)) return index < 0 ? 0 : size - 1;
    // Reflected values repeat after twice the size; if edges are not repeated, after two elements less.
    int period = border == BORDER_WRAP ? size : border == BORDER_REFLECT ? 2 * size : 2 * size - 2;
    index %= period;
    if (index < 0) index += period;
    return index < size ? index : period - index - (border == BORDER_REFLECT ? 1 : 0);
}
