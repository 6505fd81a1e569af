// Sources: ITU-T T.81, annex B (markers, frame headers B.2.2); Exif 2.32, 4.7.2 (APP1); the PNG specification, 5 (chunks).

#include "image_headers.h"

#include <algorithm>
#include <array>

namespace penstock {
namespace {

uint32_t big_endian16(Bytes data, size_t at) { return data[at] << 8 | data[at + 1]; }

uint32_t big_endian32(Bytes data, size_t at) { return big_endian16(data, at) << 16 | big_endian16(data, at + 2); }

enum Marker : uint8_t {
  kTemporary = 0x01,
  kFirstFrame = 0xC0,
  kExtendedSequential = 0xC1,
  kHuffmanTables = 0xC4,
  kReserved = 0xC8,
  kArithmeticConditioning = 0xCC,
  kLastFrame = 0xCF,
  kFirstRestart = 0xD0,
  kStartOfImage = 0xD8,
  kEndOfImage = 0xD9,
  kStartOfScan = 0xDA,
  kApp1 = 0xE1,
  kPrefix = 0xFF,
};

bool begins_frame(uint8_t marker) {
  return kFirstFrame <= marker && marker <= kLastFrame && marker != kHuffmanTables && marker != kReserved &&
         marker != kArithmeticConditioning;
}

bool begins_progressive_frame(uint8_t marker) {
  constexpr uint8_t kProcess = 3, kProgressive = 2;
  return begins_frame(marker) && (marker & kProcess) == kProgressive;
}

// Reads integers of a TIFF structure in the byte order that the structure declares.
class Tiff {
 public:
  explicit Tiff(Bytes data) : data_(data), is_little_endian_(data[0] == 'I') {}

  uint32_t integer(size_t at, size_t bytes) const {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | data_[at + (is_little_endian_ ? bytes - 1 - i : i)];
    return value;
  }

 private:
  Bytes data_;
  bool is_little_endian_;
};

// Returns the orientation in a TIFF structure; 0 if there is none.
int64_t tiff_orientation(Bytes data) {
  constexpr size_t kEntryBytes = 12;
  constexpr uint32_t kMagic = 42, kOrientationTag = 0x0112, kLong = 4;
  if (data.size() < 8 || data[0] != data[1] || (data[0] != 'I' && data[0] != 'M')) return 0;
  const Tiff tiff(data);
  const size_t directory = tiff.integer(4, 4);
  if (tiff.integer(2, 2) != kMagic || directory + 2 > data.size()) return 0;
  const size_t count = tiff.integer(directory, 2);
  for (size_t entry = directory + 2; entry < directory + 2 + kEntryBytes * count; entry += kEntryBytes) {
    if (entry + 4 > data.size()) return 0;
    if (tiff.integer(entry, 2) == kOrientationTag) {
      const size_t bytes = tiff.integer(entry + 2, 2) == kLong ? 4 : 2;
      return entry + 8 + bytes <= data.size() ? tiff.integer(entry + 8, bytes) : 0;
    }
  }
  return 0;
}

constexpr size_t kFrameBytes = 8, kComponentBytes = 3;

// Reads a frame header; returns false if anything about it is unusual. `frame`: the bytes after the header's length; `file_bytes`: the
// size of the whole file.
bool read_frame(Bytes frame, size_t file_bytes, PenstockJpegHeader &header) {
  // These limits refuse images that announce more pixels than their file can encode. A Huffman code of one bit can encode a block; in a
  // scan with one component, one code can stand for up to 16 such blocks.
  constexpr int64_t kMaxUncheckedPixels = 1 << 24, kMaxPixelsPerByte = 10'000;
  constexpr uint8_t kBits = 8;
  if (frame.size() + 2 < kFrameBytes) return false;
  const int64_t height = big_endian16(frame, 1), width = big_endian16(frame, 3), channels = frame[5];
  if (height == 0 || width == 0 || (channels != 1 && channels != 3) || frame[0] != kBits) return false;
  if (frame.size() + 2 != kFrameBytes + kComponentBytes * channels) return false;
  for (int64_t component = 0; component < channels; ++component) {
    const uint8_t factors = frame[7 + kComponentBytes * component];
    const int across = factors >> 4, down = factors & 15;
    if (across < 1 || across > 4 || down < 1 || down > 4) return false;
  }
  const int64_t pixels = height * width;
  if (pixels > kMaxUncheckedPixels && pixels > kMaxPixelsPerByte * static_cast<int64_t>(file_bytes)) return false;
  header.height = height;
  header.width = width;
  header.channels = channels;
  return true;
}

}  // namespace

bool read_jpeg_header(Bytes file, PenstockJpegHeader &header) {
  constexpr std::array<uint8_t, 6> kExif{'E', 'x', 'i', 'f', 0, 0};
  header = {};
  if (file.size() < 4 || file[0] != kPrefix || file[1] != kStartOfImage) return false;
  bool is_described = false;
  for (size_t position = 2; position + 4 <= file.size();) {
    const uint8_t marker = file[position + 1];
    const size_t length = big_endian16(file, position + 2);
    if (file[position] != kPrefix) return false;
    if (marker == kStartOfScan) {
      // The header of a scan begins with the number of its components.
      if (position + 4 >= file.size() || file[position + 4] != header.channels) header.needs_all_coefficients = 1;
      return is_described;
    }
    const bool has_length = marker != kPrefix && marker != kTemporary && !(kFirstRestart <= marker && marker <= kEndOfImage);
    if (!has_length || position + 2 + length > file.size()) return false;
    // A segment's length includes the two bytes of the length itself.
    const Bytes segment = length < 2 ? Bytes() : file.subspan(position + 4, length - 2);
    if (begins_frame(marker)) {
      if (is_described || !read_frame(segment, file.size(), header)) return false;
      is_described = true;
      header.needs_all_coefficients = begins_progressive_frame(marker);
    } else if (marker == kApp1 && segment.size() >= kExif.size() && std::equal(kExif.begin(), kExif.end(), segment.begin())) {
      header.orientation = tiff_orientation(segment.subspan(kExif.size()));
    }
    position += 2 + length;
  }
  return false;
}

bool is_whole_jpeg(Bytes file) {
  size_t size = file.size();
  while (size > 0 && file[size - 1] == 0) --size;
  return size >= 2 && file[size - 2] == kPrefix && file[size - 1] == kEndOfImage;
}

bool is_baseline_jpeg(Bytes file) {
  for (size_t position = 2; position + 4 <= file.size();) {
    const uint8_t marker = file[position + 1];
    if (file[position] != kPrefix || marker == kStartOfScan) return false;
    if (begins_frame(marker)) return marker <= kExtendedSequential;
    // Any number of fill bytes, 0xFF, may precede a marker.
    position += marker == kPrefix ? 1 : 2 + big_endian16(file, position + 2);
  }
  return false;
}

namespace {

constexpr size_t kPngSignatureBytes = 8, kPngHeaderBytes = 13, kPngChunkOverhead = 12;

constexpr uint32_t chunk_name(const char (&name)[5]) {
  return static_cast<uint32_t>(name[0]) << 24 | static_cast<uint32_t>(name[1]) << 16 | static_cast<uint32_t>(name[2]) << 8 |
         static_cast<uint32_t>(name[3]);
}

// Returns whether, from a position on, the file has only chunks with these names and ends with IEND.
bool has_only_chunks(Bytes file, size_t position, std::span<const uint32_t> known) {
  while (position + kPngChunkOverhead <= file.size()) {
    const uint32_t name = big_endian32(file, position + 4);
    position += kPngChunkOverhead + big_endian32(file, position);
    if (name == chunk_name("IEND")) return position == file.size();
    if (std::find(known.begin(), known.end(), name) == known.end()) return false;
  }
  return false;
}

}  // namespace

bool read_png_size(Bytes file, PenstockImageSize &size) {
  // Larger images are left to readers that check whether a file of this size can encode that number of pixels.
  constexpr int64_t kMaxPixels = 1 << 22;
  constexpr std::array<uint8_t, kPngSignatureBytes> kSignature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  constexpr uint8_t kBits = 8, kLastColourType = 6;
  size = {};
  if (file.size() < kPngSignatureBytes + kPngChunkOverhead + kPngHeaderBytes) return false;
  if (!std::equal(kSignature.begin(), kSignature.end(), file.begin())) return false;
  if (big_endian32(file, kPngSignatureBytes) != kPngHeaderBytes) return false;
  if (big_endian32(file, kPngSignatureBytes + 4) != chunk_name("IHDR")) return false;
  const Bytes header = file.subspan(kPngSignatureBytes + 8, kPngHeaderBytes);
  const int64_t width = big_endian32(header, 0), height = big_endian32(header, 4);
  const uint8_t bits = header[8], colour_type = header[9], compression = header[10], filter = header[11], interlace = header[12];
  if (bits != kBits || colour_type == 1 || colour_type == 5 || colour_type > kLastColourType) return false;
  if (compression != 0 || filter != 0 || interlace > 1) return false;
  if (width == 0 || width > kMaxPixels || height == 0 || height > kMaxPixels || width * height > kMaxPixels) return false;
  // These chunks do not affect the size or orientation.
  constexpr std::array kPlain{chunk_name("IHDR"), chunk_name("IDAT"), chunk_name("PLTE"), chunk_name("tRNS"),
                              chunk_name("tEXt"), chunk_name("gAMA"), chunk_name("pHYs"), chunk_name("tIME")};
  if (!has_only_chunks(file, kPngSignatureBytes, kPlain)) return false;
  size = {height, width};
  return true;
}

bool read_png_header(Bytes file, PenstockPngHeader &header) {
  constexpr size_t kFirstChunk = kPngSignatureBytes + kPngChunkOverhead + kPngHeaderBytes;
  // These chunks do not affect the number of channels either.
  constexpr std::array kPlain{chunk_name("IDAT"), chunk_name("tEXt"), chunk_name("gAMA"), chunk_name("pHYs"), chunk_name("tIME")};
  // The number of channels by colour type; 0 for palettes, whose colours may have three or four channels.
  constexpr std::array<int64_t, 7> kChannels{1, 0, 3, 0, 2, 0, 4};
  header = {};
  PenstockImageSize size;
  if (!read_png_size(file, size)) return false;
  const int64_t channels = kChannels[file[kPngSignatureBytes + 8 + 9]];
  if (channels == 0 || !has_only_chunks(file, kFirstChunk, kPlain)) return false;
  header = {size.height, size.width, channels};
  return true;
}

}  // namespace penstock

namespace {

penstock::Bytes file_at(const PenstockEncodedFiles &files, int64_t number) {
  return {reinterpret_cast<const uint8_t *>(files.addresses[number]), static_cast<size_t>(files.sizes[number])};
}

}  // namespace

extern "C" {

void penstock_read_jpeg_headers(const PenstockEncodedFiles *files, PenstockJpegHeader *headers) {
  for (int64_t i = 0; i < files->count; ++i) {
    if (!penstock::read_jpeg_header(file_at(*files, i), headers[i])) headers[i] = {};
  }
}

void penstock_find_whole_jpegs(const PenstockEncodedFiles *files, uint8_t *whole) {
  for (int64_t i = 0; i < files->count; ++i) whole[i] = penstock::is_whole_jpeg(file_at(*files, i));
}

void penstock_read_png_sizes(const PenstockEncodedFiles *files, PenstockImageSize *sizes) {
  for (int64_t i = 0; i < files->count; ++i) penstock::read_png_size(file_at(*files, i), sizes[i]);
}

void penstock_read_png_headers(const PenstockEncodedFiles *files, PenstockPngHeader *headers) {
  for (int64_t i = 0; i < files->count; ++i) penstock::read_png_header(file_at(*files, i), headers[i]);
}

}  // extern "C"
