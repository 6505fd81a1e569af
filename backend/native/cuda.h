// Copies that read or write memory of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock {

// Starts a copy from the host or a GPU to either; returns what went wrong, or nothing. Without Python's interpreter.
// Args: device: a GPU whose memory takes part.
std::string begin_copy(void* target, const void* source, size_t size, int64_t device);

// Waits for the copies that this thread has begun; likewise.
std::string finish_copies();

}  // namespace penstock
