// Separable resampling and the steps after it: rounding, normalization and layout. Crop and mirror are part of the taps; the
// mirror may also be a flag of each image, which can differ between runs of a recorded launch.
//
// Each block of `resample` computes a segment of one output row: it sums vertical taps into a row of floats in shared memory, and then
// horizontal taps from that row. If a segment needs more input columns than shared memory holds, the block processes them in chunks. Terms
// are always added in the order of the taps, so results do not depend on segments and chunks.

// Whether a type has NaN and infinity. If so, taps of weight zero, which may lie outside of the image, are skipped.
template <typename T> struct MayBeNoNumber { static const bool value = false; };
template <> struct MayBeNoNumber<float> { static const bool value = true; };
template <> struct MayBeNoNumber<float16> { static const bool value = true; };

// N neighbouring elements, read with one instruction and converted to floats.
template <int N, typename In>
struct Elements {
    struct alignas(N * sizeof(In)) Whole { In values[N]; };
    static __device__ inline void read(const In *at, float *floats) {
        Whole whole = *reinterpret_cast<const Whole *>(at);
        for (int i = 0; i < N; i++) floats[i] = to_float(whole.values[i]);
    }
};
#ifdef __CUDACC__
// A byte is converted by putting it into the lowest bits of the float 2^23, and subtracting 2^23; conversion instructions run at a quarter
// of the speed.
template <int N>
struct Elements<N, uint8> {
    static __device__ inline void read(const uint8 *at, float *floats) {
        if (N < 4) {
            floats[0] = float(*at);
            return;
        }
        struct alignas(N < 4 ? 4 : N) Words { uint32 values[N < 4 ? 1 : N / 4]; };
        Words words = *reinterpret_cast<const Words *>(at);
#pragma unroll
        for (int i = 0; i < N; i++)
            floats[i] = __uint_as_float(__byte_perm(words.values[i / 4], 0x4B000000, 0x7440 + i % 4)) - 8388608.0f;
    }
};
#endif

// Sums the vertical taps of `count` neighbouring elements, N at a time; rows are `stride` elements apart.
template <int N, typename In>
__device__ inline void sum_rows(const In *top, int64 stride, const float *weights, int taps, int count, float *row) {
    struct alignas(N * sizeof(float) < 16 ? N * sizeof(float) : 16) Sums { float values[N]; };
    for (int i = N * threadIdx.x; i < count; i += N * blockDim.x) {
        const In *column = top + i;
        Sums sums;
        for (int j = 0; j < N; j++) sums.values[j] = 0.0f;
#pragma unroll 4
        for (int k = 0; k < taps; k++) {
            float weight = weights[k];
            if (MayBeNoNumber<In>::value && weight == 0.0f) continue;
            float elements[N];
            Elements<N, In>::read(column + k * stride, elements);
            for (int j = 0; j < N; j++) sums.values[j] = fmaf(weight, elements[j], sums.values[j]);
        }
        *reinterpret_cast<Sums *>(row + i) = sums;
    }
}

__device__ inline int ceil_div(int a, int b) { return a <= 0 ? 0 : (a + b - 1) / b; }

// Rounds a value to `Between`; if that is float, nothing is rounded.
template <typename Between>
struct Rounded {
    static __device__ inline float of(float value) { return to_float(converted<Between>(value)); }
};
// The same for bytes, with fewer operations: NaN becomes 0. The number just below one half is added, so that a fraction of one half is
// rounded up, but none below it.
template <>
struct Rounded<uint8> {
    static __device__ inline float of(float value) { return truncf(fminf(fmaxf(value, 0.0f), 255.0f) + 0.49999997f); }
};

template <typename Between, typename Out>
__device__ inline void finish(const Resample &p, float mean, float factor, Out *target, float value) {
    value = Rounded<Between>::of(value);
    if (p.normalize) value = (value - mean) * factor + p.shift;
    *target = converted<Out>(value);
}

// Where a pixel's first channel is written, and the distance from each channel to the next.
__device__ inline int64 place_of_pixel(const Resample &p, int y, int x) {
    int64 pixel = int64(y) * p.out_width + x;
    return p.planar ? pixel : pixel * p.out_channels;
}
__device__ inline int64 channel_step(const Resample &p) { return p.planar ? int64(p.out_height) * p.out_width : 1; }

// `normalization`: the mean of each channel, followed by the factor of each channel.
template <typename Between, int Channels, typename Out>
__device__ inline void finish_pixel(const Resample &p, const float *normalization, Out *target, int y, int x, const float *values) {
    target += place_of_pixel(p, y, x);
    int64 step = channel_step(p);
#pragma unroll
    for (int c = 0; c < Channels; c++, target += step)
        finish<Between>(p, normalization[c], normalization[Channels + c], target, values[c]);
}

// Fills the channels that only the target has, in a range of rows and columns.
template <typename Out>
__device__ inline void fill_channels(const Resample &p, Out *target, int begin_y, int rows, int begin_x, int columns) {
    int64 step = channel_step(p);
    for (int i = threadIdx.x; i < rows * columns * (p.out_channels - p.channels); i += blockDim.x) {
        int pixel = i % (rows * columns), c = p.channels + i / (rows * columns);
        int y = begin_y + pixel / columns, x = begin_x + pixel % columns;
        target[place_of_pixel(p, y, x) + c * step] = converted<Out>(p.fill);
    }
}

// `Channels`: the number of channels of all images; 0: images may differ, see `p.channels`.
template <typename In, typename Between, typename Out, int Channels>
__global__ void __launch_bounds__(256, 8) resample(const int64 *__restrict__ first_blocks, const Resample *__restrict__ plans, int samples,
                         const int32 *__restrict__ starts, const float *__restrict__ tables,
                         const int32 *__restrict__ mirrored, int capacity) {
    extern __shared__ __align__(16) float row[];
    float *sums = row + capacity;
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Resample &p = plans[sample];
    int64 block = blockIdx.x - first_blocks[sample];
    int begin_x = int(block % p.segments) * p.segment;
    int columns = min(p.segment, p.out_width - begin_x);
    int y = int(block / p.segments % p.out_height);
    int64 plane = block / p.segments / p.out_height;
    Out *target = reinterpret_cast<Out *>(p.target) + plane * p.target_plane;
    const int32 *h_starts = starts + p.h_starts + begin_x;
    // The weights are stored tap by tap, each tap's weights for all columns side by side.
    const float *h_weights = tables + p.h_weights + begin_x;
    const float *v_weights = tables + p.v_weights + int64(y) * p.v_taps;
    const float *mean = tables + p.normalization;
    // Column x of the result is written to column first_x + step_x * x.
    bool reversed = mirrored && mirrored[sample];
    int first_x = reversed ? p.out_width - 1 - begin_x : begin_x, step_x = reversed ? -1 : 1;
    int v_taps = p.v_taps;
    while (v_taps > 1 && v_weights[v_taps - 1] == 0.0f) v_taps--;

    // The range of input elements of a row that the segment needs. From column to column, starts rise, or fall in mirrored images.
    const int C = Channels ? Channels : p.channels;
    int64 stride = int64(p.width) * C;
    int begin = min(h_starts[0], h_starts[columns - 1]) * C;
    int end = (max(h_starts[0], h_starts[columns - 1]) + p.h_taps) * C;
    begin &= ~(p.together - 1);
    end = (end + p.together - 1) & ~(p.together - 1);
    const In *top = reinterpret_cast<const In *>(p.source) + plane * p.source_plane + starts[p.v_starts + y] * stride;

    for (int chunk = begin; chunk < end; chunk += capacity) {
        int count = min(capacity, end - chunk);
        if (chunk != begin) __syncthreads();
        if (sizeof(In) == 1 && p.together == 8) sum_rows<sizeof(In) == 1 ? 8 : 4>(top + chunk, stride, v_weights, v_taps, count, row);
        else if (p.together == 4) sum_rows<4>(top + chunk, stride, v_weights, v_taps, count, row);
        else sum_rows<1>(top + chunk, stride, v_weights, v_taps, count, row);
        __syncthreads();
        bool last = chunk + count == end;
        if (Channels && last && chunk == begin) {
            // All sums of the segment are complete: now each thread makes whole pixels.
            for (int x = threadIdx.x; x < columns; x += blockDim.x) {
                const float *taps = row + h_starts[x] * C - chunk;
                float values[Channels ? Channels : 1];
                for (int c = 0; c < Channels; c++) values[c] = 0.0f;
#pragma unroll 4
                for (int k = 0; k < p.h_taps; k++) {
                    float weight = h_weights[int64(k) * p.out_width + x];
                    for (int c = 0; c < Channels; c++) values[c] = fmaf(weight, taps[k * C + c], values[c]);
                }
                finish_pixel<Between, Channels>(p, mean, target, y, first_x + step_x * x, values);
            }
            continue;
        }
        for (int i = threadIdx.x; i < columns * C; i += blockDim.x) {
            int x = p.planar ? i % columns : i / C;
            int c = p.planar ? i / columns : i % C;
            int start = h_starts[x];
            int k = chunk == begin ? 0 : max(ceil_div(chunk - c, C) - start, 0);
            int stop = last ? p.h_taps : min(ceil_div(chunk + count - c, C) - start, p.h_taps);
            float value = chunk == begin ? 0.0f : sums[i];
            const float *taps = row + start * C + c - chunk;
            for (; k < stop; k++) value = fmaf(h_weights[int64(k) * p.out_width + x], taps[k * C], value);
            if (!last) {
                sums[i] = value;
                continue;
            }
            Out *place = target + place_of_pixel(p, y, first_x + step_x * x) + c * channel_step(p);
            finish<Between>(p, mean[c], mean[C + c], place, value);
        }
    }
    fill_channels(p, target, y, 1, begin_x, columns);
}

// -- strips of bytes --------------------------------------------------------------------------------------------------

// A 32-bit word that holds one byte, read as a float, is a denormal number: 2^-149 times the byte. So bytes need no conversion. As row
// weights are scaled by 2^120, sums are exactly 2^-29 times the usual sums; column weights are scaled by 2^29 to make up for that.
const float ROW_SCALE = 0x1p120f, COLUMN_SCALE = 0x1p29f;

// Only this instruction keeps denormal numbers; others flush them to 0, as kernels are compiled with `-ftz=true`.
#ifdef __CUDACC__
__device__ inline float fma_of_byte(float weight, float byte, float sum) {
    asm("fma.rn.f32 %0, %1, %2, %0;" : "+f"(sum) : "f"(weight), "f"(byte));
    return sum;
}
#else
inline float fma_of_byte(float weight, float byte, float sum) { return fmaf(weight, byte, sum); }
#endif

__device__ inline float byte_of(uint32 word, int i) { return __uint_as_float(__byte_perm(word, 0, 0x4440 + i)); }

// The weights with which a source row contributes to an even and to an odd output row.
struct alignas(8) RowWeights { float even, odd; };

// Neighbouring source rows that are read together. The last chunk of an output row completes it. Complete rows are finished together: when
// there are enough of them, or when no more follow.
struct alignas(8) Chunk {
    int row, what;
    static const int COMPLETES = 1 << 8, IS_ODD = 1 << 9, FINISHES = 1 << 10;
    __device__ inline int count() const { return what & (COMPLETES - 1); }
};

// Like `resample`, for bytes that can be read four at a time. It is faster if each source row contributes to at most two output rows;
// otherwise, results are correct, but not computed faster.
//
// A block computes a segment of a strip of output rows. It goes down the source, reads each row once, and adds it to the sums of two output
// rows, which its threads hold in registers. Each thread processes several groups of four bytes; they lie far apart, so that neighbouring
// threads read and write neighbouring groups. Complete rows of sums are stored in shared memory; when there are enough of them to occupy
// all threads, horizontal taps are summed from there.
template <typename Between, typename Out, int Channels>
__global__ void __launch_bounds__(THREADS, STRIP_BLOCKS) resample_strips(
    const int64 *__restrict__ first_blocks, const Resample *__restrict__ plans, int samples, const int32 *__restrict__ starts,
    const float *__restrict__ tables, const int32 *__restrict__ mirrored, int kept, int most_rows, int most_taps) {
    const int C = Channels, GROUPS = STRIP_GROUPS, APART = 4 * THREADS, PITCH = GROUPS * APART, READS = READ_ROWS;
    extern __shared__ __align__(16) float sums[];   // room for `kept` rows of sums
    // Values that all threads share and rarely need.
    Resample &p = *reinterpret_cast<Resample *>(sums + kept * PITCH);
    RowWeights *row_weights = reinterpret_cast<RowWeights *>(&p + 1);
    Chunk *chunks = reinterpret_cast<Chunk *>(row_weights + most_rows * most_taps);
    int *firsts = reinterpret_cast<int *>(chunks + most_rows * ((most_taps + READS - 1) / READS) + 1);
    int *lasts = firsts + most_rows, *begins = lasts + most_rows, *places = begins + most_rows;
    float *normalization = reinterpret_cast<float *>(places + most_rows), *column_weights = normalization + 2 * Channels;

    int sample = sample_of(first_blocks, samples, blockIdx.x);
    if (threadIdx.x == 0) p = plans[sample];
    __syncthreads();
    uint32 block = uint32(blockIdx.x - first_blocks[sample]);
    uint32 strip = block / p.segments, strips = (p.out_height + p.strip - 1) / p.strip;
    int begin_x = int(block - strip * p.segments) * p.segment, columns = min(p.segment, p.out_width - begin_x);
    uint32 plane = strip / strips;
    int begin_y = int(strip - plane * strips) * p.strip;
    const int32 *h_starts = starts + p.h_starts + begin_x;
    {
        // The source rows that each output row of the strip has weights for: `firsts` to `lasts`.
        const int rows = min(p.strip, p.out_height - begin_y), v_taps = p.v_taps;
        const int32 *v_starts = starts + p.v_starts + begin_y;
        const float *v_weights = tables + p.v_weights + int64(begin_y) * v_taps;
        for (int y = threadIdx.x; y < rows; y += THREADS) {
            const float *own = v_weights + y * v_taps;
            int first = 0, last = v_taps - 1;
            while (last > 0 && own[last] == 0.0f) last--;
            while (first < last && own[first] == 0.0f) first++;
            firsts[y] = v_starts[y] + first;
            lasts[y] = v_starts[y] + last;
        }
        for (int i = threadIdx.x; i < p.h_taps * columns; i += THREADS) {
            int k = i / columns, x = i - k * columns;
            column_weights[i] = COLUMN_SCALE * tables[p.h_weights + int64(k) * p.out_width + begin_x + x];
        }
        if (p.normalize && threadIdx.x < 2 * Channels) normalization[threadIdx.x] = tables[p.normalization + threadIdx.x];
        __syncthreads();
        // If no output row shares source rows with the second one before it, each source row is read only once.
        bool once = true;
        for (int y = 1; y < rows; y++)
            once = once && firsts[y] >= firsts[y - 1] && lasts[y] > lasts[y - 1] && (y < 2 || firsts[y] > lasts[y - 2]);
        if (threadIdx.x < rows) {
            const int own = threadIdx.x, together = min(kept, THREADS / columns);
            Chunk *chunk = chunks;
            for (int y = 0, place = 0; y <= own; y++) {
                int first = once && y ? max(firsts[y], lasts[y - 1] + 1) : firsts[y], count = lasts[y] - first + 1;
                if (y < own) {
                    place += count;
                    chunk += (count + READS - 1) / READS;
                    continue;
                }
                begins[y] = first;
                places[y] = place;
                for (; count > READS; first += READS, count -= READS) *chunk++ = {first, READS};
                int finishes = (y + 1) % together == 0 || y + 1 == rows ? Chunk::FINISHES : 0;
                *chunk++ = {first, count | Chunk::COMPLETES | (y % 2 ? Chunk::IS_ODD : 0) | finishes};
                if (y + 1 == rows) *chunk = {first, 0};
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < rows * v_taps; i += THREADS) {
            int y = i / v_taps, k = i - y * v_taps, row = begins[y] + k;
            if (row > lasts[y]) continue;
            const float *from = v_weights + y * v_taps + row;
            float own = ROW_SCALE * from[-v_starts[y]], other = 0.0f;
            if (once && y + 1 < rows && row >= firsts[y + 1]) other = ROW_SCALE * from[v_taps - v_starts[y + 1]];
            row_weights[places[y] + k] = {y % 2 ? other : own, y % 2 ? own : other};
        }
        __syncthreads();
    }

    int begin = min(h_starts[0], h_starts[columns - 1]) * C & ~3;
    int end = (max(h_starts[0], h_starts[columns - 1]) + p.h_taps) * C;
    const int stride = p.width * C;
    const uint8 *column = reinterpret_cast<const uint8 *>(p.source) + plane * p.source_plane + begin + 4 * threadIdx.x;
    const int own_groups = max(0, (end - begin - 4 * int(threadIdx.x) + APART - 1) / APART);
    float *const own_sums = sums + 4 * threadIdx.x;

    // Each thread makes one pixel of each group of complete rows.
    const int own_row = threadIdx.x / columns, x = threadIdx.x - own_row * columns;
    const float *const taps = sums + own_row * PITCH + h_starts[x] * C - begin;
    const float *const own_weights = column_weights + x;
    const int out_x = mirrored && mirrored[sample] ? p.out_width - 1 - begin_x - x : begin_x + x;
    Out *const target = reinterpret_cast<Out *>(p.target) + plane * p.target_plane;

    float even[GROUPS][4], odd[GROUPS][4];
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < 4; i++) even[g][i] = odd[g][i] = 0.0f;
    uint32 words[READS][GROUPS];
    auto read = [&](uint32 *row, const uint8 *from) {
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            if (g < own_groups) row[g] = *reinterpret_cast<const uint32 *>(from + g * APART);
    };
    Chunk chunk = *chunks;
#pragma unroll
    for (int k = 0; k < READS; k++) {
        for (int g = 0; g < GROUPS; g++) words[k][g] = 0;
        if (k < chunk.count()) read(words[k], column + int64(chunk.row + k) * stride);
    }
    int filled = 0, out_y = begin_y + own_row;
    auto put = [&](float (&complete)[GROUPS][4]) {
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            float *own = complete[g];
            *reinterpret_cast<Pack<float, 4> *>(own_sums + filled * PITCH + g * APART) = {own[0], own[1], own[2], own[3]};
            for (int i = 0; i < 4; i++) own[i] = 0.0f;
        }
    };
    const RowWeights *weights = row_weights;
    while (chunk.count()) {
        const Chunk following = *++chunks;
        const int count = chunk.count(), next_count = following.count();
        const uint8 *from = column + int64(following.row) * stride;
        // The words of each row are replaced by those of the next chunk as soon as they have been added.
#pragma unroll
        for (int k = 0; k < READS; k++) {
            if (k < count) {
                RowWeights weight = weights[k];
#pragma unroll
                for (int g = 0; g < GROUPS; g++) {
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        float byte = byte_of(words[k][g], i);
                        even[g][i] = fma_of_byte(weight.even, byte, even[g][i]);
                        odd[g][i] = fma_of_byte(weight.odd, byte, odd[g][i]);
                    }
                }
            }
            if (k < next_count) read(words[k], from);
            from += stride;
        }
        weights += count;
        if (chunk.what & Chunk::COMPLETES) {
            if (chunk.what & Chunk::IS_ODD) put(odd);
            else put(even);
            filled++;
        }
        if (chunk.what & Chunk::FINISHES) {
            __syncthreads();
            if (own_row < filled) {
                float values[Channels];
#pragma unroll
                for (int c = 0; c < Channels; c++) values[c] = 0.0f;
                const int h_taps = p.h_taps;
#pragma unroll 6
                for (int k = 0; k < h_taps; k++) {
                    float weight = own_weights[k * columns];
#pragma unroll
                    for (int c = 0; c < Channels; c++) values[c] = fmaf(weight, taps[k * C + c], values[c]);
                }
                finish_pixel<Between, Channels>(p, normalization, target, out_y, out_x, values);
            }
            __syncthreads();
            out_y += filled;
            filled = 0;
        }
        chunk = following;
    }
    fill_channels(p, target, begin_y, out_y - begin_y - own_row, begin_x, columns);
}

template <typename In, typename Out>
__global__ void resample_axis(const int64 *__restrict__ first_blocks, const Axis *__restrict__ plans, int samples,
                              const int32 *__restrict__ starts, const float *__restrict__ weights) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Axis p = plans[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.outer * p.out_size * p.inner) return;
    int64 i = element % p.inner;
    int64 y = element / p.inner % p.out_size;
    int64 o = element / p.inner / p.out_size;
    const In *source = reinterpret_cast<const In *>(p.source) + (o * p.size + starts[p.starts + y]) * p.inner + i;
    const float *w = weights + p.weights + y * p.taps;
    float sum = 0.0f;
    for (int k = 0; k < p.taps; k++)
        if (w[k] != 0.0f) sum = fmaf(w[k], to_float(source[k * p.inner]), sum);
    reinterpret_cast<Out *>(p.target)[element] = converted<Out>(sum);
}
