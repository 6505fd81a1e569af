// Rounding to bfloat16.

// Returns the bits of the nearest bfloat16, ties to even. NaN stays NaN, with its sign.
__device__ inline uint16 nearest_bfloat16(float value) {
    union {
        float number;
        uint32 bits;
    } single = {value};
    if ((single.bits & 0x7fffffffu) > 0x7f800000u) return uint16(single.bits >> 16 | 0x40u);
    return uint16((single.bits + 0x7fffu + (single.bits >> 16 & 1u)) >> 16);
}

template <typename In>
__global__ void round_to_bfloat16(const int64 *__restrict__ first_blocks, const Rounded *__restrict__ samples, int count) {
    int sample = sample_of(first_blocks, count, blockIdx.x);
    const Rounded r = samples[sample];
    const In *source = reinterpret_cast<const In *>(r.source);
    uint16 *target = reinterpret_cast<uint16 *>(r.target);
    int64 first = TOGETHER * ((blockIdx.x - first_blocks[sample]) * THREADS + threadIdx.x);
    if (first >= r.elements) return;
    if (first + TOGETHER > r.elements) {
        for (int64 i = first; i < r.elements; i++) target[i] = nearest_bfloat16(converted<float>(source[i]));
        return;
    }
    Pack<In, TOGETHER> values = read_pack<TOGETHER>(source + first);
    Pack<uint16, TOGETHER> results;
    for (int i = 0; i < TOGETHER; i++) results.values[i] = nearest_bfloat16(converted<float>(values.values[i]));
    write_pack<TOGETHER>(target + first, results);
}
