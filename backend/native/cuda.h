// Copies that read or write memory of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock {

// Copies from the host or a GPU to either, and waits; returns what went wrong, or nothing. Without Python's interpreter.
// Args: device: a GPU whose memory takes part.
//   to_ordinary_memory: the target is memory of the host that is not pinned.
std::string copy_with_gpu(void* target, const void* source, size_t size, int64_t device, bool to_ordinary_memory);

}  // namespace penstock
