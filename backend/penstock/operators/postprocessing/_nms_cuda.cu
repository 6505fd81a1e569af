// Non-maximum suppression. Candidates are the scores above a sample's threshold. Each candidate has a key: better candidates have smaller
// keys. The lower half of a key is the position among the sample's scores, so that equal scores stay in order and no two keys are equal.
//
// Sorted candidates are processed in chunks, the best first. In each chunk, all pairs are compared at once, and bits record which pairs
// overlap too much. Then, one block per sample sweeps over the bits to decide which candidates are kept. At last, kept candidates are
// compared with all candidates after the chunk.

const int TILE = THREADS;
const int WORD = 64;  // number of candidates whose bits are in one word
const int WORDS = CHUNK / WORD;
const int WARP = 32, WARPS = THREADS / WARP;
// Number of rows of a word's bits that each thread of `sweep` reads.
const int ROWS = WORD / WARPS;
static_assert(WORDS == WARP, "a thread of a warp holds one word");

__device__ inline bool is_finite(float value) { return value - value == 0.0f; }

struct Box {
    float left, top, right, bottom;
};

template <typename T>
__device__ inline Box box_of(const Detections &d, int64 number) {
    const T *at = reinterpret_cast<const T *>(d.boxes) + 4 * number;
    Box box = {to_float(at[0]), to_float(at[1]), to_float(at[2]), to_float(at[3])};
    if (d.with_sizes) {
        box.right = box.left + box.right;
        box.bottom = box.top + box.bottom;
    }
    return box;
}

__device__ inline uint64 key_of(float score, int64 position) {
    union {
        float number;
        uint32 bits;
    } value = {score == 0.0f ? 0.0f : score};
    uint32 ascending = value.bits & 0x80000000u ? ~value.bits : value.bits | 0x80000000u;
    return uint64(~ascending) << 32 | uint64(position);
}

// Counts candidates, and collects their keys if there is memory for keys. In the results, `unordered` gets the position of the first score
// that is NaN, and `infinite` the number of the first candidate's box that is not finite.
template <typename BoxType, typename Score>
__global__ void collect_candidates(const int64 *__restrict__ first_blocks, const Detections *__restrict__ samples, int count,
                                   Result *__restrict__ results) {
    __shared__ uint32 found, begin;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Detections d = samples[sample];
    const Score *scores = reinterpret_cast<const Score *>(d.scores);
    int64 first = (blockIdx.x - first_blocks[sample]) * THREADS * ROUNDS + threadIdx.x;
    uint32 own = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64 position = first + round * THREADS;
        if (position >= d.num_scores) break;
        float score = to_float(scores[position]);
        if (score != score) atomicMin(&results[sample].unordered, uint64(position));
        if (!(score > d.score_threshold)) continue;
        own++;
        int64 number = position / d.classes;
        Box box = box_of<BoxType>(d, number);
        if (!(is_finite(box.left) && is_finite(box.top) && is_finite(box.right) && is_finite(box.bottom)))
            atomicMin(&results[sample].infinite, uint64(number));
    }
    uint32 place = own ? atomicAdd(&found, own) : 0;
    __syncthreads();
    if (threadIdx.x == 0 && found) begin = atomicAdd(&results[sample].candidates, found);
    __syncthreads();
    if (!d.keys || !own) return;
    uint64 *keys = reinterpret_cast<uint64 *>(d.keys) + begin + place;
    for (int round = 0; round < ROUNDS; round++) {
        int64 position = first + round * THREADS;
        if (position >= d.num_scores) break;
        float score = to_float(scores[position]);
        if (score > d.score_threshold) *keys++ = key_of(score, position);
    }
}

// Sorts each tile of the keys, and pads the last tile with keys that are larger than all others.
__global__ void sort_tiles(const int64 *__restrict__ first_blocks, const Detections *__restrict__ samples, int count,
                           const Result *__restrict__ results) {
    __shared__ uint64 tile[TILE];
    int sample = sample_of(first_blocks, count, blockIdx.x);
    int64 candidates = results[sample].candidates, begin = (blockIdx.x - first_blocks[sample]) * TILE;
    if (begin >= candidates) return;
    uint64 *keys = reinterpret_cast<uint64 *>(samples[sample].keys) + begin;
    int size = candidates - begin < TILE ? int(candidates - begin) : TILE, self = threadIdx.x;
    uint64 key = tile[self] = self < size ? keys[self] : ~uint64(0);
    __syncthreads();
    int rank = self;
    if (self < size) {
        rank = 0;
        for (int i = 0; i < size; i++) rank += tile[i] < key;
    }
    keys[rank] = key;
}

// Returns the number of keys in a sorted tile that are smaller than `key`.
__device__ inline int rank_in(const uint64 *tile, uint64 key) {
    int rank = 0;
#pragma unroll
    for (int step = TILE / 2; step; step /= 2) rank += tile[rank + step - 1] < key ? step : 0;
    return rank + (tile[rank] < key);
}

// A box, its area and class, the position of its score, and whether it is out of consideration.
struct alignas(16) Candidate {
    Box box;
    float area;
    int label;
    uint32 position;
    int is_out;
};

// Writes the candidates in order: the index of each is the number of smaller keys.
template <typename BoxType>
__global__ void rank_candidates(const int64 *__restrict__ first_blocks, const Detections *__restrict__ samples, int count,
                                const Result *__restrict__ results) {
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Detections d = samples[sample];
    int64 candidates = results[sample].candidates, self = (blockIdx.x - first_blocks[sample]) * TILE + threadIdx.x;
    if (self >= candidates) return;
    const uint64 *__restrict__ keys = reinterpret_cast<const uint64 *>(d.keys);
    uint64 key = keys[self];
    int64 rank = 0;
#pragma unroll 4
    for (int64 begin = 0; begin < candidates; begin += TILE) rank += rank_in(keys + begin, key);
    Candidate own;
    own.position = uint32(key);
    int64 number = own.position / d.classes;
    own.box = box_of<BoxType>(d, number);
    own.area = (own.box.right - own.box.left) * (own.box.bottom - own.box.top);
    own.label = d.labels ? reinterpret_cast<const int *>(d.labels)[number] : int(own.position % d.classes);
    own.is_out = 0;
    reinterpret_cast<Candidate *>(d.candidates)[rank] = own;
}

// Takes all but the best `max_candidates` candidates out of consideration: of each class if classes are separate, else of all.
__global__ void limit_candidates(const int64 *__restrict__ first_blocks, const Detections *__restrict__ samples, int count,
                                 const Result *__restrict__ results) {
    __shared__ int labels[TILE];
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Detections d = samples[sample];
    Candidate *candidates = reinterpret_cast<Candidate *>(d.candidates);
    int64 size = results[sample].candidates, first = (blockIdx.x - first_blocks[sample]) * TILE, self = first + threadIdx.x;
    if (first >= size) return;
    int label = self < size ? candidates[self].label : 0;
    int64 better = d.class_wise ? 0 : self;
    for (int64 begin = 0; d.class_wise && begin <= first; begin += TILE) {
        if (begin + threadIdx.x < size) labels[threadIdx.x] = candidates[begin + threadIdx.x].label;
        __syncthreads();
        int end = self - begin < TILE ? int(self - begin) : TILE;
        for (int i = 0; i < end; i++) better += labels[i] == label;
        __syncthreads();
    }
    if (self < size && better >= d.max_candidates) candidates[self].is_out = 1;
}

__device__ inline float larger(float a, float b) { return a > b ? a : b; }
__device__ inline float smaller(float a, float b) { return a < b ? a : b; }

// Returns whether the better of two candidates suppresses the other one.
__device__ inline bool suppresses(const Candidate &one, const Candidate &other, const Detections &d) {
    float wide = larger(0.0f, smaller(other.box.right, one.box.right) - larger(other.box.left, one.box.left));
    float high = larger(0.0f, smaller(other.box.bottom, one.box.bottom) - larger(other.box.top, one.box.top));
    float shared = wide * high, whole = one.area + other.area - shared;
    // Most pairs are far below the threshold. A product proves this much faster than the quotient, which is needed only for the others.
    bool is_apart = !(shared > 0.0f) || shared <= whole * (0.999f * d.iou_threshold);
    if (is_apart || (d.class_wise && one.label != other.label)) return false;
    return shared / whole > d.iou_threshold;
}

// Compares all pairs of a chunk's candidates. A block computes some squares of WORD times WORD bits on and above the diagonal, with one
// thread per row. In a square above the diagonal, the bits of a row stand for worse candidates; in one on it, for better candidates.
__global__ void compare_candidates(const int64 *__restrict__ first_blocks, const Detections *__restrict__ samples, int count,
                                   const Result *__restrict__ results, int64 begin) {
    __shared__ Candidate columns[THREADS];
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Detections d = samples[sample];
    int64 size = results[sample].candidates;
    if (begin >= size || results[sample].kept >= d.limit) return;
    int group = threadIdx.x / WORD * WORD, self = threadIdx.x % WORD;
    int square = int(blockIdx.x - first_blocks[sample]) * (THREADS / WORD) + group / WORD, column = 0;
    while (square > column) square -= ++column;
    const Candidate *candidates = reinterpret_cast<const Candidate *>(d.candidates);
    int64 row = begin + square * WORD + self, first = begin + column * WORD;
    bool is_within = column < WORDS && first < size;
    if (is_within && first + self < size) columns[threadIdx.x] = candidates[first + self];
    __syncthreads();
    if (!is_within || row >= size) return;
    Candidate own = candidates[row];
    int end = square == column ? self : size - first < WORD ? int(size - first) : WORD;
    uint64 bits = 0;
    if (!own.is_out)
        for (int i = 0; i < end; i++) bits |= uint64(suppresses(own, columns[group + i], d)) << i;
    reinterpret_cast<uint64 *>(d.overlaps)[(row - begin) * WORDS + column] = bits;
}

__device__ inline int count_bits(uint64 bits) { return __popc(uint32(bits)) + __popc(uint32(bits >> 32)); }

// Returns which of a word's candidates are kept. `gone`: candidates that cannot be kept, such as those suppressed by earlier words;
// `better_low`, `better_high`: the better candidates of the word that overlap candidate `lane` and candidate `lane + WARP`, respectively.
// The threads of a warp decide on two candidates each. Each round decides on at least the first open candidate.
__device__ inline uint64 kept_of(uint64 gone, uint64 better_low, uint64 better_high) {
    int lane = threadIdx.x % WARP;
    uint64 kept = 0;
    while (~(kept | gone)) {
        uint64 open = ~(kept | gone);
        bool low = open >> lane & 1, high = open >> (lane + WARP) & 1;
        uint32 gone_low = __ballot_sync(~0u, low && (better_low & kept)), gone_high = __ballot_sync(~0u, high && (better_high & kept));
        uint32 kept_low = __ballot_sync(~0u, low && !(better_low & ~gone)), kept_high = __ballot_sync(~0u, high && !(better_high & ~gone));
        gone |= gone_low | uint64(gone_high) << WARP;
        kept |= kept_low | uint64(kept_high) << WARP;
    }
    return kept;
}

// What a thread of `sweep` reads in advance for a word. `rows`: for some of the word's candidates, which candidates of word `lane` they
// suppress; `better_low`, `better_high`: arguments of `kept_of`; `candidate`: one of the word's candidates.
struct Step {
    uint64 rows[ROWS], better_low, better_high;
    Candidate candidate;
};

__device__ inline Step step_of(const Detections &d, int64 begin, int64 size, int word) {
    Step step = {};
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64 first = int64(word) * WORD, left = size - begin - first;
    const uint64 *bits = reinterpret_cast<const uint64 *>(d.overlaps) + first * WORDS;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        int row = warp + i * WARPS;
        if (row < left && lane > word && begin + lane * WORD < size) step.rows[i] = bits[row * WORDS + lane];
    }
    if (lane < left) step.better_low = bits[lane * WORDS + word];
    if (lane + WARP < left) step.better_high = bits[(lane + WARP) * WORDS + word];
    if (threadIdx.x < WORD && threadIdx.x < left)
        step.candidate = reinterpret_cast<const Candidate *>(d.candidates)[begin + first + threadIdx.x];
    return step;
}

// Decides which candidates of a chunk are kept, word by word, with one block per sample. Kept candidates are moved to the front of all
// candidates, over others that are no longer needed. In `suppressed`, each thread collects which candidates of word `lane` are suppressed
// by kept candidates.
__global__ void sweep(const int64 *__restrict__ first_blocks, const Detections *__restrict__ samples, int count,
                      Result *__restrict__ results, int64 begin) {
    __shared__ uint32 out[2 * WORDS];
    __shared__ uint64 parts[2][WARPS];
    const Detections d = samples[blockIdx.x];
    Candidate *candidates = reinterpret_cast<Candidate *>(d.candidates);
    int64 size = results[blockIdx.x].candidates, done = results[blockIdx.x].kept;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if (threadIdx.x < 2 * WORDS) out[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0) results[blockIdx.x].before = uint32(done);
    for (int i = threadIdx.x; i < CHUNK; i += THREADS)
        if (begin + i >= size || candidates[begin + i].is_out) atomicOr(&out[i / WARP], 1u << i % WARP);
    uint64 suppressed = 0;
    if (lane == 0) parts[0][warp] = 0;
    Step next = step_of(d, begin, size, 0);
    __syncthreads();
    for (int word = 0; word < WORDS && begin + word * WORD < size && done < d.limit; word++) {
        Step step = next;
        if (word + 1 < WORDS) next = step_of(d, begin, size, word + 1);
        uint64 gone = out[2 * word] | uint64(out[2 * word + 1]) << WARP;
        for (int i = 0; i < WARPS; i++) gone |= parts[word % 2][i];
        uint64 kept = kept_of(gone, step.better_low, step.better_high);
        int number = count_bits(kept);
        for (; done + number > d.limit; number--) {
            uint64 fewer = kept;
            for (int i = 1; i < number; i++) fewer &= fewer - 1;
            kept ^= fewer;
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (kept >> (warp + i * WARPS) & 1) suppressed |= step.rows[i];
        if (lane == word + 1) parts[(word + 1) % 2][warp] = suppressed;
        if (threadIdx.x < WORD && (kept >> threadIdx.x & 1)) {
            int64 place = done + count_bits(kept & ((uint64(1) << threadIdx.x) - 1));
            candidates[place] = step.candidate;
            int label = step.candidate.label;
            if (d.names && (label < 0 || label >= d.names))
                atomicMin(&results[blockIdx.x].unnamed, uint64(place) << 32 | uint32(label));
        }
        done += number;
        __syncthreads();
    }
    if (threadIdx.x == 0) results[blockIdx.x].kept = uint32(done);
}

// Compares the kept candidates of a chunk with all candidates after the chunk, and takes those that they suppress out of consideration.
__global__ void suppress_others(const int64 *__restrict__ first_blocks, const Detections *__restrict__ samples, int count,
                                const Result *__restrict__ results, int64 end) {
    __shared__ Candidate better[TILE];
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Detections d = samples[sample];
    const Result result = results[sample];
    Candidate *candidates = reinterpret_cast<Candidate *>(d.candidates);
    int64 first = end + (blockIdx.x - first_blocks[sample]) * THREADS, self = first + threadIdx.x;
    if (first >= result.candidates || result.kept >= d.limit) return;
    Candidate own = {};
    if (self < result.candidates) own = candidates[self];
    bool is_left = self < result.candidates && !own.is_out, is_hit = false;
    for (int64 begin = result.before; begin < result.kept; begin += TILE) {
        int left = result.kept - begin < TILE ? int(result.kept - begin) : TILE;
        if (threadIdx.x < left) better[threadIdx.x] = candidates[begin + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < left && is_left; i++) {
            is_hit = suppresses(better[i], own, d);
            is_left = !is_hit;
        }
        __syncthreads();
    }
    if (is_hit) candidates[self].is_out = 1;
}

// Writes the boxes, scores, labels and indices of the kept candidates.
template <typename BoxType, typename Score>
__global__ void gather(const int64 *__restrict__ first_blocks, const Gathered *__restrict__ samples, int count) {
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Gathered g = samples[sample];
    int64 row = (blockIdx.x - first_blocks[sample]) * THREADS + threadIdx.x;
    if (row >= g.rows) return;
    uint32 position = reinterpret_cast<const Candidate *>(g.kept)[row].position;
    int64 number = position / g.classes;
    for (int i = 0; i < 4; i++)
        reinterpret_cast<float *>(g.to_boxes)[4 * row + i] = to_float(reinterpret_cast<const BoxType *>(g.boxes)[4 * number + i]);
    reinterpret_cast<float *>(g.to_scores)[row] = to_float(reinterpret_cast<const Score *>(g.scores)[position]);
    const int *labels = reinterpret_cast<const int *>(g.labels);
    reinterpret_cast<int *>(g.to_labels)[row] = labels ? labels[number] : int(position % g.classes);
    reinterpret_cast<int *>(g.to_indices)[row] = int(number);
}
