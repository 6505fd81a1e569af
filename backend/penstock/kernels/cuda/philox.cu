// Random numbers: Philox4x32-10, and what is drawn from it, number for number as on the CPU (kernels/cpu/philox.py).
//
// A stream has no state: draw `n` is word `n & 3` of block `n >> 2`, so each thread has the draws of its own element.

struct Drawing {
    uint64 target, source;          // source: of noise
    uint64 key, stream, start;
    int64 count;
    int64 pixels, channels;         // of salt and pepper: elements that share a decision; of jitter: of a row, of a pixel
    double a, b, c, d;              // what the distribution needs
    int32 values, value_count;      // where the table has the values to pick from
};

const uint64 ELEMENT_STRIDE = 257;  // element `e` starts at draw `257 * e`

struct Words {
    uint32 words[4];
};

__device__ inline Words block_of(uint64 key, uint64 stream, uint64 counter) {
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

// `count` draws from draw `n` on.
__device__ inline void draw(const Drawing &d, uint64 n, int count, uint32 *drawn) {
    Words block = block_of(d.key, d.stream, n >> 2);
    for (int i = 0; i < count; i++, n++) {
        if (i && !(n & 3)) block = block_of(d.key, d.stream, n >> 2);
        drawn[i] = block.words[n & 3];
    }
}

__device__ inline float unit(uint32 bits) { return float(bits) * 0x1p-32f; }
__device__ inline double unit64(uint32 low, uint32 high) { return double(uint64(high) << 32 | low) * 0x1p-64; }

// The draws of an element, one after the other.
struct Draws {
    uint64 key, stream, n;
    Words block;

    __device__ Draws(const Drawing &d, uint64 first) : key(d.key), stream(d.stream), n(first) {
        block = block_of(key, stream, n >> 2);
    }
    __device__ uint32 next() {
        uint32 bits = block.words[n & 3];
        if (!(++n & 3)) block = block_of(key, stream, n >> 2);
        return bits;
    }
    // In [0, 1).
    __device__ double canonical() {
        uint32 low = next(), high = next();
        return fmin((double(low) + double(high) * 0x1p32) * 0x1p-64, 1.0 - 0x1p-53);
    }
};

// Box and Muller's cosine branch.
__device__ inline float normal(const Drawing &d, uint64 n) {
    uint32 drawn[2];
    draw(d, n, 2, drawn);
    return sqrtf(-2.0f * logf(unit(drawn[0]))) * cosf(6.283185307179586f * unit(drawn[1]));
}
__device__ inline double normal_double(const Drawing &d, uint64 n) {
    uint32 drawn[4];
    draw(d, n, 4, drawn);
    return sqrt(-2.0 * log(unit64(drawn[0], drawn[1]))) * cos(6.283185307179586 * unit64(drawn[2], drawn[3]));
}

struct Uniform {        // a: lowest, b: distance of neighbours
    static __device__ float of(const Drawing &d, const float *, uint64 n) {
        uint32 bits;
        draw(d, n, 1, &bits);
        return fmaf(float(bits), float(d.b), float(d.a));
    }
};
struct UniformDouble {
    static __device__ double of(const Drawing &d, const float *, uint64 n) {
        uint32 drawn[2];
        draw(d, n, 2, drawn);
        return fma(double(uint64(drawn[1]) << 32 | drawn[0]), d.b, d.a);
    }
};
struct Normal {         // a: mean, b: standard deviation
    static __device__ float of(const Drawing &d, const float *, uint64 n) { return fmaf(normal(d, n), float(d.b), float(d.a)); }
};
struct NormalDouble {
    static __device__ double of(const Drawing &d, const float *, uint64 n) { return fma(normal_double(d, n), d.b, d.a); }
};
struct Flip {           // a: the largest draw that gives 1
    static __device__ bool of(const Drawing &d, const float *, uint64 n) {
        uint32 bits;
        draw(d, n, 1, &bits);
        return bits <= uint32(d.a);
    }
};
struct Pick {
    static __device__ float of(const Drawing &d, const float *table, uint64 n) {
        uint32 bits;
        draw(d, n, 1, &bits);
        return table[d.values + int(uint64(bits) * d.value_count >> 32)];
    }
};

template <typename Distribution, typename Out>
__global__ void draw_numbers(const int64 *__restrict__ first_blocks, const Drawing *__restrict__ drawings, int samples,
                             const float *__restrict__ table) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Drawing &d = drawings[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= d.count) return;
    reinterpret_cast<Out *>(d.target)[element] = converted<Out>(Distribution::of(d, table, d.start + ELEMENT_STRIDE * element));
}

template <typename Distribution, typename Real, typename T>
__global__ void add_noise(const int64 *__restrict__ first_blocks, const Drawing *__restrict__ drawings, int samples,
                          const float *__restrict__ table) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Drawing &d = drawings[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= d.count) return;
    Real noise = Distribution::of(d, table, d.start + ELEMENT_STRIDE * element);
    T value = reinterpret_cast<const T *>(d.source)[element];
    reinterpret_cast<T *>(d.target)[element] = converted<T>(Real(value) + noise);
}

// Arrays of (planes, pixels, channels), of which one draw decides a pixel: a, b: below which it is replaced, and by c
// instead of d.
template <typename T>
__global__ void sprinkle(const int64 *__restrict__ first_blocks, const Drawing *__restrict__ drawings, int samples,
                         const float *__restrict__ table) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Drawing &d = drawings[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= d.count) return;
    int64 pixel = element / d.channels % d.pixels;
    uint32 bits;
    draw(d, d.start + ELEMENT_STRIDE * pixel, 1, &bits);
    float u = unit(bits);
    T value = reinterpret_cast<const T *>(d.source)[element];
    if (u < float(d.a)) value = converted<T>(u < float(d.b) ? d.c : d.d);
    reinterpret_cast<T *>(d.target)[element] = value;
}

// Marsaglia's polar method, which gives two numbers: the second is kept for the next call.
__device__ inline double polar_normal(Draws &draws, double &spare, bool &has_spare) {
    if (has_spare) {
        has_spare = false;
        return spare;
    }
    double x, y, square;
    do {
        x = 2 * draws.canonical() - 1;
        y = 2 * draws.canonical() - 1;
        square = x * x + y * y;
    } while (!(0 < square && square <= 1));
    double factor = sqrt(-2 * log(square) / square);
    has_spare = true;
    spare = x * factor;
    return y * factor;
}

// A number of the Poisson distribution; Devroye, "Non-Uniform Random Variate Generation", 1986, X.3.
__device__ inline double poisson(Draws &draws, double mean) {
    if (mean < 12) {
        double count = 0, product = 1, limit = exp(-mean);
        while ((product *= draws.canonical()) > limit) count++;
        return count;
    }
    const double quarter_pi = 0.78539816339744830962;
    double m = floor(mean), log_mean = log(mean), log_factorial = lgamma(m + 1), root = sqrt(m);
    double reach = sqrt(2 * m * log(32 * m / quarter_pi)), d = floor(fmax(6.0, fmin(m, reach)) + 0.5), cx = 2 * m + d;
    double c1 = root * sqrt(2 * quarter_pi), c2 = c1 + sqrt(quarter_pi * cx) * exp(1 / cx);
    double c3 = c2 + 1, c4 = c3 + 1, c5 = c4 + 1.0129030479320018583;
    double total = c5 + 2 * cx * exp(-d / cx * (1 + d / 2)) / d;
    double spare = 0;
    bool has_spare = false;
    while (true) {
        double u = total * draws.canonical(), exponential = -log(1 - draws.canonical()), x, weight = 0;
        if (u <= c1) {
            double z = polar_normal(draws, spare, has_spare);
            x = floor(-fabs(z) * root - 1);
            weight = -z * z / 2;
            if (x < -m) continue;
        } else if (u <= c2) {
            double z = polar_normal(draws, spare, has_spare), y = 1 + fabs(z) * sqrt(cx / 2);
            x = ceil(y);
            weight = y * (2 - y) / cx;
            if (x > d) continue;
        } else if (u <= c3) {
            x = -1;
        } else if (u <= c4) {
            x = 0;
        } else if (u <= c5) {
            x = 1;
            weight = 1.0 / 78;
        } else {
            double y = d - log(1 - draws.canonical()) * 2 * cx / d;
            x = ceil(y);
            weight = -d / cx * (1 + y / 2);
        }
        if (weight - exponential - x * log_mean <= log_factorial - lgamma(x + m + 1)) return x + m;
    }
}

// a: what the mean is divided by, and the number drawn is multiplied by.
template <typename T>
__global__ void replace_by_shots(const int64 *__restrict__ first_blocks, const Drawing *__restrict__ drawings, int samples,
                                 const float *__restrict__ table) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Drawing &d = drawings[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= d.count) return;
    float factor = float(d.a), count = 0.0f;
    float mean = converted<float>(reinterpret_cast<const T *>(d.source)[element]) / factor;
    if (0 < mean && mean <= 3.402823466e38f) {
        Draws draws(d, d.start + ELEMENT_STRIDE * element);
        count = float(poisson(draws, mean));
    }
    reinterpret_cast<T *>(d.target)[element] = converted<T>(count * factor);
}

// Pixels of images from up to a pixels away in y and in x, or c where that is outside; one draw for each.
template <typename T>
__global__ void jitter(const int64 *__restrict__ first_blocks, const Drawing *__restrict__ drawings, int samples,
                       const float *__restrict__ table) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Drawing &d = drawings[sample];
    int64 pixel = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (pixel >= d.count) return;
    uint32 drawn[2], farthest = uint32(d.a), places = 2 * farthest + 1;
    draw(d, d.start + 2 * pixel, 2, drawn);
    Place place = place_of(pixel, d.pixels);
    int64 y = place.row + drawn[0] % places - farthest, x = place.column + drawn[1] % places - farthest;
    bool inside = 0 <= y && y * d.pixels < d.count && 0 <= x && x < d.pixels;
    const T *source = reinterpret_cast<const T *>(d.source) + (y * d.pixels + x) * d.channels;
    T *target = reinterpret_cast<T *>(d.target) + pixel * d.channels;
    for (int64 c = 0; c < d.channels; c++) target[c] = inside ? source[c] : converted<T>(d.c);
}
