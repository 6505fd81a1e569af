#include "image_decoder.h"

#include <dlfcn.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "image_headers.h"

namespace penstock {

using nvimgcodec::ProcessingStatus;
using nvimgcodec::SampleType;
using nvimgcodec::Status;

namespace {

void check(Status status) {
  if (status != Status::kSuccess) throw CodecError(status);
}

bool is_out_of_memory(Status status) { return status == Status::kAllocatorFailure || status == Status::kExtensionAllocatorFailure; }

// Looks up functions of a library, and records whether one is missing.
class Symbols {
 public:
  explicit Symbols(void *library) : library_(library) {}

  template <typename Function>
  void find(const char *name, Function &function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    complete_ &= function != nullptr;
  }

  bool are_complete() const { return complete_; }

 private:
  void *library_;
  bool complete_ = true;
};

std::vector<nvimgcodec::Backend> backends_of(const PenstockCodecBackend *backends, int64_t count) {
  std::vector<nvimgcodec::Backend> described(count);
  for (int64_t i = 0; i < count; ++i) {
    described[i].kind = static_cast<int32_t>(backends[i].kind);
    described[i].params.load_hint = static_cast<float>(backends[i].load);
    described[i].params.load_hint_policy = static_cast<int32_t>(backends[i].load_policy);
  }
  return described;
}

// An object of the library, destroyed by one of its functions.
template <typename T>
using Owned = std::unique_ptr<T, Status (*)(T *)>;

Bytes bytes_of(const PenstockEncodedImage &image) { return {image.data, static_cast<size_t>(image.size)}; }

}  // namespace

std::unique_ptr<CodecLibrary> CodecLibrary::load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  Symbols symbols(library);
  nvimgcodec::Functions functions{};
  symbols.find("nvimgcodecGetProperties", functions.get_properties);
  symbols.find("nvimgcodecInstanceCreate", functions.instance_create);
  symbols.find("nvimgcodecDecoderCreate", functions.decoder_create);
  symbols.find("nvimgcodecDecoderDestroy", functions.decoder_destroy);
  symbols.find("nvimgcodecCodeStreamCreateFromHostMem", functions.code_stream_create_from_host_mem);
  symbols.find("nvimgcodecCodeStreamGetImageInfo", functions.code_stream_get_image_info);
  symbols.find("nvimgcodecCodeStreamGetSubCodeStream", functions.code_stream_get_sub_code_stream);
  symbols.find("nvimgcodecCodeStreamDestroy", functions.code_stream_destroy);
  symbols.find("nvimgcodecImageCreate", functions.image_create);
  symbols.find("nvimgcodecImageDestroy", functions.image_destroy);
  symbols.find("nvimgcodecDecoderDecode", functions.decoder_decode);
  symbols.find("nvimgcodecFutureWaitForAll", functions.future_wait_for_all);
  symbols.find("nvimgcodecFutureGetProcessingStatus", functions.future_get_processing_status);
  symbols.find("nvimgcodecFutureDestroy", functions.future_destroy);
  nvimgcodec::Properties properties;
  if (!symbols.are_complete() || functions.get_properties(&properties) != Status::kSuccess) return nullptr;
  if (nvimgcodec::without_patch(properties.version) != nvimgcodec::kVersion) return nullptr;
  return std::unique_ptr<CodecLibrary>(new CodecLibrary(functions, properties.version));
}

Codec::Codec(const CodecLibrary &library) : library_(library) {
  nvimgcodec::InstanceCreateInfo info;
  info.load_builtin_modules = 1;
  info.load_extension_modules = 1;
  check(library.instance_create(&instance_, &info));
}

Decoder::Decoder(const Codec &codec, int64_t device, int64_t threads, const std::vector<nvimgcodec::Backend> &backends,
                 const std::string &options)
    : library_(codec.library()), process_(getpid()) {
  nvimgcodec::ExecutionParams params;
  params.max_num_cpu_threads = static_cast<int32_t>(threads);
  params.device_id = device < 0 ? nvimgcodec::kDeviceCpuOnly : static_cast<int32_t>(device);
  params.num_backends = static_cast<int32_t>(backends.size());
  params.backends = backends.data();
  check(library_.decoder_create(codec.instance(), &decoder_, &params, options.c_str()));
}

Decoder::~Decoder() {
  // In a forked process, the decoder's threads do not exist, and destroying the decoder would wait for them forever.
  if (process_ == getpid()) library_.decoder_destroy(decoder_);
}

std::vector<ProcessingStatus> Decoder::decode(const std::vector<nvimgcodec::CodeStream *> &streams,
                                              const std::vector<nvimgcodec::Image *> &images) {
  std::vector<ProcessingStatus> statuses(images.size(), ProcessingStatus::kUnknown);
  const nvimgcodec::DecodeParams params;
  nvimgcodec::Future *begun = nullptr;
  const auto count = static_cast<int32_t>(images.size());
  if (library_.decoder_decode(decoder_, streams.data(), images.data(), count, &params, &begun) != Status::kSuccess) return statuses;
  const Owned<nvimgcodec::Future> future(begun, library_.future_destroy);
  library_.future_wait_for_all(future.get());
  size_t size = statuses.size();
  library_.future_get_processing_status(future.get(), statuses.data(), &size);
  return statuses;
}

ImageDecoder::ImageDecoder(const Codec &codec, const PenstockDecoderSettings &settings)
    : codec_(codec),
      device_(settings.device),
      threads_(settings.threads),
      spares_baseline_(settings.spares_baseline != 0),
      options_(settings.options),
      second_backends_(backends_of(settings.second, settings.second_count)) {
  try {
    first_ = std::make_unique<Decoder>(codec_, device_, threads_, backends_of(settings.first, settings.first_count), options_);
  } catch (const CodecError &error) {
    // Not every GPU has a JPEG engine. But if the engine only lacks memory, it must not be replaced: the other decoder's pixels differ.
    if (second_backends_.empty() || is_out_of_memory(error.status)) throw;
    first_ = std::make_unique<Decoder>(codec_, device_, threads_, second_backends_, options_);
    second_backends_.clear();
  }
}

// The library's objects for an image that is being decoded.
struct ImageDecoder::OpenImage {
  PenstockEncodedImage *image;
  Owned<nvimgcodec::CodeStream> whole;
  Owned<nvimgcodec::CodeStream> part;  // the region's stream; null: all of the image is decoded
  Owned<nvimgcodec::Image> target;
};

// Opens an image. Returns nothing if the library rejects the image, or reports another size than the header that the core read: it would
// write as many pixels as it reports.
std::optional<ImageDecoder::OpenImage> ImageDecoder::open(PenstockEncodedImage &image, const PenstockImageBatch &batch) {
  const CodecLibrary &library = codec_.library();
  nvimgcodec::CodeStream *stream = nullptr;
  if (library.code_stream_create_from_host_mem(codec_.instance(), &stream, image.data, image.size, nullptr) != Status::kSuccess) {
    return std::nullopt;
  }
  Owned<nvimgcodec::CodeStream> whole(stream, library.code_stream_destroy), part(nullptr, library.code_stream_destroy);
  nvimgcodec::ImageInfo seen;
  if (library.code_stream_get_image_info(whole.get(), &seen) != Status::kSuccess) return std::nullopt;
  const nvimgcodec::ImagePlaneInfo &plane = seen.plane_info[0];
  if (plane.height != image.height || plane.width != image.width || plane.sample_type != SampleType::kUint8) return std::nullopt;
  int64_t height = image.height, width = image.width;
  if (image.bottom != 0) {
    height = image.bottom - image.top;
    width = image.right - image.left;
    nvimgcodec::CodeStreamView view;
    view.region.ndim = 2;
    view.region.start[0] = static_cast<int32_t>(image.top);
    view.region.start[1] = static_cast<int32_t>(image.left);
    view.region.end[0] = static_cast<int32_t>(image.bottom);
    view.region.end[1] = static_cast<int32_t>(image.right);
    // The pointer must be null: otherwise, the library would reuse the object to which it points.
    nvimgcodec::CodeStream *region = nullptr;
    if (library.code_stream_get_sub_code_stream(whole.get(), &region, &view) != Status::kSuccess) return std::nullopt;
    part.reset(region);
  }
  nvimgcodec::ImageInfo info;
  info.color_spec = static_cast<int32_t>(batch.color_spec);
  info.sample_format = static_cast<int32_t>(batch.sample_format);
  info.num_planes = 1;
  info.plane_info[0].height = static_cast<uint32_t>(height);
  info.plane_info[0].width = static_cast<uint32_t>(width);
  info.plane_info[0].row_stride = width * batch.channels;
  info.plane_info[0].num_channels = static_cast<uint32_t>(batch.channels);
  info.plane_info[0].sample_type = SampleType::kUint8;
  info.buffer = reinterpret_cast<void *>(image.output);
  info.buffer_kind = device_ < 0 ? nvimgcodec::BufferKind::kStridedHost : nvimgcodec::BufferKind::kStridedDevice;
  info.cuda_stream = batch.stream;
  nvimgcodec::Image *target = nullptr;
  if (library.image_create(codec_.instance(), &target, &info) != Status::kSuccess) return std::nullopt;
  return OpenImage{&image, std::move(whole), std::move(part), {target, library.image_destroy}};
}

bool ImageDecoder::is_for_second(const PenstockEncodedImage &image) const {
  return !(spares_baseline_ && is_baseline_jpeg(bytes_of(image)));
}

// Decodes images with one decoder, and records its `number` in each image that it decoded; returns the images that it rejected.
std::vector<PenstockEncodedImage *> ImageDecoder::decode_with(Decoder &decoder, int64_t number,
                                                              const std::vector<PenstockEncodedImage *> &images,
                                                              const PenstockImageBatch &batch) {
  std::vector<OpenImage> opened;
  std::vector<nvimgcodec::CodeStream *> streams;
  std::vector<nvimgcodec::Image *> targets;
  for (PenstockEncodedImage *image : images) {
    std::optional<OpenImage> one = open(*image, batch);
    if (!one) continue;
    streams.push_back(one->part ? one->part.get() : one->whole.get());
    targets.push_back(one->target.get());
    opened.push_back(std::move(*one));
  }
  std::vector<PenstockEncodedImage *> rejected;
  if (opened.empty()) return rejected;
  const std::vector<ProcessingStatus> statuses = decoder.decode(streams, targets);
  for (size_t i = 0; i < opened.size(); ++i) {
    if (statuses[i] == ProcessingStatus::kSuccess) {
      opened[i].image->decoded_by = number;
    } else {
      rejected.push_back(opened[i].image);
    }
  }
  return rejected;
}

void ImageDecoder::decode(PenstockImageBatch &batch) {
  std::vector<PenstockEncodedImage *> images;
  for (int64_t i = 0; i < batch.count; ++i) {
    batch.images[i].decoded_by = 0;
    images.push_back(&batch.images[i]);
  }
  std::vector<PenstockEncodedImage *> left = decode_with(*first_, 1, images, batch);
  std::erase_if(left, [this](const PenstockEncodedImage *image) { return !is_for_second(*image); });
  if (left.empty() || second_backends_.empty()) return;
  if (!second_) second_ = std::make_unique<Decoder>(codec_, device_, threads_, second_backends_, options_);
  decode_with(*second_, 2, left, batch);
}

}  // namespace penstock

using penstock::Codec;
using penstock::CodecLibrary;
using penstock::ImageDecoder;

struct PenstockCodecLibrary {
  std::unique_ptr<CodecLibrary> library;
};
struct PenstockCodec : Codec {
  using Codec::Codec;
};
struct PenstockImageDecoder : ImageDecoder {
  using ImageDecoder::ImageDecoder;
};

namespace {

// Calls a function that may throw; returns 0, or the status of its error.
template <typename Function>
int32_t status_of(Function run) {
  try {
    run();
    return 0;
  } catch (const penstock::CodecError &error) {
    return static_cast<int32_t>(error.status);
  } catch (const std::bad_alloc &) {
    return static_cast<int32_t>(penstock::nvimgcodec::Status::kAllocatorFailure);
  }
}

}  // namespace

extern "C" {

PenstockCodecLibrary *penstock_codec_load(const char *path) {
  std::unique_ptr<CodecLibrary> library = CodecLibrary::load(path);
  return library ? new PenstockCodecLibrary{std::move(library)} : nullptr;
}

int32_t penstock_codec_version(const PenstockCodecLibrary *library) { return static_cast<int32_t>(library->library->version()); }

int32_t penstock_codec_start(const PenstockCodecLibrary *library, PenstockCodec **codec) {
  return status_of([&] { *codec = new PenstockCodec(*library->library); });
}

int32_t penstock_image_decoder_create(const PenstockCodec *codec, const PenstockDecoderSettings *settings,
                                      PenstockImageDecoder **decoder) {
  return status_of([&] { *decoder = new PenstockImageDecoder(*codec, *settings); });
}

void penstock_image_decoder_destroy(PenstockImageDecoder *decoder) { delete decoder; }

int32_t penstock_decode_images(PenstockImageBatch *batch) {
  batch->status = status_of([&] { batch->decoder->decode(*batch); });
  return 0;
}

int64_t penstock_prepare_jpegs(const PenstockEncodedFiles *files, int64_t channels, int64_t max_pixels, PenstockEncodedImage *images,
                               PenstockJpegHeader *headers) {
  constexpr int64_t kAlignment = 256;
  int64_t room = 0;
  for (int64_t i = 0; i < files->count; ++i) {
    const penstock::Bytes file{reinterpret_cast<const uint8_t *>(files->addresses[i]), static_cast<size_t>(files->sizes[i])};
    PenstockJpegHeader &header = headers[i];
    if (!penstock::read_jpeg_header(file, header) || penstock::is_turned(header.orientation)) return 0;
    const int64_t pixels = header.height * header.width;
    if ((max_pixels != 0 && pixels > max_pixels) || !penstock::is_whole_jpeg(file)) return 0;
    images[i] = {};
    images[i].data = file.data();
    images[i].size = static_cast<int64_t>(file.size());
    images[i].output = room;
    images[i].height = header.height;
    images[i].width = header.width;
    room += (pixels * channels + kAlignment - 1) / kAlignment * kAlignment;
  }
  return room;
}

}  // extern "C"
