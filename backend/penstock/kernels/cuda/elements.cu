// Applies a function to each element and its sample's record; `compute` and its types are generated and inserted before this file.

__global__ void apply_records(const int64 *__restrict__ first_blocks, const Elements *__restrict__ jobs, int samples) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Elements &e = jobs[sample];
    const Record &record = *reinterpret_cast<const Record *>(e.record);
    const Value *source = reinterpret_cast<const Value *>(e.source);
    Result *target = reinterpret_cast<Result *>(e.target);
    int64 begin = (blockIdx.x - first_blocks[sample]) * BLOCK_ELEMENTS;
    int64 end = begin + BLOCK_ELEMENTS < e.size ? begin + BLOCK_ELEMENTS : e.size;
    for (int64 i = begin + threadIdx.x; i < end; i += blockDim.x) target[i] = compute(record, source[i]);
}
