// Copying and filling memory.

#pragma once

#include <cstdint>

namespace penstock {

// How memory is written.
enum class Writes {
  kCached,
  // Bypassing the caches: the target is not read into them first, and other data, such as Python's for the next batch, stay in them. For
  // more data than the caches can hold. Call `end_writes_past_caches` at the end, on the same thread.
  kPastCaches,
};

// Outputs of a batch are written past the caches from this many bytes on.
constexpr int64_t kMinBytesPastCaches = int64_t{2} << 20;

inline Writes writes_for(int64_t batch_bytes) { return batch_bytes < kMinBytesPastCaches ? Writes::kCached : Writes::kPastCaches; }

// Copies contiguous bytes.
void copy_run(uint8_t *target, const uint8_t *source, int64_t bytes, Writes writes = Writes::kCached);

// Sets contiguous bytes to one value.
void fill_run(uint8_t *target, uint8_t value, int64_t bytes, Writes writes = Writes::kCached);

// Makes what this thread wrote past the caches visible to threads that later synchronize with it.
void end_writes_past_caches();

}  // namespace penstock
