// A stand-in for nvImageCodec's library, for runs with sanitizers, which would also check all of the real library. An encoded image
// consists of three bytes: its height, its width, and the value of its pixels. The first decoder accepts even values only. The library
// counts its objects, so that a test can check that all are destroyed.

#include <atomic>
#include <cstring>

#include "../../backend/core/nvimgcodec_api.h"

namespace penstock::nvimgcodec {

struct Instance {};
struct Decoder {
  bool takes_odd;
};
struct CodeStream {
  uint32_t height, width;
  uint8_t value;
};
struct Image {
  ImageInfo info;
};
struct Future {
  ProcessingStatus statuses[64];
  size_t count;
};

}  // namespace penstock::nvimgcodec

using namespace penstock::nvimgcodec;

namespace {

constexpr auto kFailed = static_cast<Status>(6);
std::atomic<int64_t> alive{0};

template <typename T>
Status made(T **place, T *object) {
  ++alive;
  *place = object;
  return Status::kSuccess;
}

template <typename T>
Status destroyed(T *object) {
  --alive;
  delete object;
  return Status::kSuccess;
}

}  // namespace

extern "C" {

// Returns the number of objects that exist.
int64_t stand_in_alive() { return alive; }

Status nvimgcodecGetProperties(Properties *properties) {
  properties->version = kVersion + 3;
  return Status::kSuccess;
}

Status nvimgcodecInstanceCreate(Instance **instance, const InstanceCreateInfo *) {
  static Instance only;
  *instance = &only;
  return Status::kSuccess;
}

Status nvimgcodecDecoderCreate(Instance *, Decoder **decoder, const ExecutionParams *params, const char *options) {
  if (std::strcmp(options, "none") == 0) return static_cast<Status>(9);
  if (std::strcmp(options, "memory") == 0) return Status::kAllocatorFailure;
  return made(decoder, new Decoder{params->backends[0].kind == 2});
}

Status nvimgcodecDecoderDestroy(Decoder *decoder) { return destroyed(decoder); }

Status nvimgcodecCodeStreamCreateFromHostMem(Instance *, CodeStream **stream, const unsigned char *data, size_t length,
                                             const CodeStreamView *) {
  return length == 3 ? made(stream, new CodeStream{data[0], data[1], data[2]}) : kFailed;
}

Status nvimgcodecCodeStreamGetImageInfo(CodeStream *stream, ImageInfo *info) {
  info->plane_info[0].height = stream->height;
  info->plane_info[0].width = stream->width;
  info->plane_info[0].sample_type = SampleType::kUint8;
  return Status::kSuccess;
}

Status nvimgcodecCodeStreamGetSubCodeStream(CodeStream *stream, CodeStream **part, const CodeStreamView *view) {
  const Region &region = view->region;
  if (region.end[0] > static_cast<int64_t>(stream->height)) return kFailed;
  return made(part, new CodeStream{static_cast<uint32_t>(region.end[0] - region.start[0]),
                                   static_cast<uint32_t>(region.end[1] - region.start[1]), stream->value});
}

Status nvimgcodecCodeStreamDestroy(CodeStream *stream) { return destroyed(stream); }

Status nvimgcodecImageCreate(Instance *, Image **image, const ImageInfo *info) { return made(image, new Image{*info}); }

Status nvimgcodecImageDestroy(Image *image) { return destroyed(image); }

Status nvimgcodecDecoderDecode(Decoder *decoder, CodeStream *const *streams, Image *const *images, int32_t count,
                               const DecodeParams *, Future **future) {
  auto *done = new Future{};
  for (int32_t i = 0; i < count; ++i) {
    const CodeStream &stream = *streams[i];
    const bool taken = decoder->takes_odd || stream.value % 2 == 0;
    done->statuses[done->count++] = taken ? ProcessingStatus::kSuccess : static_cast<ProcessingStatus>(3);
    if (taken) std::memset(images[i]->info.buffer, stream.value, stream.height * images[i]->info.plane_info[0].row_stride);
  }
  return made(future, done);
}

Status nvimgcodecFutureWaitForAll(Future *) { return Status::kSuccess; }

Status nvimgcodecFutureGetProcessingStatus(Future *future, ProcessingStatus *statuses, size_t *count) {
  *count = future->count;
  std::memcpy(statuses, future->statuses, future->count * sizeof(*statuses));
  return Status::kSuccess;
}

Status nvimgcodecFutureDestroy(Future *future) { return destroyed(future); }

}  // extern "C"
