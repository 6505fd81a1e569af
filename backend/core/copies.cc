#include "copies.h"

#include <algorithm>
#include <cstring>

#include "core.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace penstock {

namespace {

// Shorter runs, such as rows of small images, are written as usual, because they have too few whole cache lines.
constexpr int64_t kMinRunBytesPastCaches = 1024;

#ifdef __x86_64__

constexpr int64_t kLineBytes = 64;

// Copies at least 64 bytes through registers of 32 bytes, four at a time; the last 32 bytes may overlap those before them.
__attribute__((target("avx2"))) void copy_in_wide_blocks(uint8_t *target, const uint8_t *source, int64_t bytes) {
  constexpr int64_t kBytes = 32, kAbreast = 4;
  const auto *from = reinterpret_cast<const __m256i *>(source);
  auto *to = reinterpret_cast<__m256i *>(target);
  int64_t block = 0;
  for (; (block + kAbreast) * kBytes <= bytes; block += kAbreast) {
    const __m256i first = _mm256_loadu_si256(from + block), second = _mm256_loadu_si256(from + block + 1);
    const __m256i third = _mm256_loadu_si256(from + block + 2), fourth = _mm256_loadu_si256(from + block + 3);
    _mm256_storeu_si256(to + block, first);
    _mm256_storeu_si256(to + block + 1, second);
    _mm256_storeu_si256(to + block + 2, third);
    _mm256_storeu_si256(to + block + 3, fourth);
  }
  for (; (block + 1) * kBytes <= bytes; ++block) _mm256_storeu_si256(to + block, _mm256_loadu_si256(from + block));
  const auto *last = reinterpret_cast<const __m256i *>(source + bytes - kBytes);
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(target + bytes - kBytes), _mm256_loadu_si256(last));
}

int64_t bytes_before_line(const uint8_t *target) { return -reinterpret_cast<intptr_t>(target) & (kLineBytes - 1); }

// Writes the target's whole cache lines past the caches. Its two ends share cache lines with other data and are written as usual.
__attribute__((target("avx2"))) void copy_past_caches(uint8_t *target, const uint8_t *source, int64_t bytes) {
  constexpr int64_t kBytesAhead = 1024;
  const int64_t before = bytes_before_line(target), end = before + (bytes - before) / kLineBytes * kLineBytes;
  std::memcpy(target, source, before);
  for (int64_t done = before; done < end; done += kLineBytes) {
    _mm_prefetch(reinterpret_cast<const char *>(source + done + kBytesAhead), _MM_HINT_NTA);
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(source + done));
    const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(source + done + kLineBytes / 2));
    _mm256_stream_si256(reinterpret_cast<__m256i *>(target + done), first);
    _mm256_stream_si256(reinterpret_cast<__m256i *>(target + done + kLineBytes / 2), second);
  }
  std::memcpy(target + end, source + end, bytes - end);
}

__attribute__((target("avx2"))) void fill_past_caches(uint8_t *target, uint8_t value, int64_t bytes) {
  const int64_t before = bytes_before_line(target), end = before + (bytes - before) / kLineBytes * kLineBytes;
  const __m256i values = _mm256_set1_epi8(static_cast<char>(value));
  std::memset(target, value, before);
  for (int64_t done = before; done < end; done += kLineBytes) {
    _mm256_stream_si256(reinterpret_cast<__m256i *>(target + done), values);
    _mm256_stream_si256(reinterpret_cast<__m256i *>(target + done + kLineBytes / 2), values);
  }
  std::memset(target + end, value, bytes - end);
}

bool has_wide_registers() {
  static const bool kHas = __builtin_cpu_supports("avx2");
  return kHas;
}

#endif

}  // namespace

// Copies short runs itself: for a row of an image, the overhead of calling `memcpy` is too large, and so is that of `rep movsb`, which
// `memcpy` uses from about 2 KiB on.
void copy_run(uint8_t *target, const uint8_t *source, int64_t bytes, Writes writes) {
  constexpr int64_t kBlockBytes = 64, kLongRunBytes = 16384;
#ifdef __x86_64__
  if (writes == Writes::kPastCaches && bytes >= kMinRunBytesPastCaches && has_wide_registers()) {
    copy_past_caches(target, source, bytes);
    return;
  }
#endif
  if (bytes < kBlockBytes || bytes >= kLongRunBytes) {
    std::memcpy(target, source, bytes);
    return;
  }
#ifdef __x86_64__
  if (has_wide_registers()) {
    copy_in_wide_blocks(target, source, bytes);
    return;
  }
#endif
  for (int64_t done = 0; done + kBlockBytes <= bytes; done += kBlockBytes) std::memcpy(target + done, source + done, kBlockBytes);
  // The last block overlaps the previous one.
  std::memcpy(target + bytes - kBlockBytes, source + bytes - kBlockBytes, kBlockBytes);
}

void fill_run(uint8_t *target, uint8_t value, int64_t bytes, Writes writes) {
#ifdef __x86_64__
  if (writes == Writes::kPastCaches && bytes >= kMinRunBytesPastCaches && has_wide_registers()) {
    fill_past_caches(target, value, bytes);
    return;
  }
#endif
  std::memset(target, value, bytes);
}

void end_writes_past_caches() {
#ifdef __x86_64__
  _mm_sfence();
#endif
}

}  // namespace penstock

extern "C" void penstock_copy_blocks(const PenstockBlock *blocks, int64_t count, int64_t past_caches) {
  const penstock::Writes writes = past_caches ? penstock::Writes::kPastCaches : penstock::Writes::kCached;
  for (const PenstockBlock *block = blocks; block < blocks + count; ++block) {
    const bool is_whole = block->source_step == block->bytes && block->target_step == block->bytes;
    const int64_t rows = is_whole ? std::min<int64_t>(block->rows, 1) : block->rows;
    const int64_t bytes = is_whole ? block->bytes * block->rows : block->bytes;
    const uint8_t *source = block->source;
    uint8_t *target = block->target;
    for (int64_t row = 0; row < rows; ++row, source += block->source_step, target += block->target_step) {
      penstock::copy_run(target, source, bytes, writes);
    }
  }
  penstock::end_writes_past_caches();
}
