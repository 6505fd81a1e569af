// Decoding batches of images by nvImageCodec, whose library is loaded at run time.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core.h"
#include "nvimgcodec_api.h"

namespace penstock {

// The library failed with `status`.
class CodecError : public std::runtime_error {
 public:
  explicit CodecError(nvimgcodec::Status status) : std::runtime_error("nvImageCodec failed"), status(status) {}

  const nvimgcodec::Status status;
};

// nvImageCodec's library; it is never unloaded, as its threads may still run.
class CodecLibrary : public nvimgcodec::Functions {
 public:
  // The library at a path; null if there is none, or if it is of another version than the core knows.
  static std::unique_ptr<CodecLibrary> load(const char *path);

  uint32_t version() const { return version_; }

 private:
  explicit CodecLibrary(const nvimgcodec::Functions &functions, uint32_t version) : Functions(functions), version_(version) {}

  uint32_t version_;
};

// An instance of the library, which all threads share: once made, it is only read. Making one takes a second on some machines with a
// GPU, where the library looks for JPEG engines.
class Codec {
 public:
  explicit Codec(const CodecLibrary &library);

  const CodecLibrary &library() const { return library_; }
  nvimgcodec::Instance *instance() const { return instance_; }

 private:
  const CodecLibrary &library_;
  nvimgcodec::Instance *instance_ = nullptr;
};

// One decoder of the library, which at most one thread uses at a time.
class Decoder {
 public:
  // `device`: number of the GPU; negative: the CPU.
  Decoder(const Codec &codec, int64_t device, int64_t threads, const std::vector<nvimgcodec::Backend> &backends,
          const std::string &options);
  ~Decoder();
  Decoder(const Decoder &) = delete;
  Decoder &operator=(const Decoder &) = delete;

  // Decodes images; returns the status of each.
  std::vector<nvimgcodec::ProcessingStatus> decode(const std::vector<nvimgcodec::CodeStream *> &streams,
                                                   const std::vector<nvimgcodec::Image *> &images);

 private:
  const CodecLibrary &library_;
  const pid_t process_;
  nvimgcodec::Decoder *decoder_ = nullptr;
};

// Decodes batches by up to two decoders: images that the first rejects go to the second, so which one decodes an image does not depend
// on the rest of the batch. Baseline JPEGs can be excluded from that: a JPEG engine normally decodes them, and if it fails, pixels of the
// second decoder would differ from the usual ones.
class ImageDecoder {
 public:
  // Makes the first decoder; if that fails for another reason than lack of memory, the second one is made instead.
  ImageDecoder(const Codec &codec, const PenstockDecoderSettings &settings);

  // Decodes a batch. The second decoder is made when the first rejects an image.
  void decode(PenstockImageBatch &batch);

 private:
  struct OpenImage;

  bool is_for_second(const PenstockEncodedImage &image) const;
  std::optional<OpenImage> open(PenstockEncodedImage &image, const PenstockImageBatch &batch);
  std::vector<PenstockEncodedImage *> decode_with(Decoder &decoder, int64_t number, const std::vector<PenstockEncodedImage *> &images,
                                                  const PenstockImageBatch &batch);

  const Codec &codec_;
  const int64_t device_, threads_;
  const bool spares_baseline_;
  const std::string options_;
  std::vector<nvimgcodec::Backend> second_backends_;
  std::unique_ptr<Decoder> first_, second_;
};

}  // namespace penstock
