// Matches boxes to anchors, and computes the targets that a single-shot detector is trained with.

// Returns the intersection over union of two boxes; 0 if they do not overlap.
__device__ inline float overlap(const float *a, const float *b) {
    float width = fmaxf(fminf(a[2], b[2]) - fmaxf(a[0], b[0]), 0.0f);
    float height = fmaxf(fminf(a[3], b[3]) - fmaxf(a[1], b[1]), 0.0f), shared = width * height;
    if (!(shared > 0.0f)) return 0.0f;
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared);
}

// Each block finds the anchor that overlaps one box most; if several anchors overlap it equally, it chooses the last one.
__global__ void match_boxes(const int64 *__restrict__ first_blocks, const Matching *__restrict__ matchings, int samples,
                            const float *__restrict__ anchors, int number) {
    __shared__ float shares[THREADS];
    __shared__ int places[THREADS];
    int sample = sample_of(first_blocks, samples, blockIdx.x), self = threadIdx.x;
    const Matching &p = matchings[sample];
    int64 box = blockIdx.x - first_blocks[sample];
    const float *own = reinterpret_cast<const float *>(p.boxes) + 4 * box;
    float most = -1.0f;
    int place = -1;
    for (int anchor = self; anchor < number; anchor += THREADS) {
        float share = overlap(own, anchors + 4 * anchor);
        if (share >= most) {
            most = share;
            place = anchor;
        }
    }
    shares[self] = most;
    places[self] = place;
    __syncthreads();
    for (int half = THREADS / 2; half; half /= 2) {
        if (self < half) {
            float other = shares[self + half];
            if (other > shares[self] || (other == shares[self] && places[self + half] > places[self])) {
                shares[self] = other;
                places[self] = places[self + half];
            }
        }
        __syncthreads();
    }
    if (self == 0) reinterpret_cast<int32 *>(p.best)[box] = places[0];
}

__global__ void encode_boxes(const int64 *__restrict__ first_blocks, const Matching *__restrict__ matchings, int samples,
                             const float *__restrict__ anchors, int number, const Encoding *__restrict__ encoding) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Matching &p = matchings[sample];
    const Encoding &e = *encoding;
    int64 place = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (place >= number) return;
    const float *anchor = anchors + 4 * place, *boxes = reinterpret_cast<const float *>(p.boxes);
    const int32 *best = reinterpret_cast<const int32 *>(p.best);
    float most = 0.0f;
    int owner = -1, chosen = -1;
    for (int box = 0; box < p.box_count; box++) {
        float share = overlap(boxes + 4 * int64(box), anchor);
        if (share >= most) {
            most = share;
            owner = box;
        }
        if (best[box] == place) chosen = box;
    }
    if (!(most > e.criteria)) owner = -1;
    // Each box gets the anchor that overlaps it most, even if another box overlaps that anchor more.
    if (chosen >= 0) owner = chosen;
    float *target = reinterpret_cast<float *>(p.targets) + 4 * place;
    const float *box = owner < 0 ? anchor : boxes + 4 * int64(owner);
    for (int axis = 0; axis < 2; axis++) {
        float middle = (box[axis] + box[axis + 2]) / 2.0f, extent = box[axis + 2] - box[axis];
        if (e.offset) {
            float own_middle = (anchor[axis] + anchor[axis + 2]) / 2.0f * e.scale;
            float own_extent = (anchor[axis + 2] - anchor[axis]) * e.scale;
            middle = ((middle * e.scale - own_middle) / own_extent - e.means[axis]) / e.deviations[axis];
            extent = (logf(extent * e.scale / own_extent) - e.means[axis + 2]) / e.deviations[axis + 2];
        }
        target[axis] = e.offset && owner < 0 ? 0.0f : middle;
        target[axis + 2] = e.offset && owner < 0 ? 0.0f : extent;
    }
    reinterpret_cast<int32 *>(p.target_labels)[place] = owner < 0 ? 0 : reinterpret_cast<const int32 *>(p.labels)[owner];
}
