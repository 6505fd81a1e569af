// Random numbers: Philox4x32-10, and distributions drawn from it; the same numbers as on the CPU (kernels/cpu/philox.py).
//
// A stream has no state: draw `n` is word `n & 3` of block `n >> 2`, so each thread computes the draws of its elements. The
// stream of sample `i` follows from the batch's stream, the only value that differs between batches of one kind.

struct Words {
    uint32 words[4];
};

struct Stream {
    // A position is a 64-bit number: it counts the words of 2^62 blocks, the first of which is block `base`.
    uint64 key, base, stream, start;

    __device__ Stream(const Drawing &d, uint64 key, uint64 base, uint64 stream, uint64 start)
        : key(key), base(base), stream(stream + SAMPLE_STRIDE * d.stream), start(start) {}

    // The first element of a group; in the first group, down to -3, as the stream may start within a block of words.
    __device__ int64 first_of(int64 group) const { return GROUP * group - int64(start & 3); }

    __device__ Words block(uint64 counter) const {
        counter += base;
        uint32 k0 = uint32(key), k1 = uint32(key >> 32);
        uint32 c0 = uint32(counter), c1 = uint32(counter >> 32), c2 = uint32(stream), c3 = uint32(stream >> 32);
        for (int round = 0; round < 10; round++) {
            uint64 p0 = uint64(0xD2511F53u) * c0, p1 = uint64(0xCD9E8D57u) * c2;
            c0 = uint32(p1 >> 32) ^ c1 ^ k0;
            c2 = uint32(p0 >> 32) ^ c3 ^ k1;
            c1 = uint32(p1);
            c3 = uint32(p0);
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        return {{c0, c1, c2, c3}};
    }

    // Draws the first DRAWS words of each element of a group.
    template <int DRAWS>
    __device__ void draw_group(int64 group, uint32 (&drawn)[GROUP][DRAWS]) const {
        uint64 counter = (start >> 2) + ELEMENT_STRIDE * uint64(group) - ELEMENT_STRIDE / 4 * (start & 3);
        for (int i = 0; i < GROUP; i++) {
            Words words = block(counter + ELEMENT_STRIDE / 4 * i);
            for (int k = 0; k < DRAWS; k++) {
                if (i + k == 4) words = block(counter + ELEMENT_STRIDE / 4 * i + 1);
                drawn[i][k] = words.words[(i + k) % 4];
            }
        }
    }
};

// The number of the group that a thread processes in one of its rounds.
__device__ inline int64 group_of(int64 block, int round) { return (block * GROUPS + round) * blockDim.x + threadIdx.x; }

template <typename T>
__device__ inline Pack<T, GROUP> read_group(const T *source, int64 first, int64 count) {
    if (first >= 0 && first + GROUP <= count) return read_pack<GROUP>(source + first);
    Pack<T, GROUP> group = {};
    for (int i = 0; i < GROUP; i++)
        if (first + i >= 0 && first + i < count) group.values[i] = source[first + i];
    return group;
}

template <typename T>
__device__ inline void write_group(T *target, int64 first, int64 count, const Pack<T, GROUP> &group) {
    if (first >= 0 && first + GROUP <= count) {
        write_pack<GROUP>(target + first, group);
        return;
    }
    for (int i = 0; i < GROUP; i++)
        if (first + i >= 0 && first + i < count) target[first + i] = group.values[i];
}

__device__ inline float unit(uint32 bits) { return float(bits) * 0x1p-32f; }
__device__ inline double unit64(uint32 low, uint32 high) { return double(uint64(high) << 32 | low) * 0x1p-64; }

// A normal number by the Box-Muller transform, with the cosine.
__device__ inline float normal(const uint32 *drawn) {
    return sqrtf(-2.0f * logf(unit(drawn[0]))) * cosf(6.283185307179586f * unit(drawn[1]));
}
__device__ inline double normal_double(const uint32 *drawn) {
    return sqrt(-2.0 * log(unit64(drawn[0], drawn[1]))) * cos(6.283185307179586 * unit64(drawn[2], drawn[3]));
}

struct Uniform {        // a: the lowest number, b: the spacing
    static const int DRAWS = 1;
    static __device__ float of(const Drawing &d, const float *, const uint32 *drawn) {
        return fmaf(float(drawn[0]), float(d.b), float(d.a));
    }
};
struct UniformDouble {
    static const int DRAWS = 2;
    static __device__ double of(const Drawing &d, const float *, const uint32 *drawn) {
        return fma(double(uint64(drawn[1]) << 32 | drawn[0]), d.b, d.a);
    }
};
struct Normal {         // a: mean, b: standard deviation
    static const int DRAWS = 2;
    static __device__ float of(const Drawing &d, const float *, const uint32 *drawn) {
        return fmaf(normal(drawn), float(d.b), float(d.a));
    }
};
struct NormalDouble {
    static const int DRAWS = 4;
    static __device__ double of(const Drawing &d, const float *, const uint32 *drawn) {
        return fma(normal_double(drawn), d.b, d.a);
    }
};
struct Flip {           // a: the largest draw that gives 1
    static const int DRAWS = 1;
    static __device__ bool of(const Drawing &d, const float *, const uint32 *drawn) { return drawn[0] <= uint32(d.a); }
};
struct Pick {
    static const int DRAWS = 1;
    static __device__ float of(const Drawing &d, const float *table, const uint32 *drawn) {
        return table[d.values + int(uint64(drawn[0]) * d.value_count >> 32)];
    }
};

template <typename Distribution, typename Out>
__global__ void draw_numbers(const int64 *__restrict__ first_blocks, const Drawing *__restrict__ drawings, int samples,
                             uint64 key, uint64 base, uint64 stream, uint64 start, const float *__restrict__ table) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Drawing d = drawings[sample];
    const Stream own(d, key, base, stream, start);
    #pragma unroll 1
    for (int round = 0; round < GROUPS; round++) {
        int64 group = group_of(blockIdx.x - first_blocks[sample], round), first = own.first_of(group);
        if (first >= d.elements) return;
        uint32 drawn[GROUP][Distribution::DRAWS];
        own.draw_group(group, drawn);
        Pack<Out, GROUP> numbers;
        for (int i = 0; i < GROUP; i++) numbers.values[i] = converted<Out>(Distribution::of(d, table, drawn[i]));
        write_group(reinterpret_cast<Out *>(d.target), first, d.elements, numbers);
    }
}

template <typename Distribution, typename Real, typename T>
__global__ void add_noise(const int64 *__restrict__ first_blocks, const Drawing *__restrict__ drawings, int samples,
                          uint64 key, uint64 base, uint64 stream, uint64 start) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Drawing d = drawings[sample];
    const Stream own(d, key, base, stream, start);
    #pragma unroll 1
    for (int round = 0; round < GROUPS; round++) {
        int64 group = group_of(blockIdx.x - first_blocks[sample], round), first = own.first_of(group);
        if (first >= d.elements) return;
        uint32 drawn[GROUP][Distribution::DRAWS];
        own.draw_group(group, drawn);
        Pack<T, GROUP> values = read_group(reinterpret_cast<const T *>(d.source), first, d.elements);
        for (int i = 0; i < GROUP; i++) {
            Real noise = Distribution::of(d, 0, drawn[i]);
            values.values[i] = converted<T>(Real(values.values[i]) + noise);
        }
        write_group(reinterpret_cast<T *>(d.target), first, d.elements, values);
    }
}

// Salt-and-pepper noise on arrays viewed as (planes, pixels, channels). One draw decides about each pixel: if it is below a, the pixel is
// replaced: by c if the draw is also below b, otherwise by d. CHANNELS: the number of channels of all samples; 0: samples may differ.
template <typename T, int CHANNELS>
__global__ void sprinkle(const int64 *__restrict__ first_blocks, const Drawing *__restrict__ drawings, int samples,
                         uint64 key, uint64 base, uint64 stream, uint64 start) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Drawing d = drawings[sample];
    const Stream own(d, key, base, stream, start);
    const float replaced = float(d.a), salted = float(d.b);
    const T salt = converted<T>(d.c), pepper = converted<T>(d.d);
    #pragma unroll 1
    for (int round = 0; round < GROUPS; round++) {
        int64 group = group_of(blockIdx.x - first_blocks[sample], round), first = own.first_of(group);
        if (first >= d.elements) return;
        uint32 drawn[GROUP][1];
        own.draw_group(group, drawn);
        for (int plane = 0; plane < d.planes; plane++) {
            int64 offset = (plane * d.elements + first) * d.channels;
            const T *source = reinterpret_cast<const T *>(d.source) + offset;
            T *target = reinterpret_cast<T *>(d.target) + offset;
            if (CHANNELS && first >= 0 && first + GROUP <= d.elements) {
                for (int part = 0; part < CHANNELS; part++) {
                    Pack<T, GROUP> values = read_pack<GROUP>(source + GROUP * part);
                    for (int i = 0; i < GROUP; i++) {
                        float u = unit(drawn[(GROUP * part + i) / (CHANNELS ? CHANNELS : 1)][0]);
                        if (u < replaced) values.values[i] = u < salted ? salt : pepper;
                    }
                    write_pack<GROUP>(target + GROUP * part, values);
                }
                continue;
            }
            for (int i = 0; i < GROUP; i++) {
                if (first + i < 0 || first + i >= d.elements) continue;
                float u = unit(drawn[i][0]);
                for (int c = i * d.channels; c < (i + 1) * d.channels; c++)
                    target[c] = !(u < replaced) ? source[c] : u < salted ? salt : pepper;
            }
        }
    }
}

// -- shots -------------------------------------------------------------------------------------------------------------

__device__ inline double of_bits(uint64 bits) {
#ifdef __CUDACC__
    return __longlong_as_double(int64(bits));
#else
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
#endif
}

// A number in [0, 1), from two words. They are put into the mantissas of 2^52 and 2^84, which is faster than converting them.
__device__ inline double canonical(uint32 low, uint32 high) {
    double a = of_bits(0x433ull << 52 | low) - 0x1p52, b = of_bits(0x453ull << 52 | high) - 0x1p84;
    return fmin((a + b) * 0x1p-64, 1.0 - 0x1p-53);
}

// The draws of an element; mostly taken four at a time, so that computing a single block is enough.
struct Draws {
    const Stream &stream;
    uint64 counter;
    int phase;
    Words here;

    __device__ Draws(const Stream &stream) : stream(stream) {}
    __device__ void begin(int64 element) {
        uint64 n = stream.start + ELEMENT_STRIDE * uint64(element);
        counter = n >> 2;
        phase = int(n & 3);
        here = stream.block(counter);
    }
    __device__ Words four() {
        Words next = stream.block(++counter);
        const uint32 *a = here.words, *b = next.words;
        Words some = phase & 1 ? Words{{a[1], a[2], a[3], b[0]}} : here;
        if (phase & 2) {
            uint32 third = phase & 1 ? b[1] : b[0], fourth = phase & 1 ? b[2] : b[1];
            some = {{some.words[2], some.words[3], third, fourth}};
        }
        here = next;
        return some;
    }
    __device__ Words two() {
        Words before = here, some;
        int from = phase;
        if (from >= 2) {
            some = four();
        } else {
            some = {{before.words[from ? 1 : 0], before.words[from ? 2 : 1], 0, 0}};
        }
        phase = from ^ 2;
        return some;
    }
};

__device__ inline Rejection rejection_of(double m) {
    const double quarter_pi = 0.78539816339744830962;
    Rejection r;
    r.root = sqrt(m);
    double reach = sqrt(2 * m * log(32 * m / quarter_pi));
    r.d = floor(fmax(6.0, fmin(m, reach)) + 0.5);
    r.cx = 2 * m + r.d;
    r.c1 = r.root * sqrt(2 * quarter_pi);
    r.c2 = r.c1 + sqrt(quarter_pi * r.cx) * exp(1 / r.cx);
    r.total = r.c2 + 1 + 1 + 1.0129030479320018583 + 2 * r.cx * exp(-r.d / r.cx * (1 + r.d / 2)) / r.d;
    r.spread = sqrt(r.cx / 2);
    return r;
}

__device__ inline double log_factorial(double n, const double *known) { return n < KNOWN_FACTORIALS ? known[int(n)] : lgamma(n + 1); }

// The elements of a thread block: `numbers` holds their means at first, and then the numbers drawn.
struct Shots {
    float *numbers;
    const uint16 *places;           // the elements to draw with one method
    int step, count;                // the distance from one entry of `places` to the next, and the number of entries
    int *taken;

    // Each thread takes the next entry when it is done with one, so that all threads stay busy to the end.
    __device__ int next() const {
        int turn = atomicAdd(taken, 1);
        return turn < count ? int(places[turn * step]) : -1;
    }
};

// Draws Poisson numbers with small means: the number of draws that can be multiplied before their product is below exp(-mean). Each turn
// computes a block of four words, two for each draw; if the start is odd, a block's last word is paired with the next block's first.
__device__ inline void draw_products(const Shots &shots, const Stream &stream, int64 begin) {
    uint64 counter = 0;
    int phase = 0;
    uint32 odd = 0;
    bool first = true;
    double product = 1, limit = 0;
    float count = 0;
    for (int place = shots.next(); place >= 0;) {
        if (first) {
            uint64 n = stream.start + ELEMENT_STRIDE * uint64(begin + place);
            counter = n >> 2;
            phase = int(n & 3);
            limit = exp(-double(shots.numbers[place]));
            product = 1;
            count = 0;
        }
        Words w = stream.block(counter++);
        double early = phase & 1 ? canonical(odd, w.words[0]) : canonical(w.words[0], w.words[1]);
        double late = phase & 1 ? canonical(w.words[1], w.words[2]) : canonical(w.words[2], w.words[3]);
        odd = w.words[3];
        bool drawn = false;
        if (!first || phase == 0) {
            product *= early;
            if (product > limit) count++;
            else drawn = true;
        }
        if (!drawn && (!first || phase <= 2)) {
            product *= late;
            if (product > limit) count++;
            else drawn = true;
        }
        first = drawn;
        if (drawn) {
            shots.numbers[place] = count;
            place = shots.next();
        }
    }
}

// Draws Poisson numbers with larger means, by rejection; Devroye, "Non-Uniform Random Variate Generation", 1986, X.3. Each turn makes an
// attempt.
__device__ inline void draw_by_rejection(const Shots &shots, const Stream &stream, int64 begin, const Rejection *known,
                                         const double *factorials) {
    Draws draws(stream);
    Rejection r;
    double m = 0, log_mean = 0, spare = 0;
    bool first = true, has_spare = false;
    for (int place = shots.next(); place >= 0;) {
        if (first) {
            double mean = shots.numbers[place];
            m = floor(mean);
            log_mean = log(mean);
            r = m < KNOWN_REJECTIONS ? known[int(m)] : rejection_of(m);
            draws.begin(begin + place);
            has_spare = false;
        }
        Words w = draws.four();
        double u = r.total * canonical(w.words[0], w.words[1]), exponential = -log(1 - canonical(w.words[2], w.words[3]));
        double c3 = r.c2 + 1, c4 = c3 + 1, c5 = c4 + 1.0129030479320018583, x, weight = 0;
        bool candidate = true;
        if (u <= r.c2) {
            // Marsaglia's polar method gives two numbers; the second is saved for the next attempt.
            double z = spare;
            if (!has_spare) {
                double p, q, square;
                do {
                    Words pair = draws.four();
                    p = 2 * canonical(pair.words[0], pair.words[1]) - 1;
                    q = 2 * canonical(pair.words[2], pair.words[3]) - 1;
                    square = p * p + q * q;
                } while (!(0 < square && square <= 1));
                double factor = sqrt(-2 * log(square) / square);
                spare = p * factor;
                z = q * factor;
            }
            has_spare = !has_spare;
            if (u <= r.c1) {
                x = floor(-fabs(z) * r.root - 1);
                weight = -z * z / 2;
                candidate = !(x < -m);
            } else {
                double y = 1 + fabs(z) * r.spread;
                x = ceil(y);
                weight = y * (2 - y) / r.cx;
                candidate = !(x > r.d);
            }
        } else if (u <= c3) {
            x = -1;
        } else if (u <= c4) {
            x = 0;
        } else if (u <= c5) {
            x = 1;
            weight = 1.0 / 78;
        } else {
            Words v = draws.two();
            double y = r.d - log(1 - canonical(v.words[0], v.words[1])) * 2 * r.cx / r.d;
            x = ceil(y);
            weight = -r.d / r.cx * (1 + y / 2);
        }
        first = candidate && weight - exponential - x * log_mean <= log_factorial(m, factorials) - log_factorial(x + m, factorials);
        if (first) {
            shots.numbers[place] = float(x + m);
            place = shots.next();
        }
    }
}

// Replaces values by Poisson numbers. a: the factor by which means are divided, and the numbers drawn multiplied.
template <typename T>
__global__ void __launch_bounds__(256, 4) replace_by_shots(const int64 *__restrict__ first_blocks, const Drawing *__restrict__ drawings, int samples,
                                 uint64 key, uint64 base, uint64 stream, uint64 start, const Rejection *__restrict__ rejections,
                                 const double *__restrict__ factorials) {
    __shared__ float numbers[SHOTS];
    __shared__ uint16 places[SHOTS];    // elements with small means from the front, with larger means from the end
    __shared__ int few, many, few_taken, many_taken;
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Drawing &d = drawings[sample];
    const T *source = reinterpret_cast<const T *>(d.source);
    T *target = reinterpret_cast<T *>(d.target);
    int64 begin = (blockIdx.x - first_blocks[sample]) * SHOTS;
    int size = d.elements - begin < SHOTS ? int(d.elements - begin) : SHOTS;
    float factor = float(d.a), reciprocal = 1 / factor;
    if (threadIdx.x == 0) few = many = few_taken = many_taken = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        float mean = converted<float>(source[begin + i]) * reciprocal;
        bool positive = 0 < mean && mean <= 3.402823466e38f;
        numbers[i] = positive ? mean : 0.0f;
        if (positive && mean < MIN_REJECTED) places[atomicAdd(&few, 1)] = uint16(i);
        if (positive && mean >= MIN_REJECTED) places[SHOTS - 1 - atomicAdd(&many, 1)] = uint16(i);
    }
    __syncthreads();
    const Stream own(d, key, base, stream, start);
    draw_products(Shots{numbers, places, 1, few, &few_taken}, own, begin);
    draw_by_rejection(Shots{numbers, places + SHOTS - 1, -1, many, &many_taken}, own, begin,
                      rejections, factorials);
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += blockDim.x) target[begin + i] = converted<T>(numbers[i] * factor);
}

// -- jitter ------------------------------------------------------------------------------------------------------------

// `value % divisor`, given 2^64 / divisor rounded up; Lemire, Kaser, Kurz, "Faster remainder by direct computation", 2019.
__device__ inline uint32 remainder_of(uint32 value, uint32 divisor, uint64 reciprocal) {
    uint64 fraction = reciprocal * value;
    return uint32((uint64(uint32(fraction >> 32)) * divisor + (uint64(uint32(fraction)) * divisor >> 32)) >> 32);
}

// Replaces each pixel by one at most `a` pixels away in y and in x; `c`: the value outside the image. Each pixel takes two consecutive
// draws. CHANNELS: as for `sprinkle`.
template <typename T, int CHANNELS>
__global__ void jitter(const int64 *__restrict__ first_blocks, const Drawing *__restrict__ drawings, int samples,
                       uint64 key, uint64 base, uint64 stream, uint64 start) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Drawing d = drawings[sample];
    const Stream own(d, key, base, stream, start);
    const uint32 farthest = uint32(d.a), places = 2 * farthest + 1;
    const int channels = CHANNELS ? CHANNELS : d.channels;
    const T fill = converted<T>(d.c);
    const bool odd = start & 1;
    #pragma unroll 1
    for (int round = 0; round < GROUPS; round++) {
        // The draws of a group lie in two blocks, or in three if the stream starts within a pair of draws.
        int64 group = group_of(blockIdx.x - first_blocks[sample], round), first = GROUP * group - int64(start >> 1 & 1);
        if (first >= d.elements) return;
        uint64 counter = (start >> 2) + 2 * uint64(group);
        uint32 drawn[2 * GROUP + 1];
        for (int i = 0; i < 2; i++) {
            Words words = own.block(counter + i);
            for (int k = 0; k < 4; k++) drawn[4 * i + k] = words.words[k];
        }
        drawn[2 * GROUP] = odd ? own.block(counter + 2).words[0] : 0;
        Place place = place_of(first < 0 ? 0 : first, d.columns);
        Pack<T, GROUP> moved[CHANNELS ? CHANNELS : 1];
        bool whole = CHANNELS && first >= 0 && first + GROUP <= d.elements;
        T *target = reinterpret_cast<T *>(d.target) + first * channels;
        for (int i = 0; i < GROUP; i++) {
            if (first + i < 0 || first + i >= d.elements) continue;
            int64 y = place.row + remainder_of(odd ? drawn[2 * i + 1] : drawn[2 * i], places, d.reciprocal) - farthest;
            int64 x = place.column + remainder_of(odd ? drawn[2 * i + 2] : drawn[2 * i + 1], places, d.reciprocal) - farthest;
            bool inside = 0 <= y && y * d.columns < d.elements && 0 <= x && x < d.columns;
            const T *source = reinterpret_cast<const T *>(d.source) + (y * d.columns + x) * channels;
            for (int c = 0; c < channels; c++) {
                T value = inside ? source[c] : fill;
                if (whole) moved[(i * CHANNELS + c) / GROUP].values[(i * CHANNELS + c) % GROUP] = value;
                else target[i * channels + c] = value;
            }
            if (++place.column == d.columns) place = {place.row + 1, 0};
        }
        if (whole)
            for (int part = 0; part < CHANNELS; part++) write_pack<GROUP>(target + GROUP * part, moved[part]);
    }
}
