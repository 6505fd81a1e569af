// Non-maximum suppression. Candidates are the scores above a sample's threshold. Each has a key: the smaller, the better; its lower half
// is the position among the sample's scores, so that equal scores stay in order and no two keys are equal.

const int TILE = THREADS;
// Boxes that a thread compares at a time.
const int ABREAST = 8;

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

// Counts candidates. `scores` and `boxes` of the findings get the first score that is NaN, and the first box that is not finite.
template <typename BoxType, typename Score>
__global__ void count_candidates(const int64 *__restrict__ first_blocks, const Detections *__restrict__ samples, int count,
                                 Finding *__restrict__ findings) {
    __shared__ uint32 found;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Detections d = samples[sample];
    const Score *scores = reinterpret_cast<const Score *>(d.scores);
    int64 first = (blockIdx.x - first_blocks[sample]) * THREADS * ROUNDS + threadIdx.x;
    for (int round = 0; round < ROUNDS; round++) {
        int64 position = first + round * THREADS;
        if (position >= d.num_scores) break;
        float score = to_float(scores[position]);
        if (score != score) atomicMin(&findings[sample].unordered, uint64(position));
        if (!(score > d.score_threshold)) continue;
        atomicAdd(&found, 1u);
        int64 number = position / d.classes;
        Box box = box_of<BoxType>(d, number);
        if (!(is_finite(box.left) && is_finite(box.top) && is_finite(box.right) && is_finite(box.bottom)))
            atomicMin(&findings[sample].infinite, uint64(number));
    }
    __syncthreads();
    if (threadIdx.x == 0 && found) atomicAdd(&findings[sample].candidates, found);
}

template <typename Score>
__global__ void collect_candidates(const int64 *__restrict__ first_blocks, const Detections *__restrict__ samples, int count,
                                   uint32 *__restrict__ ends) {
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Detections d = samples[sample];
    const Score *scores = reinterpret_cast<const Score *>(d.scores);
    uint64 *keys = reinterpret_cast<uint64 *>(d.keys);
    int64 first = (blockIdx.x - first_blocks[sample]) * THREADS * ROUNDS + threadIdx.x;
    for (int round = 0; round < ROUNDS; round++) {
        int64 position = first + round * THREADS;
        if (position >= d.num_scores) break;
        float score = to_float(scores[position]);
        if (score > d.score_threshold) keys[atomicAdd(ends + sample, 1u)] = key_of(score, position);
    }
}

// A key that is behind all others: of a candidate that is not considered.
const uint64 DROPPED = ~uint64(0);

// The group of a candidate, in which the best are considered.
__device__ inline int group_of(const Detections &d, uint64 key) {
    if (!d.class_wise) return 0;
    uint32 position = uint32(key);
    return d.labels ? reinterpret_cast<const int *>(d.labels)[position / d.classes] : int(position % d.classes);
}

// Sorts: the place of a key is the number of smaller ones. `LIMITED`: of each group, no more than `max_candidates` are considered.
template <bool LIMITED>
__global__ void rank_candidates(const int64 *__restrict__ first_blocks, const Detections *__restrict__ samples, int count) {
    __shared__ uint64 others[TILE];
    __shared__ int groups[LIMITED ? TILE : 1];
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Detections d = samples[sample];
    const uint64 *keys = reinterpret_cast<const uint64 *>(d.keys);
    int64 number = (blockIdx.x - first_blocks[sample]) * TILE + threadIdx.x;
    uint64 key = number < d.candidates ? keys[number] : 0;
    int group = LIMITED && number < d.candidates ? group_of(d, key) : 0;
    int64 rank = 0, better = 0;
    for (int64 begin = 0; begin < d.candidates; begin += TILE) {
        int64 left = d.candidates - begin;
        if (threadIdx.x < left) {
            others[threadIdx.x] = keys[begin + threadIdx.x];
            if (LIMITED) groups[threadIdx.x] = group_of(d, others[threadIdx.x]);
        }
        __syncthreads();
        int size = left < TILE ? int(left) : TILE;
        for (int i = 0; i < size; i++) {
            rank += others[i] < key;
            if (LIMITED) better += others[i] < key && groups[i] == group;
        }
        __syncthreads();
    }
    if (number < d.candidates)
        reinterpret_cast<uint64 *>(d.sorted)[rank] = LIMITED && better >= d.max_candidates ? DROPPED : key;
}

// A box, its area and its class.
struct Candidate {
    Box box;
    float area;
    int label;
};

__device__ inline float larger(float a, float b) { return a > b ? a : b; }
__device__ inline float smaller(float a, float b) { return a < b ? a : b; }

// Whether a better candidate suppresses another one.
__device__ inline bool suppresses(const Candidate &better, const Candidate &other, const Detections &d) {
    if (d.class_wise && better.label != other.label) return false;
    float wide = larger(0.0f, smaller(other.box.right, better.box.right) - larger(other.box.left, better.box.left));
    float high = larger(0.0f, smaller(other.box.bottom, better.box.bottom) - larger(other.box.top, better.box.top));
    float shared = wide * high;
    return shared > 0.0f && shared / (better.area + other.area - shared) > d.iou_threshold;
}

// One block for each sample takes the candidates in tiles, the best first: those that no retained box suppresses are compared with each
// other, one after the other.
template <typename BoxType>
__global__ void suppress(const int64 *__restrict__ first_blocks, const Detections *__restrict__ samples, int count,
                         Result *__restrict__ results) {
    __shared__ Candidate tile[TILE];
    __shared__ bool alive[TILE];
    const Detections d = samples[blockIdx.x];
    const uint64 *sorted = reinterpret_cast<const uint64 *>(d.sorted);
    const int *labels = reinterpret_cast<const int *>(d.labels);
    Candidate *known = reinterpret_cast<Candidate *>(d.known);
    uint32 *kept = reinterpret_cast<uint32 *>(d.kept);
    int64 done = 0;
    int self = threadIdx.x;
    for (int64 begin = 0; begin < d.candidates && done < d.limit; begin += TILE) {
        int64 left = d.candidates - begin;
        int size = left < TILE ? int(left) : TILE;
        uint32 position = 0;
        Candidate own = {};
        bool is_left = self < size && sorted[begin + self] != DROPPED;
        if (is_left) {
            position = uint32(sorted[begin + self]);
            int64 number = position / d.classes;
            own.box = box_of<BoxType>(d, number);
            own.area = (own.box.right - own.box.left) * (own.box.bottom - own.box.top);
            own.label = labels ? labels[number] : int(position % d.classes);
            // Several at a time: reading one takes longer than comparing it.
            for (int64 i = 0; i < done && is_left; i += ABREAST) {
                bool is_suppressed = false;
#pragma unroll
                for (int k = 0; k < ABREAST; k++)
                    is_suppressed |= i + k < done && suppresses(known[i + k], own, d);
                is_left = !is_suppressed;
            }
        }
        tile[self] = own;
        alive[self] = is_left;
        __syncthreads();
        for (int i = 0; i < size && done < d.limit; i++) {
            if (!alive[i]) continue;
            if (self == i) {
                known[done] = own;
                kept[done] = position;
                if (d.names && (own.label < 0 || own.label >= d.names) && !results[blockIdx.x].is_unnamed) {
                    results[blockIdx.x].is_unnamed = 1;
                    results[blockIdx.x].unnamed = own.label;
                }
            } else if (self > i && is_left && suppresses(tile[i], own, d)) {
                is_left = alive[self] = false;
            }
            done++;
            __syncthreads();
        }
        __syncthreads();
    }
    if (self == 0) results[blockIdx.x].kept = uint32(done);
}

// Boxes, scores, labels and indices of those that are left.
template <typename BoxType, typename Score>
__global__ void gather(const int64 *__restrict__ first_blocks, const Gathered *__restrict__ samples, int count) {
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Gathered g = samples[sample];
    int64 row = (blockIdx.x - first_blocks[sample]) * THREADS + threadIdx.x;
    if (row >= g.rows) return;
    uint32 position = reinterpret_cast<const uint32 *>(g.kept)[row];
    int64 number = position / g.classes;
    for (int i = 0; i < 4; i++)
        reinterpret_cast<float *>(g.to_boxes)[4 * row + i] = to_float(reinterpret_cast<const BoxType *>(g.boxes)[4 * number + i]);
    reinterpret_cast<float *>(g.to_scores)[row] = to_float(reinterpret_cast<const Score *>(g.scores)[position]);
    const int *labels = reinterpret_cast<const int *>(g.labels);
    reinterpret_cast<int *>(g.to_labels)[row] = labels ? labels[number] : int(position % g.classes);
    reinterpret_cast<int *>(g.to_indices)[row] = int(number);
}
