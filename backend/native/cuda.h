// Copies that read or write memory of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock {

// Copies from the host or a GPU to either, and waits; returns an error message, or "". Needs no Python.
// Args: device: a GPU whose memory is the source or the target.
//   to_ordinary_memory: whether the target is host memory that is not pinned.
std::string copy_with_gpu(void* target, const void* source, size_t size, int64_t device, bool to_ordinary_memory);

}  // namespace penstock
