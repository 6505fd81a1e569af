#include "cuda.h"

#include <dlfcn.h>

#include <map>

namespace penstock {
namespace {

// What is used here of the CUDA driver's interface, written down from its documentation; the library is loaded when a tensor on a
// GPU is first met.
using Status = int;
using Device = int;
using Address = unsigned long long;
struct Context;
struct Stream;
constexpr unsigned kNonBlocking = 1;

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

  // What a status means, or nothing if all is well.
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

// One GPU's context, the one that CuPy uses as well, and a stream of this thread's, on which copies wait for nobody else's work.
class Lane {
 public:
  std::string open(int64_t device) {
    const Driver& cuda = driver();
    std::string problem = cuda.told(cuda.cuDeviceGet(&device_, static_cast<int>(device)));
    if (problem.empty()) problem = cuda.told(cuda.cuDevicePrimaryCtxRetain(&context_, device_));
    if (problem.empty()) problem = cuda.told(cuda.cuCtxPushCurrent_v2(context_));
    if (!problem.empty()) return problem;
    problem = cuda.told(cuda.cuStreamCreate(&stream_, kNonBlocking));
    leave();
    return problem;
  }
  ~Lane() {
    if (stream_ != nullptr) driver().cuStreamDestroy_v2(stream_);
    if (context_ != nullptr) driver().cuDevicePrimaryCtxRelease_v2(device_);
  }

  std::string begin(void* target, const void* source, size_t size) {
    const Driver& cuda = driver();
    std::string problem = cuda.told(cuda.cuCtxPushCurrent_v2(context_));
    if (!problem.empty()) return problem;
    problem = cuda.told(cuda.cuMemcpyAsync(reinterpret_cast<Address>(target), reinterpret_cast<Address>(source), size, stream_));
    leave();
    busy_ = true;
    return problem;
  }

  std::string finish() {
    if (!busy_) return "";
    busy_ = false;
    return driver().told(driver().cuStreamSynchronize(stream_));
  }

  bool is_open() const { return stream_ != nullptr; }

 private:
  // What Triton has current on this thread is so again.
  static void leave() {
    Context* ours = nullptr;
    driver().cuCtxPopCurrent_v2(&ours);
  }

  Device device_ = 0;
  Context* context_ = nullptr;
  Stream* stream_ = nullptr;
  bool busy_ = false;
};

thread_local std::map<int64_t, Lane> lanes;

}  // namespace

std::string begin_copy(void* target, const void* source, size_t size, int64_t device) {
  if (!driver().missing().empty()) return driver().missing();
  Lane& lane = lanes[device];
  std::string problem = lane.is_open() ? "" : lane.open(device);
  return problem.empty() ? lane.begin(target, source, size) : problem;
}

std::string finish_copies() {
  std::string problem;
  for (auto& [device, lane] : lanes) {
    const std::string own = lane.finish();
    if (problem.empty()) problem = own;
  }
  return problem;
}

}  // namespace penstock
