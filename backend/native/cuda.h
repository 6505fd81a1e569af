// Copies from or to the memory of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock {

// Copies `size` bytes between two GPU addresses, or between the host and a GPU, and waits; returns an error message, or "". Needs no GIL.
// Args: device: the GPU whose memory is the source or the target.
//   to_ordinary_memory: whether the target is host memory that is not pinned.
std::string copy_with_gpu(void* target, const void* source, size_t size, int64_t device, bool to_ordinary_memory);

}  // namespace penstock
