// Decodes batches of images with nvImageCodec, a library that is loaded at run time.

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

// A function of the library failed with `status`.
class CodecError : public std::runtime_error {
 public:
  explicit CodecError(nvimgcodec::Status status) : std::runtime_error("nvImageCodec failed"), status(status) {}

  const nvimgcodec::Status status;
};

// nvImageCodec's library. It is never unloaded, because its threads may still run.
class CodecLibrary : public nvimgcodec::Functions {
 public:
  // Returns the library at a path; null if there is none, or if its version is not supported.
  static std::unique_ptr<CodecLibrary> load(const char *path);

  uint32_t version() const { return version_; }

 private:
  explicit CodecLibrary(const nvimgcodec::Functions &functions, uint32_t version) : Functions(functions), version_(version) {}

  uint32_t version_;
};

// An instance of the library, which is never modified once it is made, so all threads share it. Making an instance takes a second on some
// machines with a GPU, because the library looks for JPEG engines.
class Codec {
 public:
  explicit Codec(const CodecLibrary &library);

  const CodecLibrary &library() const { return library_; }
  nvimgcodec::Instance *instance() const { return instance_; }

 private:
  const CodecLibrary &library_;
  nvimgcodec::Instance *instance_ = nullptr;
};

// A decoder of the library. Only one thread at a time may use it.
class Decoder {
 public:
  // `device`: the number of the GPU; negative: the CPU.
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

// Decodes batches with up to two decoders: the second one decodes the images that the first one rejects, so which decoder is used for an
// image does not depend on the rest of the batch. Baseline JPEGs can be excluded from that: normally a JPEG engine decodes them, and if it
// fails, the second decoder's pixels would differ from the usual ones.
class ImageDecoder {
 public:
  // Makes the first decoder; if that fails for a reason other than lack of memory, makes the second decoder instead.
  ImageDecoder(const Codec &codec, const PenstockDecoderSettings &settings);

  // Decodes a batch. The second decoder is made when the first one rejects an image for the first time.
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
