// Reads the headers of ordinary WAV files. Unusual, damaged and truncated files are left to libsndfile.
//
// Sources: Microsoft, Multimedia Programming Interface and Data Specifications 1.0 (RIFF WAVE) and WAVEFORMATEXTENSIBLE.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "core.h"

namespace penstock {
namespace {

using Bytes = std::span<const uint8_t>;

uint32_t little_endian16(Bytes data, size_t at) { return data[at] | data[at + 1] << 8; }

uint32_t little_endian32(Bytes data, size_t at) {
  return little_endian16(data, at) | static_cast<uint32_t>(little_endian16(data, at + 2)) << 16;
}

bool has_name(Bytes data, size_t at, const char *name) { return std::memcmp(data.data() + at, name, 4) == 0; }

enum Tag : uint32_t { kPcm = 1, kFloat = 3, kALaw = 6, kMuLaw = 7, kExtensible = 0xFFFE };

constexpr size_t kRiffBytes = 12, kChunkHeaderBytes = 8, kFormatBytes = 16, kLongFormatBytes = 18, kExtensibleBytes = 40;

int64_t encoding_of(uint32_t tag, uint32_t bits) {
  switch (tag) {
    case kPcm:
      return bits == 8    ? PENSTOCK_UINT8
             : bits == 16 ? PENSTOCK_INT16
             : bits == 24 ? PENSTOCK_INT24
             : bits == 32 ? PENSTOCK_INT32
                          : PENSTOCK_UNUSUAL_RECORDING;
    case kFloat:
      return bits == 32 ? PENSTOCK_FLOAT32 : bits == 64 ? PENSTOCK_FLOAT64 : PENSTOCK_UNUSUAL_RECORDING;
    case kALaw:
      return bits == 8 ? PENSTOCK_A_LAW : PENSTOCK_UNUSUAL_RECORDING;
    case kMuLaw:
      return bits == 8 ? PENSTOCK_MU_LAW : PENSTOCK_UNUSUAL_RECORDING;
    default:
      return PENSTOCK_UNUSUAL_RECORDING;
  }
}

// Returns the format tag of an extensible format; 0 if anything about the format is unusual.
uint32_t extended_tag(Bytes format, uint32_t bits) {
  // The GUID of a format that has a tag consists of the tag and these bytes.
  constexpr std::array<uint8_t, 14> kRest{0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};
  constexpr size_t kExtensionBytes = 22;
  if (format.size() != kExtensibleBytes || little_endian16(format, 16) != kExtensionBytes) return 0;
  if (little_endian16(format, 18) != bits || !std::equal(kRest.begin(), kRest.end(), format.begin() + 26)) return 0;
  return little_endian16(format, 24);
}

// Reads a format chunk; returns false if anything about it is unusual.
bool read_format(Bytes format, PenstockRecording &recording, int64_t &frame_bytes) {
  constexpr uint32_t kMaxChannels = 128, kMaxRate = 0x7FFFFFFF;
  const uint32_t channels = little_endian16(format, 2), rate = little_endian32(format, 4);
  const uint32_t block = little_endian16(format, 12), bits = little_endian16(format, 14);
  uint32_t tag = little_endian16(format, 0);
  if (tag == kExtensible) {
    tag = extended_tag(format, bits);
  } else if (format.size() == kLongFormatBytes ? little_endian16(format, 16) != 0 : format.size() != kFormatBytes) {
    return false;
  }
  recording.encoding = encoding_of(tag, bits);
  recording.channels = channels;
  recording.rate = rate;
  frame_bytes = block;
  return recording.encoding != PENSTOCK_UNUSUAL_RECORDING && 0 < channels && channels <= kMaxChannels && 0 < rate &&
         rate <= kMaxRate && block == channels * bits / 8;
}

// Returns whether a chunk between the format and the samples can be ignored, and certainly does not make libsndfile refuse the file.
bool may_be_skipped(Bytes file, size_t chunk, size_t bytes, int64_t channels) {
  constexpr size_t kListBytes = 12, kFactBytes = 4, kPeakBytes = 8, kPeakBytesPerChannel = 8;
  if (has_name(file, chunk, "LIST")) return bytes >= kListBytes && has_name(file, chunk + kChunkHeaderBytes, "INFO");
  if (has_name(file, chunk, "fact")) return bytes == kFactBytes;
  return has_name(file, chunk, "PEAK") && bytes == kPeakBytes + kPeakBytesPerChannel * channels;
}

// Finds the samples of a WAV file; returns false if anything about the file is unusual.
bool read_wav(Bytes file, PenstockRecording &recording) {
  if (file.size() < kRiffBytes + kChunkHeaderBytes + kFormatBytes) return false;
  if (!has_name(file, 0, "RIFF") || !has_name(file, 8, "WAVE") || !has_name(file, kRiffBytes, "fmt ")) return false;
  size_t position = kRiffBytes + kChunkHeaderBytes;
  const size_t format_bytes = little_endian32(file, kRiffBytes + 4);
  if (format_bytes < kFormatBytes || format_bytes > std::min(kExtensibleBytes, file.size() - position)) return false;
  int64_t frame_bytes;
  if (!read_format(file.subspan(position, format_bytes), recording, frame_bytes)) return false;
  position += format_bytes;
  // In 16-bit PCM files with the shortest format chunk, LIST chunks and everything after the samples are ignored.
  const bool is_plainest = recording.encoding == PENSTOCK_INT16 && format_bytes == kFormatBytes;
  while (position + kChunkHeaderBytes <= file.size()) {
    const size_t chunk = position, bytes = little_endian32(file, position + 4);
    position += kChunkHeaderBytes;
    if (bytes > file.size() - position) return false;
    if (has_name(file, chunk, "data")) {
      recording.data = file.data() + position;
      recording.frames = static_cast<int64_t>(bytes) / frame_bytes;
      const bool is_last = file.size() - position - bytes <= bytes % 2;
      return static_cast<int64_t>(bytes) % frame_bytes == 0 && (is_plainest || is_last);
    }
    const bool is_skipped = is_plainest ? has_name(file, chunk, "LIST") : may_be_skipped(file, chunk, bytes, recording.channels);
    if (bytes % 2 || !is_skipped) return false;
    position += bytes;
  }
  return false;
}

}  // namespace
}  // namespace penstock

extern "C" int64_t penstock_read_recordings(const PenstockEncodedFiles *files, PenstockRecording *recordings) {
  int64_t unusual = 0;
  for (int64_t number = 0; number < files->count; ++number) {
    const auto *data = reinterpret_cast<const uint8_t *>(files->addresses[number]);
    const penstock::Bytes file(data, static_cast<size_t>(files->sizes[number]));
    recordings[number] = {};
    if (penstock::read_wav(file, recordings[number])) continue;
    recordings[number] = {};
    ++unusual;
  }
  return unusual;
}
