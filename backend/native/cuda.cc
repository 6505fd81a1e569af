#include "cuda.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "triton.h"

namespace penstock {
namespace {

// The part of the CUDA driver's interface that we use, declared from its documentation; the library is loaded when the first tensor on a
// GPU has to be copied.
using Status = int;
using Device = int;
using Address = unsigned long long;
struct Context;
struct Stream;
constexpr unsigned kNonBlocking = 1, kPortable = 1;
// The size in bytes of a pinned buffer. Each thread has two buffers for each GPU: the GPU fills one while the thread empties the other.
constexpr size_t kStagedBytes = 1 << 20;
// For up to this many bytes, the driver's own copy is as fast as ours through pinned buffers.
constexpr size_t kSmallBytes = 1 << 16;

#define PENSTOCK_DRIVER_FUNCTIONS(F)                                   \
  F(cuInit, (unsigned))                                                \
  F(cuDeviceGet, (Device*, int))                                       \
  F(cuDevicePrimaryCtxRetain, (Context**, Device))                     \
  F(cuDevicePrimaryCtxRelease_v2, (Device))                            \
  F(cuCtxPushCurrent_v2, (Context*))                                   \
  F(cuCtxPopCurrent_v2, (Context**))                                   \
  F(cuStreamCreate, (Stream**, unsigned))                              \
  F(cuStreamDestroy_v2, (Stream*))                                     \
  F(cuStreamSynchronize, (Stream*))                                    \
  F(cuMemHostAlloc, (void**, size_t, unsigned))                        \
  F(cuMemFreeHost, (void*))                                            \
  F(cuMemcpyAsync, (Address, Address, size_t, Stream*))                \
  F(cuGetErrorString, (Status, const char**))

class Driver {
 public:
#define PENSTOCK_DECLARE(name, arguments) Status(*name) arguments = nullptr;
  PENSTOCK_DRIVER_FUNCTIONS(PENSTOCK_DECLARE)
#undef PENSTOCK_DECLARE

  Driver() {
    void* handle = dlopen("libcuda.so.1", RTLD_NOW);
    if (handle == nullptr) {
      missing_ = std::string("the CUDA driver cannot be loaded: ") + dlerror();
      return;
    }
#define PENSTOCK_FIND(name, arguments)                                \
  name = reinterpret_cast<Status(*) arguments>(dlsym(handle, #name)); \
  if (name == nullptr) missing_ = "the CUDA driver lacks " #name;
    PENSTOCK_DRIVER_FUNCTIONS(PENSTOCK_FIND)
#undef PENSTOCK_FIND
    if (missing_.empty()) missing_ = told(cuInit(0));
  }

  const std::string& missing() const { return missing_; }

  // Returns an error message for a status, or "" for success.
  std::string told(Status status) const {
    if (status == 0) return "";
    const char* text = nullptr;
    cuGetErrorString(status, &text);
    return std::string("the CUDA driver reports: ") + (text == nullptr ? std::to_string(status) : text);
  }

 private:
  std::string missing_;
};

const Driver& driver() {
  static const Driver* only = new Driver;
  return *only;
}

// Makes a context current on this thread; at the end of the scope, Triton's context is current again.
class Current {
 public:
  explicit Current(Context* context) : status_(driver().cuCtxPushCurrent_v2(context)) {}
  ~Current() {
    Context* ours = nullptr;
    if (status_ == 0) driver().cuCtxPopCurrent_v2(&ours);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  Status status() const { return status_; }

 private:
  Status status_;
};

void warn_of_ordinary_memory(const std::string& problem) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  const std::string text = "the system refuses page-locked memory (" + problem +
                           "): answers are copied from the GPU several times as slowly. Raise the limit for locked memory (`ulimit -l`, or "
                           "the container's memory)";
  if (auto* error = TRITONSERVER_LogMessage(1, "penstock", 0, text.c_str())) TRITONSERVER_ErrorDelete(error);
}

// A GPU's primary context, which CuPy uses as well, and two streams for this thread, so that its copies wait for no other work.
class Lane {
 public:
  std::string open(int64_t device) {
    const Driver& cuda = driver();
    std::string problem = cuda.told(cuda.cuDeviceGet(&device_, static_cast<int>(device)));
    if (problem.empty()) problem = cuda.told(cuda.cuDevicePrimaryCtxRetain(&context_, device_));
    if (!problem.empty()) return problem;
    const Current current(context_);
    problem = cuda.told(current.status());
    for (Side& side : sides_) {
      if (problem.empty()) problem = cuda.told(cuda.cuStreamCreate(&side.stream, kNonBlocking));
    }
    is_open_ = problem.empty();
    return problem;
  }

  ~Lane() {
    if (context_ == nullptr) return;
    {
      const Current current(context_);
      for (Side& side : sides_) {
        if (side.staged != nullptr) driver().cuMemFreeHost(side.staged);
        if (side.stream != nullptr) driver().cuStreamDestroy_v2(side.stream);
      }
    }
    driver().cuDevicePrimaryCtxRelease_v2(device_);
  }

  std::string copy(void* target, const void* source, size_t size, bool through_staging) {
    const Driver& cuda = driver();
    const Current current(context_);
    if (current.status() != 0) return cuda.told(current.status());
    if (through_staging && size > kSmallBytes && has_staging()) return cuda.told(copy_staged(static_cast<char*>(target), source, size));
    Status status = begin(target, source, size, sides_[0]);
    if (status == 0) status = cuda.cuStreamSynchronize(sides_[0].stream);
    return cuda.told(status);
  }

  bool is_open() const { return is_open_; }

 private:
  struct Side {
    Stream* stream = nullptr;
    void* staged = nullptr;
  };

  static Status begin(void* target, const void* source, size_t size, const Side& side) {
    return driver().cuMemcpyAsync(reinterpret_cast<Address>(target), reinterpret_cast<Address>(source), size, side.stream);
  }

  bool has_staging() {
    for (Side& side : sides_) {
      if (side.staged != nullptr || is_refused_) continue;
      const Status status = driver().cuMemHostAlloc(&side.staged, kStagedBytes, kPortable);
      if (status == 0) continue;
      side.staged = nullptr;
      is_refused_ = true;
      warn_of_ordinary_memory(driver().told(status));
    }
    return !is_refused_;
  }

  // Waits for all copies that were begun, even after an error, because later copies use the same buffers.
  Status copy_staged(char* target, const void* source, size_t size) {
    const Driver& cuda = driver();
    const auto* from = static_cast<const char*>(source);
    const size_t pieces = (size + kStagedBytes - 1) / kStagedBytes;
    const auto bytes_of = [&](size_t piece) { return std::min(kStagedBytes, size - piece * kStagedBytes); };
    Status problem = begin(sides_[0].staged, from, bytes_of(0), sides_[0]);
    for (size_t piece = 0; piece < pieces; ++piece) {
      const Side &side = sides_[piece % 2], &other = sides_[(piece + 1) % 2];
      const size_t next = piece + 1;
      if (problem == 0 && next < pieces) problem = begin(other.staged, from + next * kStagedBytes, bytes_of(next), other);
      const Status status = cuda.cuStreamSynchronize(side.stream);
      if (problem == 0) problem = status;
      if (problem == 0) std::memcpy(target + piece * kStagedBytes, side.staged, bytes_of(piece));
    }
    return problem;
  }

  Device device_ = 0;
  Context* context_ = nullptr;
  Side sides_[2];
  bool is_open_ = false, is_refused_ = false;
};

thread_local std::map<int64_t, Lane> lanes;

}  // namespace

std::string copy_with_gpu(void* target, const void* source, size_t size, int64_t device, bool to_ordinary_memory) {
  if (!driver().missing().empty()) return driver().missing();
  Lane& lane = lanes[device];
  const std::string problem = lane.is_open() ? "" : lane.open(device);
  if (problem.empty()) return lane.copy(target, source, size, to_ordinary_memory);
  lanes.erase(device);
  return problem;
}

}  // namespace penstock
