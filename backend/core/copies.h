// Copying and filling memory.

#pragma once

#include <cstdint>

namespace penstock {

// How memory is written.
enum class Writes {
  kCached,
  // Bypassing the caches: the target is not read into the caches first, and other data, such as Python's for the next batch, stay there.
  // Use this for targets that are larger than the caches, and call `end_writes_past_caches` at the end, on the same thread.
  kPastCaches,
};

// If the outputs of a batch have at least this many bytes, they are written past the caches.
constexpr int64_t kMinBytesPastCaches = int64_t{2} << 20;

inline Writes writes_for(int64_t batch_bytes) { return batch_bytes < kMinBytesPastCaches ? Writes::kCached : Writes::kPastCaches; }

// Copies contiguous bytes.
void copy_run(uint8_t *target, const uint8_t *source, int64_t bytes, Writes writes = Writes::kCached);

// Sets contiguous bytes to a value.
void fill_run(uint8_t *target, uint8_t value, int64_t bytes, Writes writes = Writes::kCached);

// Makes what this thread wrote past the caches visible to threads that later synchronize with it.
void end_writes_past_caches();

}  // namespace penstock
