// Runs kernels that need only a record.
#include <atomic>
#include <new>
#include <vector>

#include "core.h"
#include "thread_pool.h"

namespace penstock {
namespace {

// Returns scratch memory of the calling thread, which later calls reuse: at least `bytes` bytes, of any alignment.
uint8_t *scratch_of_thread(int64_t bytes) {
  thread_local std::vector<uint8_t> scratch;
  if (static_cast<int64_t>(scratch.size()) < bytes) scratch.resize(bytes);
  return scratch.data();
}

}  // namespace
}  // namespace penstock

extern "C" int32_t penstock_compute_records(const PenstockRecords *records, const PenstockCrew *crew, const int64_t *cores) {
  struct Launch {
    const PenstockRecords &records;
    std::atomic<bool> out_of_memory{false};
  } launch{*records};
  const auto task = [](void *context, int64_t number) {
    auto &[own, out_of_memory] = *static_cast<Launch *>(context);
    try {
      void *result = nullptr, *error = nullptr;
      own.compute(&result, &error, own.records + number * own.record_bytes, penstock::scratch_of_thread(own.scratch_bytes));
    } catch (const std::bad_alloc &) {
      out_of_memory = true;
    }
  };
  penstock::ThreadPool::shared().run(task, &launch, records->count, {crew->threads, crew->worth_waking_ns, cores, crew->core_count});
  return launch.out_of_memory ? PENSTOCK_OUT_OF_MEMORY : PENSTOCK_DONE;
}
