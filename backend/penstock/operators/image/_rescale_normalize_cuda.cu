// Looks up pixel values in the tables of their channels, as _rescale_normalize_cpu.py does.

__global__ void look_up(const int64 *__restrict__ first_blocks, const Lookup *__restrict__ images, int samples,
                        const float *__restrict__ table) {
    int sample = sample_of(first_blocks, samples, blockIdx.x);
    const Lookup p = images[sample];
    int64 element = (blockIdx.x - first_blocks[sample]) * blockDim.x + threadIdx.x;
    if (element >= p.frames * p.pixels * p.channels) return;
    // Elements are numbered in the order of the target, so that writes are coalesced.
    int64 frame = element / (p.pixels * p.channels), within = element % (p.pixels * p.channels);
    int64 pixel = p.planar ? within % p.pixels : within / p.channels;
    int channel = int(p.planar ? within / p.pixels : within % p.channels);
    uint8 value = reinterpret_cast<const uint8 *>(p.source)[(frame * p.pixels + pixel) * p.channels + channel];
    reinterpret_cast<float *>(p.target)[element] = table[(p.several ? channel * 256 : 0) + value];
}
