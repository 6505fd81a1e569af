#include "core.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "placement.h"
#include "thread_pool.h"

namespace penstock {

namespace {

constexpr int64_t kAlignment = 64;

// Memory that a thread reuses from sample to sample. It is not initialized.
class Buffer {
 public:
  uint8_t *of(int64_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      const int64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      memory_.reset(static_cast<uint8_t *>(std::aligned_alloc(kAlignment, rounded)));
      if (!memory_) throw std::bad_alloc();
      size_ = rounded;
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(uint8_t *memory) const { std::free(memory); }
  };
  std::unique_ptr<uint8_t, Free> memory_;
  int64_t size_ = 0;
};

// A thread's buffers. Of two buffers for the same purpose, a stage reads one and writes the other.
struct Scratch {
  Buffer strips[2];
  Buffer between_segments[2];
  Buffer read;
  Buffer kernel;
  std::vector<PenstockRegion> windows;
};

int64_t volume(const PenstockRegion &region, int64_t rank) {
  int64_t elements = 1;
  for (int64_t axis = 0; axis < rank; ++axis) elements *= region.extents[axis];
  return elements;
}

bool same(const PenstockRegion &one, const PenstockRegion &other, int64_t rank) {
  return std::equal(one.anchor, one.anchor + rank, other.anchor) && std::equal(one.extents, one.extents + rank, other.extents);
}

PenstockRegion whole(const int64_t *shape, int64_t rank) {
  PenstockRegion region{};
  std::copy_n(shape, rank, region.extents);
  return region;
}

PenstockPart contiguous(uint8_t *data, const PenstockRegion &region, int64_t element_bytes, int64_t rank) {
  PenstockPart part{};
  part.data = data;
  part.region = region;
  int64_t stride = element_bytes;
  for (int64_t axis = rank - 1; axis >= 0; --axis) {
    part.strides[axis] = stride;
    stride *= region.extents[axis];
  }
  return part;
}

// Returns the part of `part`'s memory that holds a region, which must lie within `part`.
PenstockPart part_of(const PenstockPart &part, const PenstockRegion &region, int64_t rank) {
  PenstockPart inner = part;
  inner.region = region;
  for (int64_t axis = 0; axis < rank; ++axis) {
    inner.data += (region.anchor[axis] - part.region.anchor[axis]) * part.strides[axis];
  }
  return inner;
}

void copy(const PenstockPart &source, const PenstockPart &target, int64_t element_bytes, int64_t rank) {
  PenstockPlacement placement{};
  placement.channel_axis = -1;
  placement.element_bytes = element_bytes;
  for (int64_t axis = 0; axis < rank; ++axis) {
    placement.shape[axis] = placement.shape_in[axis] = target.region.anchor[axis] + target.region.extents[axis];
  }
  place(placement, source, target, rank);
}

template <typename Kernel, typename... Arguments>
void call(Kernel kernel, Arguments... arguments) {
  void *result, *error;
  kernel(&result, &error, arguments...);
}

// Calls a pointwise kernel for runs of elements that are adjacent in both parts; runs are as long as possible.
class PointwiseRuns {
 public:
  PointwiseRuns(PenstockComputeRun compute, const void *record, const PenstockPart &source, const PenstockPart &target, int64_t rank)
      : compute_(compute), record_(record), source_(source.strides), target_(target.strides), extents_(target.region.extents) {
    axes_ = rank;
    count_ = 1;
    const int64_t source_bytes = source_[rank - 1], target_bytes = target_[rank - 1];
    while (axes_ > 0 && source_[axes_ - 1] == count_ * source_bytes && target_[axes_ - 1] == count_ * target_bytes) {
      count_ *= extents_[--axes_];
    }
  }

  void operator()(const uint8_t *source, uint8_t *target, int64_t axis = 0) const {
    if (axis == axes_) {
      call(compute_, record_, source, target, count_);
      return;
    }
    for (int64_t i = 0; i < extents_[axis]; ++i, source += source_[axis], target += target_[axis]) {
      (*this)(source, target, axis + 1);
    }
  }

 private:
  const PenstockComputeRun compute_;
  const void *record_;
  const int64_t *source_, *target_, *extents_;
  int64_t axes_, count_;
};

bool is_contiguous(const PenstockPart &part, int64_t element_bytes, int64_t rank) {
  const PenstockPart other = contiguous(part.data, part.region, element_bytes, rank);
  return std::equal(part.strides, part.strides + rank, other.strides);
}

// Returns the input of a part kernel, which is exactly the region that the kernel reads. If that is not contiguous and the kernel does not
// accept strides, returns a contiguous copy in `buffer`.
PenstockPart read_part(const PenstockStage &stage, const void *record, const PenstockPart &source, PenstockRegion region,
                       int64_t rank, Buffer &buffer) {
  if (stage.reads) call(stage.reads, record, &region);
  const PenstockPart part = part_of(source, region, rank);
  const int64_t bytes = source.strides[rank - 1];
  if (stage.strided || is_contiguous(part, bytes, rank)) return part;
  const PenstockPart copied = contiguous(buffer.of(volume(region, rank) * bytes), region, bytes, rank);
  copy(part, copied, bytes, rank);
  return copied;
}

void compute_stage(const PenstockStage &stage, const void *record, const PenstockPart &source, const PenstockPart &target,
                   int64_t rank, Scratch &scratch, Writes writes = Writes::kCached) {
  switch (stage.kind) {
    case PENSTOCK_PLACEMENT:
      place(*static_cast<const PenstockPlacement *>(record), source, target, rank, writes);
      return;
    case PENSTOCK_POINTWISE: {
      const PenstockPart part = part_of(source, target.region, rank);
      PointwiseRuns(reinterpret_cast<PenstockComputeRun>(stage.compute), record, part, target, rank)(part.data, target.data);
      return;
    }
    case PENSTOCK_STORE:
      place_images(*static_cast<const PenstockStore *>(record), reinterpret_cast<PenstockComputeImage>(stage.compute), source,
                   target, rank);
      return;
    default: {
      const PenstockPart part = read_part(stage, record, source, target.region, rank, scratch.read);
      void *memory = scratch.kernel.of(stage.scratch_bytes);
      call(reinterpret_cast<PenstockComputePart>(stage.compute), record, &part, &target, memory);
    }
  }
}

// Computes one sample of a chain.
class Run {
 public:
  // `writes`: how the last stage's output is written.
  Run(const PenstockChain &chain, const PenstockStage *stages, int64_t sample, Scratch &scratch, Writes writes = Writes::kCached)
      : chain_(chain), stages_(stages), rank_(chain.rank), sample_(sample), scratch_(scratch), writes_(writes) {}

  void compute(const PenstockPart *part) {
    const int64_t count = chain_.stage_count;
    const PenstockRegion output = whole(shape_of(count - 1), rank_);
    scratch_.windows.resize(count);
    if (part) {
      compute_segment(count, output, *part);
      return;
    }
    const PenstockPart source = contiguous(address(chain_.source_addresses), whole(row(chain_.source_shapes), rank_),
                                           chain_.source_element_bytes, rank_);
    compute_segment(count, output, source);
  }

  // Returns the region of the source on which the sample's output depends.
  PenstockRegion read() {
    scratch_.windows.resize(chain_.stage_count);
    PenstockRegion region = whole(shape_of(chain_.stage_count - 1), rank_);
    for (int64_t end = chain_.stage_count; end > 0; end = first_of_segment(end)) region = pull(first_of_segment(end), end, region);
    return region;
  }

 private:
  const void *record(int64_t stage) const {
    return stages_[stage].records + sample_ * stages_[stage].record_bytes;
  }
  const PenstockPlacement &placement(int64_t stage) const { return *static_cast<const PenstockPlacement *>(record(stage)); }
  const PenstockStore &store(int64_t stage) const { return *static_cast<const PenstockStore *>(record(stage)); }
  const int64_t *row(const int64_t *table) const { return table + sample_ * rank_; }
  const int64_t *shape_of(int64_t stage) const { return row(stages_[stage].shapes); }
  uint8_t *address(const int64_t *addresses) const { return reinterpret_cast<uint8_t *>(addresses[sample_]); }
  bool is_placement(int64_t stage) const { return stages_[stage].kind == PENSTOCK_PLACEMENT; }
  bool is_view_at(int64_t stage) const { return is_placement(stage) && is_view(placement(stage), rank_); }

  int64_t first_of_segment(int64_t end) const {
    int64_t first = end - 1;
    while (first > 0 && !stages_[first].reads_neighbours) --first;
    return first;
  }

  // Extends a region of a stage's output to the region that has to be computed to get it.
  void cover(int64_t stage, PenstockRegion &region) const {
    const PenstockStage &own = stages_[stage];
    if (own.kind == PENSTOCK_POINTWISE && own.group > 1) {
      cover_axis(stage, rank_ - 1, region);
    } else if (own.kind == PENSTOCK_STORE) {
      const int64_t *permutation = store(stage).permutation;
      cover_axis(stage, std::find(permutation, permutation + rank_, store(stage).image_axes[2]) - permutation, region);
    } else if (own.covers) {
      call(own.covers, record(stage), &region);
    }
  }

  void cover_axis(int64_t stage, int64_t axis, PenstockRegion &region) const {
    region.anchor[axis] = 0;
    region.extents[axis] = shape_of(stage)[axis];
  }

  // Records the region that each stage from `first` up to, not including, `end` has to compute for a region of the last stage's output;
  // returns the region that stage `first` reads.
  PenstockRegion pull(int64_t first, int64_t end, PenstockRegion region) {
    for (int64_t stage = end - 1; stage >= first; --stage) {
      const PenstockStage &own = stages_[stage];
      cover(stage, region);
      scratch_.windows[stage] = region;
      if (own.kind == PENSTOCK_PLACEMENT) {
        region = read_region(placement(stage), region, rank_);
      } else if (own.kind == PENSTOCK_STORE) {
        region = read_region(store(stage), region, rank_);
      } else if (own.reads) {
        call(own.reads, record(stage), &region);
      }
    }
    return region;
  }

  // Computes a region of the output of stage `end - 1`; returns the part that holds that region.
  PenstockPart compute_segment(int64_t end, const PenstockRegion &wanted, const PenstockPart &input) {
    const int64_t first = first_of_segment(end), bytes = stages_[end - 1].element_bytes;
    const PenstockRegion read = pull(first, end, wanted);
    const int64_t rows = rows_of_a_strip(first, end, wanted);
    const PenstockPart source = first == 0 ? input : compute_segment(first, read, input);
    PenstockPart target;
    if (end == chain_.stage_count) {
      target = contiguous(address(chain_.target_addresses), wanted, bytes, rank_);
    } else {
      const int64_t size = volume(wanted, rank_) * bytes;
      target = contiguous(scratch_.between_segments[turn_].of(size), wanted, bytes, rank_);
      turn_ = 1 - turn_;
    }
    compute_in_strips(first, end, source, target, rows);
    return target;
  }

  // Returns the extent of a strip along `strip_axis` for which no result between two stages takes more than `strip_bytes`.
  int64_t rows_of_a_strip(int64_t first, int64_t end, const PenstockRegion &wanted) const {
    int64_t largest = 0;
    for (int64_t stage = first; stage + 1 < end; ++stage) {
      if (is_view_at(stage)) continue;
      largest = std::max(largest, volume(scratch_.windows[stage], rank_) * stages_[stage].element_bytes);
    }
    const int64_t rows = wanted.extents[stages_[end - 1].strip_axis];
    if (largest <= chain_.strip_bytes) return rows;
    return std::max<int64_t>(static_cast<int64_t>(double(rows) * double(chain_.strip_bytes) / double(largest)), 1);
  }

  void compute_in_strips(int64_t first, int64_t end, const PenstockPart &source, const PenstockPart &target, int64_t rows) {
    const int64_t axis = stages_[end - 1].strip_axis, size = target.region.extents[axis];
    for (int64_t begin = 0; begin < size; begin += rows) {
      PenstockRegion wanted = target.region;
      wanted.anchor[axis] += begin;
      wanted.extents[axis] = std::min(rows, size - begin);
      pull(first, end, wanted);
      compute_strip(first, end, source, part_of(target, wanted, rank_));
    }
  }

  void compute_strip(int64_t first, int64_t end, const PenstockPart &source, const PenstockPart &target) {
    PenstockPart pixels = source;
    int turn = 0;
    for (int64_t stage = first; stage < end; ++stage) {
      const bool is_last = stage + 1 == end;
      if (!is_last && is_view_at(stage)) {
        for (int64_t axis = 0; axis < rank_; ++axis) pixels.region.anchor[axis] -= placement(stage).anchor[axis];
        continue;
      }
      const PenstockRegion &window = scratch_.windows[stage];
      const int64_t bytes = stages_[stage].element_bytes;
      PenstockPart out = target;
      if (!is_last || !same(window, target.region, rank_)) {
        out = contiguous(scratch_.strips[turn].of(volume(window, rank_) * bytes), window, bytes, rank_);
        turn = 1 - turn;
      }
      const bool to_output = out.data == target.data && end == chain_.stage_count;
      compute_stage(stages_[stage], record(stage), pixels, out, rank_, scratch_, to_output ? writes_ : Writes::kCached);
      pixels = out;
    }
    if (!same(pixels.region, target.region, rank_)) {
      copy(part_of(pixels, target.region, rank_), target, stages_[end - 1].element_bytes, rank_);
    }
  }

  const PenstockChain &chain_;
  const PenstockStage *const stages_;
  const int64_t rank_, sample_;
  Scratch &scratch_;
  const Writes writes_;
  int turn_ = 0;
};

Scratch &scratch_of_thread() {
  thread_local Scratch scratch;
  return scratch;
}

// The amount of data that a batch reads and computes.
struct Extent {
  bool has_empty = false;  // whether a sample, or the result of a stage, has no elements
  int64_t bytes = 0;
  int64_t output_bytes = 0;

  void add(const int64_t *shapes, int64_t samples, int64_t rank, int64_t element_bytes) {
    output_bytes = 0;
    for (int64_t sample = 0; sample < samples; ++sample, shapes += rank) {
      int64_t elements = 1;
      for (int64_t axis = 0; axis < rank; ++axis) elements *= shapes[axis];
      has_empty = has_empty || elements == 0;
      output_bytes += elements * element_bytes;
    }
    bytes += output_bytes;
  }
};

Extent extent_of(const PenstockChain &chain, const PenstockStage *stages) {
  Extent extent;
  extent.add(chain.source_shapes, chain.samples, chain.rank, chain.source_element_bytes);
  for (int64_t stage = 0; stage < chain.stage_count; ++stage) {
    extent.add(stages[stage].shapes, chain.samples, chain.rank, stages[stage].element_bytes);
  }
  return extent;
}

// The minimum number of bytes for which any computation takes longer than waking a thread.
constexpr int64_t kLarge = 1 << 20;

}  // namespace

}  // namespace penstock

extern "C" int32_t penstock_core_version(void) { return PENSTOCK_CORE_VERSION; }

extern "C" int32_t penstock_run_chain(const PenstockChain *chain, const PenstockStage *stages, const PenstockCrew *crew,
                                      const int64_t *cores) {
  const penstock::Extent extent = penstock::extent_of(*chain, stages);
  if (extent.has_empty) return PENSTOCK_EMPTY;
  struct Launch {
    const PenstockChain &chain;
    const PenstockStage *stages;
    const penstock::Writes writes;
    std::atomic<bool> out_of_memory{false};
  } launch{*chain, stages, penstock::writes_for(extent.output_bytes)};
  const auto task = [](void *context, int64_t sample) {
    auto &own = *static_cast<Launch *>(context);
    try {
      penstock::Run(own.chain, own.stages, sample, penstock::scratch_of_thread(), own.writes).compute(nullptr);
      if (own.writes == penstock::Writes::kPastCaches) penstock::end_writes_past_caches();
    } catch (const std::bad_alloc &) {
      own.out_of_memory = true;
    }
  };
  const int64_t worth_waking_ns = extent.bytes >= penstock::kLarge ? 0 : crew->worth_waking_ns;
  penstock::ThreadPool::shared().run(task, &launch, chain->samples, {crew->threads, worth_waking_ns, cores, crew->core_count});
  return launch.out_of_memory ? PENSTOCK_OUT_OF_MEMORY : PENSTOCK_DONE;
}

template <typename Work>
static int32_t status_of(Work work) {
  try {
    work();
  } catch (const std::bad_alloc &) {
    return PENSTOCK_OUT_OF_MEMORY;
  }
  return PENSTOCK_DONE;
}

extern "C" int32_t penstock_read_regions(const PenstockChain *chain, const PenstockStage *stages, PenstockRegion *regions) {
  if (penstock::extent_of(*chain, stages).has_empty) return PENSTOCK_EMPTY;
  return status_of([=] {
    for (int64_t sample = 0; sample < chain->samples; ++sample) {
      regions[sample] = penstock::Run(*chain, stages, sample, penstock::scratch_of_thread()).read();
    }
  });
}

extern "C" int32_t penstock_run_sample(const PenstockChain *chain, const PenstockStage *stages, int64_t sample,
                                       const PenstockPart *source) {
  return status_of([=] { penstock::Run(*chain, stages, sample, penstock::scratch_of_thread()).compute(source); });
}

extern "C" int32_t penstock_run_decoded(const PenstockDecoded *decoded, int64_t sample, int64_t, int64_t) {
  PenstockPart &source = decoded->sources[sample];
  source.data = decoded->pixels;
  return penstock_run_sample(decoded->chain, decoded->stages, sample, &source);
}

extern "C" int32_t penstock_compute_part(const PenstockStage *stage, int64_t rank, const PenstockPart *source,
                                         const PenstockPart *target) {
  return status_of([=] { penstock::compute_stage(*stage, stage->records, *source, *target, rank, penstock::scratch_of_thread()); });
}
