// Copies between host memory and a GPU through pinned staging buffers: threads fill one slot while the GPU's copy engine reads another.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>

#include "core.h"
#include "thread_pool.h"

namespace penstock {
namespace {

class Transfer {
 public:
  explicit Transfer(const PenstockTransfer &given)
      : given_(given),
        total_(given.block_count ? given.ends[given.block_count - 1] : 0),
        pieces_((total_ + given.piece_bytes - 1) / given.piece_bytes),
        rounds_(std::make_unique<std::atomic<int64_t>[]>(given.slot_count)) {}

  int64_t pieces() const { return pieces_; }

  int32_t status() const { return status_.load(std::memory_order_relaxed); }

  // Copies one piece. Pieces are taken in order, so some thread is already copying the previous piece in the same slot, and this one can
  // wait for it.
  void move(int64_t piece) {
    const int64_t slot = (given_.first_slot + piece) % given_.slot_count, round = piece / given_.slot_count;
    std::atomic<int64_t> &rounds = rounds_[slot];
    for (int64_t done; (done = rounds.load(std::memory_order_acquire)) != round;) rounds.wait(done, std::memory_order_acquire);
    if (status() == 0) {
      const int32_t failed = given_.to_host ? move_to_host(piece, slot) : move_to_device(piece, slot);
      int32_t none = 0;
      if (failed != 0) status_.compare_exchange_strong(none, failed, std::memory_order_relaxed);
    }
    rounds.store(round + 1, std::memory_order_release);
    rounds.notify_all();
  }

 private:
  int32_t move_to_device(int64_t piece, int64_t slot) {
    const int64_t begin = piece * given_.piece_bytes, size = std::min(given_.piece_bytes, total_ - begin);
    uint8_t *const staged = given_.staging + slot * given_.slot_bytes;
    int32_t status;
    // Wait for the previous copy from this slot, which may belong to an earlier transfer.
    if ((status = call(given_.set_context, given_.context)) || (status = call(given_.synchronize, given_.events[slot]))) return status;
    visit(begin, begin + size, [staged, begin](uint8_t *host, int64_t place, int64_t part) {
      std::memcpy(staged + (place - begin), host, part);
    });
    status = call(given_.copy_to_device, given_.device_address + begin, reinterpret_cast<int64_t>(staged), size, given_.stream);
    return status ? status : call(given_.record, given_.events[slot], given_.stream);
  }

  int32_t move_to_host(int64_t piece, int64_t slot) {
    const int64_t begin = piece * given_.piece_bytes, size = std::min(given_.piece_bytes, total_ - begin);
    const int64_t event = given_.events[slot];
    const uint8_t *const staged = given_.staging + slot * given_.slot_bytes;
    int32_t status;
    if ((status = call(given_.set_context, given_.context)) || (status = call(given_.synchronize, event))) return status;
    status = call(given_.copy_to_host, reinterpret_cast<int64_t>(staged), given_.device_address + begin, size, given_.stream);
    if (status || (status = call(given_.record, event, given_.stream)) || (status = call(given_.synchronize, event))) return status;
    visit(begin, begin + size, [staged, begin](uint8_t *host, int64_t place, int64_t part) {
      std::memcpy(host, staged + (place - begin), part);
    });
    return 0;
  }

  // Calls `use` for each part of host memory that holds the transfer's bytes from `begin` to `end`, with the part's address, its offset in
  // the transfer, and its size.
  template <typename Use>
  void visit(int64_t begin, int64_t end, const Use &use) const {
    const int64_t *const ends = given_.ends, *const last = ends + given_.block_count;
    int64_t block = std::upper_bound(ends, last, begin) - ends;
    while (begin < end) {
      const int64_t first = block ? ends[block - 1] : 0, part = std::min(end, ends[block]) - begin;
      // A block may be empty.
      if (part > 0) use(reinterpret_cast<uint8_t *>(given_.addresses[block] + (begin - first)), begin, part);
      begin += std::max<int64_t>(part, 0);
      ++block;
    }
  }

  // Calls a function of the CUDA driver with at most four words.
  static int32_t call(PenstockDriverFunction function, int64_t a, int64_t b = 0, int64_t c = 0, int64_t d = 0) {
    return function(a, b, c, d, 0, 0, 0, 0, 0, 0, 0);
  }

  const PenstockTransfer given_;
  const int64_t total_, pieces_;
  // The number of pieces that have been copied through each slot.
  const std::unique_ptr<std::atomic<int64_t>[]> rounds_;
  std::atomic<int32_t> status_{0};
};

}  // namespace
}  // namespace penstock

extern "C" int32_t penstock_transfer(const PenstockTransfer *transfer, int64_t threads, const int64_t *cores, int64_t core_count) {
  try {
    penstock::Transfer own(*transfer);
    // Other threads are woken at once, because pieces are large enough.
    const penstock::Crew crew{threads, 0, cores, core_count};
    penstock::ThreadPool::shared().run(
        [](void *context, int64_t piece) { static_cast<penstock::Transfer *>(context)->move(piece); }, &own, own.pieces(), crew);
    return own.status();
  } catch (const std::bad_alloc &) {
    return PENSTOCK_CUDA_OUT_OF_MEMORY;
  }
}

extern "C" int32_t penstock_transfer_in_background(void *job) {
  PenstockTransferJob &own = *static_cast<PenstockTransferJob *>(job);
  own.status = penstock_transfer(&own.transfer, own.threads, own.cores, own.core_count);
  return 0;
}
