#include "placement.h"

#include <algorithm>
#include <array>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace penstock {

namespace {

// The part of an output region that is read from the input, and the number of output elements in front of it that lie outside the input.
struct Inside {
  PenstockRegion read;                   // the region of the input
  int64_t before[PENSTOCK_MAX_RANK];     // for each axis, the number of output elements outside the input that precede it
};

Inside inside_of(const PenstockPlacement &placement, const PenstockRegion &window, int64_t rank) {
  const PenstockRegion wanted = source_region(placement, window, rank);
  Inside inside{};
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t size = placement.shape_in[axis], begin = wanted.anchor[axis], end = begin + wanted.extents[axis];
    const int64_t first = std::clamp<int64_t>(begin, 0, size), last = std::max(std::clamp<int64_t>(end, 0, size), first);
    inside.read.anchor[axis] = first;
    inside.read.extents[axis] = last - first;
    inside.before[axis] = placement.mirrored[axis] ? end - last : first - begin;
  }
  return inside;
}

// Reverses elements one by one. They are read in the order of memory and written from the end of the target: processors prefetch ascending
// addresses in time, but descending ones late.
template <int64_t kBytes>
void reverse_singly(uint8_t *target_end, const uint8_t *source, int64_t count) {
  uint8_t *to = target_end - kBytes;
  for (int64_t i = 0; i < count; ++i, source += kBytes, to -= kBytes) std::memcpy(to, source, kBytes);
}

#ifdef __x86_64__

// The number of whole elements in a block; and 1 if the store of a block also overwrites a part of the next element, which the next block's
// store then corrects, otherwise 0.
template <int64_t kBytes, int64_t kBlockBytes>
struct Block {
  static constexpr int64_t kElements = kBlockBytes / kBytes, kSpilled = kBlockBytes % kBytes ? 1 : 0;
};

// The permutation of bytes that reverses the whole elements of a block and moves them to the block's end.
template <int64_t kBytes, int64_t kBlockBytes>
constexpr std::array<uint8_t, kBlockBytes> reversed_order() {
  constexpr int64_t kHeld = kBlockBytes / kBytes * kBytes, kFirst = kBlockBytes - kHeld;
  std::array<uint8_t, kBlockBytes> order{};
  for (int64_t i = 0; i < kHeld; ++i) order[kFirst + i] = kHeld - (i / kBytes + 1) * kBytes + i % kBytes;
  return order;
}

// Reverses a run in blocks, as long as these lie within the run; returns the number of elements done so far.
template <int64_t kBytes>
__attribute__((target("ssse3"))) int64_t reverse_blocks(uint8_t *target_end, const uint8_t *source, int64_t count, int64_t done) {
  static constexpr auto kOrder = reversed_order<kBytes, 16>();
  using Held = Block<kBytes, 16>;
  const __m128i order = _mm_loadu_si128(reinterpret_cast<const __m128i *>(kOrder.data()));
  for (; done + Held::kElements + Held::kSpilled <= count; done += Held::kElements) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i *>(source + done * kBytes));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(target_end - done * kBytes - 16), _mm_shuffle_epi8(block, order));
  }
  return done;
}

template <int64_t kBytes>
__attribute__((target("avx512f,avx512vbmi"))) int64_t reverse_wide_blocks(uint8_t *target_end, const uint8_t *source, int64_t count) {
  static constexpr auto kOrder = reversed_order<kBytes, 64>();
  using Held = Block<kBytes, 64>;
  const __m512i order = _mm512_loadu_si512(kOrder.data());
  int64_t done = 0;
  for (; done + Held::kElements + Held::kSpilled <= count; done += Held::kElements) {
    const __m512i block = _mm512_loadu_si512(source + done * kBytes);
    _mm512_storeu_si512(target_end - done * kBytes - 64, _mm512_maskz_permutexvar_epi8(~0ull, order, block));
  }
  return done;
}

#endif

template <int64_t kBytes>
void reverse_fixed(uint8_t *target_end, const uint8_t *source, int64_t count) {
  int64_t done = 0;
#ifdef __x86_64__
  static const bool kShuffles = __builtin_cpu_supports("ssse3"), kShufflesWide = __builtin_cpu_supports("avx512vbmi");
  if (kShufflesWide) done = reverse_wide_blocks<kBytes>(target_end, source, count);
  if (kShuffles) done = reverse_blocks<kBytes>(target_end, source, count, done);
#endif
  reverse_singly<kBytes>(target_end - done * kBytes, source + done * kBytes, count - done);
}

// Copies a run of `count` elements or pixels of `bytes` bytes in reverse order.
void reverse_run(uint8_t *target, const uint8_t *source, int64_t count, int64_t bytes) {
  uint8_t *const target_end = target + count * bytes;
  switch (bytes) {
    case 1: return reverse_fixed<1>(target_end, source, count);
    case 2: return reverse_fixed<2>(target_end, source, count);
    case 3: return reverse_fixed<3>(target_end, source, count);
    case 4: return reverse_fixed<4>(target_end, source, count);
    case 6: return reverse_fixed<6>(target_end, source, count);
    case 8: return reverse_fixed<8>(target_end, source, count);
    case 12: return reverse_fixed<12>(target_end, source, count);
    default: break;
  }
  uint8_t *to = target_end - bytes;
  for (int64_t i = 0; i < count; ++i, to -= bytes, source += bytes) copy_run(to, source, bytes);
}

// The innermost axes that are contiguous in both arrays and not mirrored are moved as one large element.
struct Run {
  int64_t axes;   // the number of outer axes that remain
  int64_t bytes;  // the size of the large element
};

Run innermost_run(const PenstockPlacement &placement, const PenstockPart &source, const PenstockPart &target, int64_t rank,
                  const int64_t *extents) {
  Run run{rank, placement.element_bytes};
  while (run.axes > 0) {
    const int64_t axis = run.axes - 1;
    const bool adjacent = source.strides[axis] == run.bytes && target.strides[axis] == run.bytes;
    if (!adjacent || placement.mirrored[axis]) break;
    run.bytes *= extents[axis];
    --run.axes;
  }
  return run;
}

class Copy {
 public:
  Copy(const PenstockPlacement &placement, const PenstockPart &source, const PenstockPart &target, const int64_t *extents,
       Run run, Writes writes)
      : mirrored_(placement.mirrored), source_(source.strides), target_(target.strides), extents_(extents), run_(run), writes_(writes) {}

  void operator()(uint8_t *target, const uint8_t *source, int64_t axis = 0) const {
    if (axis == run_.axes) {
      copy_run(target, source, run_.bytes, writes_);
      return;
    }
    const int64_t count = extents_[axis], step = target_[axis];
    if (axis + 1 == run_.axes && mirrored_[axis] && source_[axis] == run_.bytes && step == run_.bytes) {
      reverse_run(target, source, count, run_.bytes);
      return;
    }
    uint8_t *to = mirrored_[axis] ? target + (count - 1) * step : target;
    for (int64_t i = 0; i < count; ++i, source += source_[axis], to += mirrored_[axis] ? -step : step) {
      (*this)(to, source, axis + 1);
    }
  }

 private:
  const int64_t *mirrored_, *source_, *target_, *extents_;
  Run run_;
  Writes writes_;
};

// A run of adjacent elements of the target that are filled by repeating a pattern.
struct FillRun {
  int64_t axes;           // the number of outer axes that remain
  int64_t bytes;          // the size of the run
  int64_t pattern_bytes;  // the size of the pattern: one element, or one for each channel
};

FillRun fill_run_of(const PenstockPlacement &placement, const PenstockPart &target, const PenstockRegion &box, int64_t rank) {
  FillRun run{rank, placement.element_bytes, placement.element_bytes};
  while (run.axes > 0) {
    const int64_t axis = run.axes - 1;
    const bool is_channels = axis == placement.channel_axis;
    if (target.strides[axis] != run.bytes || (is_channels && run.axes != rank)) break;
    run.bytes *= box.extents[axis];
    if (is_channels) run.pattern_bytes = run.bytes;
    --run.axes;
  }
  return run;
}

// Fills a run by repeating a pattern, doubling the filled part in each step.
void repeat_pattern(uint8_t *target, const uint8_t *pattern, const FillRun &run, Writes writes) {
  const bool is_uniform = std::all_of(pattern, pattern + run.pattern_bytes, [pattern](uint8_t byte) { return byte == *pattern; });
  if (is_uniform) {
    fill_run(target, *pattern, run.bytes, writes);
    return;
  }
  std::memcpy(target, pattern, run.pattern_bytes);
  for (int64_t done = run.pattern_bytes; done < run.bytes; done *= 2) {
    std::memcpy(target + done, target, std::min(done, run.bytes - done));
  }
}

// Fills a box with the fill value, which may be different for each channel.
void fill_box(const PenstockPlacement &placement, const PenstockPart &target, const PenstockRegion &box, int64_t rank, Writes writes) {
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (box.extents[axis] == 0) return;
  }
  const auto *fill = reinterpret_cast<const uint8_t *>(placement.fill);
  const int64_t channels = placement.channel_axis;
  const FillRun run = fill_run_of(placement, target, box, rank);
  int64_t index[PENSTOCK_MAX_RANK] = {};
  const uint8_t *filled = nullptr;  // the first run, if all runs have the same contents
  while (true) {
    uint8_t *place = target.data;
    for (int64_t axis = 0; axis < rank; ++axis) place += (box.anchor[axis] + index[axis]) * target.strides[axis];
    if (filled) {
      copy_run(place, filled, run.bytes, writes);
    } else {
      const int64_t channel = channels < 0 ? 0 : target.region.anchor[channels] + box.anchor[channels] + index[channels];
      // The other runs are copied from the first one, which is therefore kept in the cache.
      repeat_pattern(place, fill + channel * placement.element_bytes, run, run.axes ? Writes::kCached : writes);
      if (channels < 0 || channels >= run.axes) filled = place;
    }
    int64_t axis = run.axes - 1;
    while (axis >= 0 && ++index[axis] == box.extents[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

// Fills all of the target that lies outside the input: for each axis, the boxes before and after the part inside.
void fill_outside(const PenstockPlacement &placement, const PenstockPart &target, const Inside &inside, int64_t rank, Writes writes) {
  PenstockRegion box{};
  std::copy_n(target.region.extents, rank, box.extents);
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t before = std::min(inside.before[axis], box.extents[axis]), own = inside.read.extents[axis];
    const int64_t end = own ? before + own : 0, whole = box.extents[axis], begin = box.anchor[axis];
    box.extents[axis] = own ? before : 0;
    fill_box(placement, target, box, rank, writes);
    box.anchor[axis] = begin + end;
    box.extents[axis] = whole - end;
    fill_box(placement, target, box, rank, writes);
    box.anchor[axis] = begin + before;
    box.extents[axis] = own;
  }
}

// The address of the first element inside the input, in the source and in the target, and whether there is no such element.
struct FirstInside {
  const uint8_t *source;
  uint8_t *target;
  bool empty;
};

// Fills the part of the target outside the input, and finds the first element inside.
FirstInside first_inside(const PenstockPlacement &placement, const Inside &inside, const PenstockPart &source,
                         const PenstockPart &target, int64_t rank, Writes writes) {
  FirstInside first{source.data, target.data, false};
  bool complete = true;
  for (int64_t axis = 0; axis < rank; ++axis) {
    complete &= inside.read.extents[axis] == target.region.extents[axis];
    first.empty |= inside.read.extents[axis] == 0;
    first.source += (inside.read.anchor[axis] - source.region.anchor[axis]) * source.strides[axis];
    first.target += inside.before[axis] * target.strides[axis];
  }
  if (!complete) fill_outside(placement, target, inside, rank, writes);
  return first;
}

}  // namespace

PenstockRegion source_region(const PenstockPlacement &placement, const PenstockRegion &window, int64_t rank) {
  PenstockRegion region{};
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t start = window.anchor[axis], size = window.extents[axis];
    const int64_t place = placement.mirrored[axis] ? placement.shape[axis] - start - size : start;
    region.anchor[axis] = placement.anchor[axis] + place;
    region.extents[axis] = size;
  }
  return region;
}

PenstockRegion read_region(const PenstockPlacement &placement, const PenstockRegion &window, int64_t rank) {
  return inside_of(placement, window, rank).read;
}

bool is_view(const PenstockPlacement &placement, int64_t rank) {
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t begin = placement.anchor[axis];
    if (placement.mirrored[axis] || begin < 0 || begin + placement.shape[axis] > placement.shape_in[axis]) return false;
  }
  return true;
}

void place(const PenstockPlacement &placement, const PenstockPart &source, const PenstockPart &target, int64_t rank, Writes writes) {
  const Inside inside = inside_of(placement, target.region, rank);
  const auto [from, to, empty] = first_inside(placement, inside, source, target, rank, writes);
  if (empty) return;
  const int64_t *extents = inside.read.extents;
  Copy(placement, source, target, extents, innermost_run(placement, source, target, rank, extents), writes)(to, from);
}

namespace {

// Returns a region of a store's output with its dimensions in the order of the input's.
PenstockRegion in_order_of_input(const PenstockStore &store, const PenstockRegion &region, int64_t rank) {
  PenstockRegion ordered{};
  for (int64_t place = 0; place < rank; ++place) {
    ordered.anchor[store.permutation[place]] = region.anchor[place];
    ordered.extents[store.permutation[place]] = region.extents[place];
  }
  return ordered;
}

PenstockPart in_order_of_input(const PenstockStore &store, const PenstockPart &part, int64_t rank) {
  PenstockPart ordered{};
  ordered.data = part.data;
  ordered.region = in_order_of_input(store, part.region, rank);
  for (int64_t place = 0; place < rank; ++place) ordered.strides[store.permutation[place]] = part.strides[place];
  return ordered;
}

// Calls a kernel for each image of a stack.
class Images {
 public:
  Images(const PenstockStore &store, PenstockComputeImage compute, const PenstockPart &source, const PenstockPart &target,
         const int64_t *extents, int64_t rank)
      : store_(store), compute_(compute), source_(source.strides), target_(target.strides), extents_(extents), rank_(rank) {
    for (int i = 0; i < 3; ++i) {
      const int64_t axis = store.image_axes[i];
      const bool mirrored = store.placement.mirrored[axis];
      image_.source_strides[i] = mirrored ? -source_[axis] : source_[axis];
      image_.target_strides[i] = target_[axis];
      image_.extents[i] = extents[axis];
    }
  }

  void operator()(const uint8_t *source, uint8_t *target, int64_t axis = 0) {
    if (axis == rank_) {
      image_.source = source;
      image_.target = target;
      void *result, *error;
      compute_(&result, &error, store_.values, &image_);
      return;
    }
    const bool mirrored = store_.placement.mirrored[axis];
    const uint8_t *from = mirrored ? source + (extents_[axis] - 1) * source_[axis] : source;
    if (std::find(store_.image_axes, store_.image_axes + 3, axis) != store_.image_axes + 3) {
      (*this)(from, target, axis + 1);
      return;
    }
    for (int64_t i = 0; i < extents_[axis]; ++i, target += target_[axis], from += mirrored ? -source_[axis] : source_[axis]) {
      (*this)(from, target, axis + 1);
    }
  }

 private:
  const PenstockStore &store_;
  const PenstockComputeImage compute_;
  const int64_t *source_, *target_, *extents_;
  const int64_t rank_;
  PenstockImage image_{};
};

}  // namespace

PenstockRegion read_region(const PenstockStore &store, const PenstockRegion &window, int64_t rank) {
  return read_region(store.placement, in_order_of_input(store, window, rank), rank);
}

void place_images(const PenstockStore &store, PenstockComputeImage compute, const PenstockPart &source, const PenstockPart &target,
                  int64_t rank) {
  const PenstockPart ordered = in_order_of_input(store, target, rank);
  const Inside inside = inside_of(store.placement, ordered.region, rank);
  const auto [from, to, empty] = first_inside(store.placement, inside, source, ordered, rank, Writes::kCached);
  if (!empty) Images(store, compute, source, ordered, inside.read.extents, rank)(from, to);
}

}  // namespace penstock
