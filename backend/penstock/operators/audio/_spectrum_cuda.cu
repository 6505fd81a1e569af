// Power spectra of overlapping, windowed frames of signals. A block transforms a group of frames in its own shared or scratch memory.
//
// The transform is Stockham's self-sorting one, with any radices. Elements with the same index in all frames of the block are
// adjacent, so that adjacent threads read adjacent elements. A transform of even size is computed as a complex one of half the
// size, whose real and imaginary parts are the frame's even and odd elements (Cooley, Lewis and Welch, 1970).

struct alignas(8) Complex {
    float re, im;
};
__device__ inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
__device__ inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
__device__ inline Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ inline Complex scaled(Complex a, float factor) { return {a.re * factor, a.im * factor}; }
// Multiplies by -i.
__device__ inline Complex turned(Complex a) { return {a.im, -a.re}; }

// Fourier transforms of 2 to 5 elements, in place.
template <int RADIX> struct Butterfly;
template <> struct Butterfly<2> {
    static __device__ void transform(Complex *v) {
        Complex a = v[0], b = v[1];
        v[0] = a + b;
        v[1] = a - b;
    }
};
template <> struct Butterfly<3> {
    static __device__ void transform(Complex *v) {
        Complex sum = v[1] + v[2], difference = turned(scaled(v[1] - v[2], 0.866025404f));
        Complex middle = v[0] - scaled(sum, 0.5f);
        v[0] = v[0] + sum;
        v[1] = middle + difference;
        v[2] = middle - difference;
    }
};
template <> struct Butterfly<4> {
    static __device__ void transform(Complex *v) {
        Complex p = v[0] + v[2], m = v[0] - v[2], s = v[1] + v[3], t = turned(v[1] - v[3]);
        v[0] = p + s;
        v[1] = m + t;
        v[2] = p - s;
        v[3] = m - t;
    }
};
template <> struct Butterfly<5> {
    static __device__ void transform(Complex *v) {
        const float cos1 = 0.309016994f, cos2 = -0.809016994f, sin1 = 0.951056516f, sin2 = 0.587785252f;
        Complex s1 = v[1] + v[4], s2 = v[2] + v[3], d1 = v[1] - v[4], d2 = v[2] - v[3];
        Complex even1 = v[0] + scaled(s1, cos1) + scaled(s2, cos2), odd1 = turned(scaled(d1, sin1) + scaled(d2, sin2));
        Complex even2 = v[0] + scaled(s1, cos2) + scaled(s2, cos1), odd2 = turned(scaled(d1, sin2) - scaled(d2, sin1));
        v[0] = v[0] + s1 + s2;
        v[1] = even1 + odd1;
        v[2] = even2 + odd2;
        v[3] = even2 - odd2;
        v[4] = even1 - odd1;
    }
};

// Returns the base-2 logarithm of a power of two; -1 for other numbers. Callers shift by it, which is much faster than dividing.
__device__ inline int bits_of(int number) {
    int bits = 0;
    while (number >> bits > 1) bits++;
    return 1 << bits == number ? bits : -1;
}

// One pass over all frames of a block: splits each transform of `n` elements into RADIX transforms of n / RADIX elements.
template <int RADIX>
__device__ inline void pass(const Complex *x, Complex *y, const Complex *roots, int n, int stride, int turn) {
    const int part = n / RADIX, bits = bits_of(stride);
    for (int b = threadIdx.x; b < part * stride; b += blockDim.x) {
        int p = bits >= 0 ? b >> bits : b / stride, q = b - p * stride;
        Complex v[RADIX];
        #pragma unroll
        for (int j = 0; j < RADIX; j++) v[j] = x[b + j * part * stride];
        Butterfly<RADIX>::transform(v);
        Complex *out = y + q + p * RADIX * stride;
        out[0] = v[0];
        #pragma unroll
        for (int k = 1; k < RADIX; k++) out[k * stride] = v[k] * roots[p * k * turn];
    }
}

// The same for any radix, computed by the definition of the transform; sums, which may be long, are in double precision. `spread` is
// the distance between the radix's roots in `roots`.
__device__ inline void pass_of(int radix, const Complex *x, Complex *y, const Complex *roots, int n, int stride,
                               int turn, int spread) {
    const int part = n / radix;
    for (int o = threadIdx.x; o < n * stride; o += blockDim.x) {
        int q = o % stride, k = o / stride % radix, p = o / stride / radix;
        double re = 0.0, im = 0.0;
        int angle = 0;
        for (int j = 0; j < radix; j++) {
            Complex term = x[q + stride * (p + part * j)] * roots[angle * spread];
            re += term.re;
            im += term.im;
            angle += k;
            if (angle >= radix) angle -= radix;
        }
        Complex sum = {float(re), float(im)};
        y[o] = sum * roots[p * k * turn];
    }
}

// Returns element `k` of the frame that begins at `first`, multiplied by the window. Outside of the signal, elements are its
// reflection (`t.reflect`) or 0.
__device__ inline float frame_element(const Signal &s, const Transform &t, const float *window, int64 first, int k) {
    if (k >= t.window) return 0.0f;
    int64 index = first + k;
    if (index < 0 || index >= s.length) {
        if (!t.reflect) return 0.0f;
        int64 period = 2 * s.length - 2;
        index = period ? (index < 0 ? -index : index) % period : 0;
        if (index >= s.length) index = period - index;
    }
    return reinterpret_cast<const float *>(s.source)[index] * window[k];
}

// Returns the power of frequency `k` of the frame number `lane` of the block.
__device__ inline float power_of(const Complex *x, const Complex *roots, const Transform &t, int k, int lane) {
    if (t.size == t.points) {
        Complex value = x[k * t.lanes + lane];
        return value.re * value.re + value.im * value.im;
    }
    int mirrored = t.size - k;
    Complex a = x[(k == t.size ? 0 : k) * t.lanes + lane], b = x[(mirrored == t.size ? 0 : mirrored) * t.lanes + lane];
    Complex even = {a.re + b.re, a.im - b.im}, odd = {a.im + b.im, b.re - a.re};
    Complex twice = even + odd * roots[k];
    return (twice.re * twice.re + twice.im * twice.im) * 0.25f;
}

template <bool IN_SHARED>
__global__ void power_spectra(const int64 *__restrict__ first_blocks, const Signal *__restrict__ signals, int samples,
                              const Transform *__restrict__ transform, const Complex *__restrict__ roots,
                              const float *__restrict__ window, Complex *room, int64 groups) {
    extern __shared__ __align__(16) char shared[];
    const Transform &t = *transform;
    const int elements = t.size * t.lanes;
    Complex *x = IN_SHARED ? reinterpret_cast<Complex *>(shared) : room + int64(blockIdx.x) * elements * 2;
    Complex *y = x + elements;
    const bool halved = t.size != t.points;
    // `t.lanes` is always a power of two.
    const int lane_bits = bits_of(t.lanes), last_lane = t.lanes - 1;
    const int bins = t.points / 2 + 1;
    for (int64 group = blockIdx.x; group < groups; group += gridDim.x) {
        int sample = sample_of(first_blocks, samples, group);
        const Signal &s = signals[sample];
        int64 first = (group - first_blocks[sample]) * t.lanes;
        for (int o = threadIdx.x; o < elements; o += blockDim.x) {
            int64 frame = first + (o & last_lane);
            int k = o >> lane_bits;
            Complex value = {0.0f, 0.0f};
            if (frame < s.frames) {
                int64 begin = t.start + frame * t.step;
                value.re = frame_element(s, t, window, begin, halved ? 2 * k : k);
                if (halved) value.im = frame_element(s, t, window, begin, 2 * k + 1);
            }
            x[o] = value;
        }
        __syncthreads();
        int n = t.size, stride = t.lanes;
        for (int i = 0; i < t.passes; i++) {
            const int radix = t.radices[i], turn = t.points / n;
            if (radix == 4) pass<4>(x, y, roots, n, stride, turn);
            else if (radix == 2) pass<2>(x, y, roots, n, stride, turn);
            else if (radix == 3) pass<3>(x, y, roots, n, stride, turn);
            else if (radix == 5) pass<5>(x, y, roots, n, stride, turn);
            else pass_of(radix, x, y, roots, n, stride, turn, t.points / radix);
            __syncthreads();
            Complex *other = x;
            x = y;
            y = other;
            n /= radix;
            stride *= radix;
        }
        for (int o = threadIdx.x; o < bins * t.lanes; o += blockDim.x) {
            int64 frame = first + (o & last_lane);
            int k = o >> lane_bits;
            if (frame >= s.frames) continue;
            float power = power_of(x, roots, t, k, o & last_lane);
            reinterpret_cast<float *>(s.target)[frame * s.frame_step + k * s.bin_step] = t.magnitude ? sqrtf(power) : power;
        }
        __syncthreads();
    }
}
