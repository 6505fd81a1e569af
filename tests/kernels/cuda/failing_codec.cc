// A library with nvImageCodec's interface that fails when tests ask for it. It is linked to the real library, which does everything else.

#include <dlfcn.h>

#include <mutex>
#include <set>

#include "../../../backend/core/nvimgcodec_api.h"

using namespace penstock::nvimgcodec;

namespace {

std::mutex mutex;
std::set<const Decoder *> refusing;
bool next_refuses = false;
Status creation = Status::kSuccess;
uint32_t pretended_version = 0;
int creations = 0;

template <typename Function>
Function real(const char *name, Function) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

// Makes the next decoder reject all images.
void refuse_next() { next_refuses = true; }

// Makes the creation of decoders fail with this status from now on; with 0, it succeeds again.
void fail_creation(int32_t status) { creation = static_cast<Status>(status); }

// Makes the library report this version; 0: its real version.
void pretend_version(uint32_t version) { pretended_version = version; }

// Returns how often a decoder was requested.
int count_creations() { return creations; }

Status nvimgcodecGetProperties(Properties *properties) {
  const Status status = real("nvimgcodecGetProperties", &nvimgcodecGetProperties)(properties);
  if (pretended_version) properties->version = pretended_version;
  return status;
}

Status nvimgcodecDecoderCreate(Instance *instance, Decoder **decoder, const ExecutionParams *params, const char *options) {
  const std::lock_guard lock(mutex);
  ++creations;
  if (creation != Status::kSuccess) return creation;
  const Status status = real("nvimgcodecDecoderCreate", &nvimgcodecDecoderCreate)(instance, decoder, params, options);
  if (next_refuses) refusing.insert(*decoder);
  next_refuses = false;
  return status;
}

Status nvimgcodecDecoderDestroy(Decoder *decoder) {
  const std::lock_guard lock(mutex);
  refusing.erase(decoder);
  return real("nvimgcodecDecoderDestroy", &nvimgcodecDecoderDestroy)(decoder);
}

Status nvimgcodecDecoderDecode(Decoder *decoder, CodeStream *const *streams, Image *const *images, int32_t count,
                               const DecodeParams *params, Future **future) {
  constexpr auto kExecutionFailed = static_cast<Status>(6);
  {
    const std::lock_guard lock(mutex);
    if (refusing.count(decoder)) return kExecutionFailed;
  }
  return real("nvimgcodecDecoderDecode", &nvimgcodecDecoderDecode)(decoder, streams, images, count, params, future);
}

}  // extern "C"
