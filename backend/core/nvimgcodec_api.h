// The part of nvImageCodec's C interface that the core uses, as declared in version 0.9. The library's own header is not included, because
// it includes CUDA's headers. The library is loaded at run time.
//
// Each structure begins with its type and size, by which the library recognizes the structure; both are initialized here. A test compares
// all structures with the library's header.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::nvimgcodec {

// The version of the interface that is declared here, without the patch number.
inline constexpr uint32_t kVersion = 900;

inline constexpr uint32_t without_patch(uint32_t version) { return version - version % 100; }

enum class StructureType : int32_t {
  kProperties = 1,
  kInstanceCreateInfo = 2,
  kDecodeParams = 5,
  kOrientation = 7,
  kRegion = 8,
  kCodeStreamView = 9,
  kImageInfo = 11,
  kImagePlaneInfo = 12,
  kBackend = 17,
  kBackendParams = 29,
  kExecutionParams = 30,
};

enum class Status : int32_t {
  kSuccess = 0,
  kAllocatorFailure = 5,
  kExtensionAllocatorFailure = 15,
};

enum class ProcessingStatus : uint32_t { kUnknown = 0, kSuccess = 1 };

enum class SampleType : int32_t { kUnknown = 0, kUint8 = 0x0802 };

enum class BufferKind : int32_t { kUnknown = 0, kStridedDevice = 1, kStridedHost = 2 };

inline constexpr int32_t kDeviceCpuOnly = -99999;
inline constexpr size_t kMaxCodecNameBytes = 256, kMaxPlanes = 32, kMaxDimensions = 5, kMaxFillChannels = 5;

struct Properties {
  StructureType struct_type = StructureType::kProperties;
  size_t struct_size = sizeof(Properties);
  void *struct_next = nullptr;
  uint32_t version = 0;
  uint32_t cudart_version = 0;
};

struct InstanceCreateInfo {
  StructureType struct_type = StructureType::kInstanceCreateInfo;
  size_t struct_size = sizeof(InstanceCreateInfo);
  void *struct_next = nullptr;
  int32_t load_builtin_modules = 0;
  int32_t load_extension_modules = 0;
  const char *extension_modules_path = nullptr;
  int32_t create_debug_messenger = 0;
  const void *debug_messenger_desc = nullptr;
  uint32_t message_severity = 0;
  uint32_t message_category = 0;
};

struct DecodeParams {
  StructureType struct_type = StructureType::kDecodeParams;
  size_t struct_size = sizeof(DecodeParams);
  void *struct_next = nullptr;
  int32_t apply_exif_orientation = 0;
};

struct Orientation {
  StructureType struct_type = StructureType::kOrientation;
  size_t struct_size = sizeof(Orientation);
  void *struct_next = nullptr;
  int32_t rotated = 0;
  int32_t flip_x = 0;
  int32_t flip_y = 0;
};

struct OutOfBoundsSample {
  uint32_t value = 0;
  SampleType type = SampleType::kUnknown;
};

struct Region {
  StructureType struct_type = StructureType::kRegion;
  size_t struct_size = sizeof(Region);
  void *struct_next = nullptr;
  int32_t ndim = 0;
  int32_t start[kMaxDimensions] = {};
  int32_t end[kMaxDimensions] = {};
  int32_t out_of_bounds_policy = 0;
  OutOfBoundsSample out_of_bounds_samples[kMaxFillChannels];
};

struct CodeStreamView {
  StructureType struct_type = StructureType::kCodeStreamView;
  size_t struct_size = sizeof(CodeStreamView);
  void *struct_next = nullptr;
  size_t image_idx = 0;
  Region region;
  size_t bitstream_offset = 0;
};

struct ImagePlaneInfo {
  StructureType struct_type = StructureType::kImagePlaneInfo;
  size_t struct_size = sizeof(ImagePlaneInfo);
  void *struct_next = nullptr;
  uint32_t width = 0;
  uint32_t height = 0;
  size_t row_stride = 0;
  uint32_t num_channels = 0;
  SampleType sample_type = SampleType::kUnknown;
  uint8_t precision = 0;
};

struct ImageInfo {
  StructureType struct_type = StructureType::kImageInfo;
  size_t struct_size = sizeof(ImageInfo);
  void *struct_next = nullptr;
  char codec_name[kMaxCodecNameBytes] = {};
  int32_t color_spec = 0;
  int32_t chroma_subsampling = 0;
  int32_t sample_format = 0;
  Orientation orientation;
  uint32_t num_planes = 0;
  ImagePlaneInfo plane_info[kMaxPlanes];
  void *buffer = nullptr;
  BufferKind buffer_kind = BufferKind::kUnknown;
  void *cuda_stream = nullptr;
};

struct BackendParams {
  StructureType struct_type = StructureType::kBackendParams;
  size_t struct_size = sizeof(BackendParams);
  void *struct_next = nullptr;
  float load_hint = 1.0F;
  int32_t load_hint_policy = 0;
};

struct Backend {
  StructureType struct_type = StructureType::kBackend;
  size_t struct_size = sizeof(Backend);
  void *struct_next = nullptr;
  int32_t kind = 0;
  BackendParams params;
};

struct ExecutionParams {
  StructureType struct_type = StructureType::kExecutionParams;
  size_t struct_size = sizeof(ExecutionParams);
  void *struct_next = nullptr;
  void *device_allocator = nullptr;
  void *pinned_allocator = nullptr;
  int32_t max_num_cpu_threads = 0;
  void *executor = nullptr;
  int32_t device_id = 0;
  int32_t pre_init = 0;
  int32_t skip_pre_sync = 0;
  int32_t num_backends = 0;
  const Backend *backends = nullptr;
};

// Opaque types of the library's objects.
struct Instance;
struct Decoder;
struct CodeStream;
struct Image;
struct Future;

// The library's functions.
struct Functions {
  Status (*get_properties)(Properties *properties);
  Status (*instance_create)(Instance **instance, const InstanceCreateInfo *info);
  Status (*decoder_create)(Instance *instance, Decoder **decoder, const ExecutionParams *params, const char *options);
  Status (*decoder_destroy)(Decoder *decoder);
  Status (*code_stream_create_from_host_mem)(Instance *instance, CodeStream **stream, const uint8_t *data, size_t length,
                                             const CodeStreamView *view);
  Status (*code_stream_get_image_info)(CodeStream *stream, ImageInfo *info);
  Status (*code_stream_get_sub_code_stream)(CodeStream *stream, CodeStream **part, const CodeStreamView *view);
  Status (*code_stream_destroy)(CodeStream *stream);
  Status (*image_create)(Instance *instance, Image **image, const ImageInfo *info);
  Status (*image_destroy)(Image *image);
  Status (*decoder_decode)(Decoder *decoder, CodeStream *const *streams, Image *const *images, int32_t count,
                           const DecodeParams *params, Future **future);
  Status (*future_wait_for_all)(Future *future);
  Status (*future_get_processing_status)(Future *future, ProcessingStatus *statuses, size_t *count);
  Status (*future_destroy)(Future *future);
};

}  // namespace penstock::nvimgcodec
