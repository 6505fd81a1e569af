// Decodes ordinary PNGs: libdeflate inflates the data; this code unfilters rows and converts them to pixels.
//
// Source: W3C, Portable Network Graphics (Third Edition): 5 (chunks), 7.2 (scanlines), 9 (filtering), 10 (compression), 11.2 (critical
// chunks). Files that are unusual, damaged or beyond other decoders' limits are left to those decoders, so that a file has the same pixels
// and errors with and without this one.

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "core.h"
#include "image_headers.h"

namespace penstock {
namespace {

enum ColourType : uint8_t { kGrey = 0, kColour = 2, kPalette = 3, kGreyAlpha = 4, kColourAlpha = 6 };
enum Filter : uint8_t { kNone = 0, kSub = 1, kUp = 2, kAverage = 3, kPaeth = 4 };

constexpr size_t kSignatureBytes = 8, kHeaderBytes = 13, kChunkOverhead = 12, kColours = 256, kColourBytes = 3;
// The number of bytes after the data that may be read: a pixel of 3 or 6 bytes is loaded as 4 or 8 bytes.
constexpr size_t kPadding = 8;
// The maximum ratio of inflated to deflated bytes: deflate encodes at most 258 bytes in 2 bits.
constexpr size_t kMaxExpansion = 1032;

uint32_t big_endian32(const uint8_t *data) {
  return static_cast<uint32_t>(data[0]) << 24 | static_cast<uint32_t>(data[1]) << 16 | static_cast<uint32_t>(data[2]) << 8 | data[3];
}

constexpr uint32_t chunk_name(const char (&name)[5]) {
  return static_cast<uint32_t>(name[0]) << 24 | static_cast<uint32_t>(name[1]) << 16 | static_cast<uint32_t>(name[2]) << 8 |
         static_cast<uint32_t>(name[3]);
}

size_t channels_of(uint8_t colour_type) {
  switch (colour_type) {
    case kColour: return 3;
    case kGreyAlpha: return 2;
    case kColourAlpha: return 4;
    default: return 1;
  }
}

// The parts of a file that determine its pixels.
struct Parts {
  size_t height, width;
  uint8_t bits, colour_type;
  Bytes palette;
  Bytes data;          // the data of the first IDAT chunk
  size_t data_bytes;   // the size of the data of all IDAT chunks, which are consecutive
  size_t data_chunks;
  bool has_colour_space;

  size_t pixel_bits() const { return channels_of(colour_type) * bits; }
  size_t row_bytes() const { return (width * pixel_bits() + 7) / 8; }
  size_t filtered_bytes() const { return height * (row_bytes() + 1); }
};

bool read_header(Bytes header, Parts &parts) {
  // The limit of libpng.
  constexpr size_t kMaxSide = 1'000'000;
  // The limit of OpenCV.
  constexpr size_t kMaxPixels = size_t{1} << 30;
  constexpr uint8_t kBits[] = {1, 2, 4, 8, 16};
  parts.width = big_endian32(header.data());
  parts.height = big_endian32(header.data() + 4);
  parts.bits = header[8];
  parts.colour_type = header[9];
  if (header[10] != 0 || header[11] != 0 || header[12] != 0) return false;
  if (parts.width == 0 || parts.width > kMaxSide || parts.height == 0 || parts.height > kMaxSide) return false;
  if (parts.width * parts.height > kMaxPixels) return false;
  if (std::find(std::begin(kBits), std::end(kBits), parts.bits) == std::end(kBits)) return false;
  switch (parts.colour_type) {
    case kGrey: return true;
    case kPalette: return parts.bits <= 8;
    case kColour:
    case kGreyAlpha:
    case kColourAlpha: return parts.bits >= 8;
    default: return false;
  }
}

bool is_in(uint32_t name, std::span<const uint32_t> names) { return std::find(names.begin(), names.end(), name) != names.end(); }

// Finds the parts of a file; returns false unless all of its chunks are known, complete and in order.
bool find_parts(const PenstockLibdeflate &library, Bytes file, Parts &parts) {
  static constexpr std::array<uint8_t, kSignatureBytes> kSignature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  static constexpr uint32_t kColourSpaces[] = {chunk_name("gAMA"), chunk_name("cHRM"), chunk_name("sRGB"), chunk_name("iCCP")};
  static constexpr uint32_t kIgnored[] = {chunk_name("tRNS"), chunk_name("bKGD"), chunk_name("sBIT"), chunk_name("hIST"),
                                          chunk_name("pHYs"), chunk_name("tIME"), chunk_name("tEXt"), chunk_name("zTXt"),
                                          chunk_name("iTXt"), chunk_name("eXIf")};
  // libpng refuses chunks beyond a limit of its own: files with large ones are left to it.
  constexpr size_t kMaxIgnoredBytes = 1 << 20;
  parts = {};
  if (file.size() < kSignatureBytes || !std::equal(kSignature.begin(), kSignature.end(), file.begin())) return false;
  bool has_header = false, is_after_data = false;
  for (size_t position = kSignatureBytes; position + kChunkOverhead <= file.size();) {
    const size_t length = big_endian32(&file[position]);
    const uint32_t name = big_endian32(&file[position + 4]);
    if (length > file.size() - position - kChunkOverhead) return false;
    const Bytes chunk = file.subspan(position + 8, length);
    if (library.crc32(0, &file[position + 4], length + 4) != big_endian32(chunk.data() + length)) return false;
    position += kChunkOverhead + length;
    if (!has_header) {
      if (name != chunk_name("IHDR") || length != kHeaderBytes || !read_header(chunk, parts)) return false;
      has_header = true;
    } else if (name == chunk_name("IDAT")) {
      if (is_after_data) return false;
      if (parts.data_chunks == 0) parts.data = chunk;
      ++parts.data_chunks;
      parts.data_bytes += length;
    } else if (name == chunk_name("IEND")) {
      return length == 0 && parts.data_chunks > 0 && (parts.colour_type == kPalette) == !parts.palette.empty();
    } else {
      is_after_data = parts.data_chunks > 0;
      if (name == chunk_name("PLTE")) {
        if (parts.colour_type != kPalette || !parts.palette.empty() || is_after_data) return false;
        if (length == 0 || length % kColourBytes != 0 || length > (kColourBytes << parts.bits)) return false;
        parts.palette = chunk;
      } else if (length > kMaxIgnoredBytes) {
        return false;
      } else if (is_in(name, kColourSpaces)) {
        parts.has_colour_space = true;
      } else if (!is_in(name, kIgnored)) {
        return false;
      }
    }
  }
  return false;
}

// Inflates the data; returns false unless the result is exactly the rows of the image. `joined`: memory in which to join the data of
// several chunks.
bool inflate(const PenstockLibdeflate &library, const Parts &parts, uint8_t *joined, uint8_t *rows) {
  const uint8_t *data = parts.data.data();
  if (parts.data_chunks > 1) {
    uint8_t *end = joined;
    const uint8_t *chunk = data;
    size_t length = parts.data.size();
    for (size_t number = 0; number < parts.data_chunks; ++number) {
      end = std::copy_n(chunk, length, end);
      chunk += length + kChunkOverhead;
      if (number + 1 < parts.data_chunks) length = big_endian32(chunk - 8);
    }
    data = joined;
  }
  if (parts.data_bytes < 2) return false;
  // zlib refuses distances beyond the window that a stream declares, but libdeflate does not; so files in which such distances are possible
  // are left to other decoders.
  const size_t window_bits = (data[0] >> 4) + 8;
  constexpr size_t kMaxWindowBits = 15;
  if (window_bits < kMaxWindowBits && size_t{1} << window_bits < parts.filtered_bytes()) return false;
  void *decompressor = library.alloc_decompressor();
  if (decompressor == nullptr) return false;
  size_t read = 0, written = 0;
  const size_t room = parts.filtered_bytes();
  const int32_t status = library.zlib_decompress_ex(decompressor, data, parts.data_bytes, rows, room, &read, &written);
  library.free_decompressor(decompressor);
  return status == 0 && read == parts.data_bytes && written == room;
}

// -- filters -----------------------------------------------------------------------------------------------------------

// A vector with one byte of a pixel in each lane.
using Lanes = int16_t __attribute__((vector_size(16)));
using HalfBytes = uint8_t __attribute__((vector_size(8)));
using FullBytes = uint8_t __attribute__((vector_size(16)));

template <size_t kBytes>
struct Pixel {
  using Values = Lanes;
  static constexpr size_t kRead = kBytes == 3 ? 4 : kBytes == 6 ? 8 : kBytes;

  static Lanes load(const uint8_t *from) {
    HalfBytes bytes{};
    std::memcpy(&bytes, from, kRead);
    return __builtin_convertvector(bytes, Lanes);
  }
  static void store(Lanes values, uint8_t *to) {
    const auto bytes = __builtin_convertvector(values, HalfBytes);
    std::memcpy(to, &bytes, kBytes);
  }
  // May also write the first byte of the next pixel of the result. If rows are unfiltered in place, the filtered values lie one byte
  // further on, so that none is overwritten before it is read.
  static void store_before_next(Lanes values, uint8_t *to) {
    const auto bytes = __builtin_convertvector(values, HalfBytes);
    std::memcpy(to, &bytes, kBytes == 3 ? 4 : kBytes);
  }
};

template <>
struct Pixel<1> {
  using Values = int;
  static int load(const uint8_t *from) { return *from; }
  static void store(int value, uint8_t *to) { *to = static_cast<uint8_t>(value); }
  static void store_before_next(int value, uint8_t *to) { store(value, to); }
};

// Returns the value that a filter predicts from the values to the left, above, and above left.
template <Filter kFilter, class Values>
Values expected(Values left, Values above, Values corner) {
  if constexpr (kFilter == kSub) return left;
  if constexpr (kFilter == kAverage) return (left + above) >> 1;
  const Values rise = above - corner, run = left - corner, both = rise + run;
  const Values to_left = rise < 0 ? -rise : rise, to_above = run < 0 ? -run : run, to_corner = both < 0 ? -both : both;
  const Values nearer = to_left < to_above ? to_left : to_above;
  const Values side = to_left <= to_above ? left : above;
  return nearer <= to_corner ? side : corner;
}

struct FilteredRow {
  const uint8_t *filtered;
  const uint8_t *above;
  uint8_t *result;
};

template <size_t kBytes, Filter kFilter>
void unfilter_row(const FilteredRow &row, size_t pixels) {
  using P = Pixel<kBytes>;
  typename P::Values left{}, corner{};
  for (size_t x = 0; x < pixels; ++x) {
    const auto above = P::load(row.above + x * kBytes);
    left = (expected<kFilter>(left, above, corner) + P::load(row.filtered + x * kBytes)) & 255;
    corner = above;
    if (x + 1 < pixels) {
      P::store_before_next(left, row.result + x * kBytes);
    } else {
      P::store(left, row.result + x * kBytes);
    }
  }
}

// Unfilters two rows at once, the second row one pixel behind the first. Within a row, each pixel has to wait for the pixel to its left;
// with two rows, the processor can compute two pixels at the same time.
template <size_t kBytes, Filter kFirst, Filter kSecond>
void unfilter_two_rows(const FilteredRow &first, const FilteredRow &second, size_t pixels) {
  using P = Pixel<kBytes>;
  typename P::Values left{}, corner{}, second_left{}, second_corner{};
  for (size_t x = 0; x < pixels; ++x) {
    const auto second_above = left;
    const auto above = P::load(first.above + x * kBytes);
    left = (expected<kFirst>(left, above, corner) + P::load(first.filtered + x * kBytes)) & 255;
    corner = above;
    if (x + 1 < pixels) {
      P::store_before_next(left, first.result + x * kBytes);
    } else {
      P::store(left, first.result + x * kBytes);
    }
    if (x > 0) {
      const auto filtered = P::load(second.filtered + (x - 1) * kBytes);
      second_left = (expected<kSecond>(second_left, second_above, second_corner) + filtered) & 255;
      P::store_before_next(second_left, second.result + (x - 1) * kBytes);
      second_corner = second_above;
    }
  }
  const auto filtered = P::load(second.filtered + (pixels - 1) * kBytes);
  P::store((expected<kSecond>(second_left, left, second_corner) + filtered) & 255, second.result + (pixels - 1) * kBytes);
}

void add_above(const FilteredRow &row, size_t bytes) {
  size_t x = 0;
  for (FullBytes filtered, above; x + sizeof(filtered) <= bytes; x += sizeof(filtered)) {
    std::memcpy(&filtered, row.filtered + x, sizeof(filtered));
    std::memcpy(&above, row.above + x, sizeof(above));
    filtered += above;
    std::memcpy(row.result + x, &filtered, sizeof(filtered));
  }
  for (; x < bytes; ++x) row.result[x] = static_cast<uint8_t>(row.filtered[x] + row.above[x]);
}

using UnfilterRow = void (*)(const FilteredRow &, size_t);
using UnfilterTwoRows = void (*)(const FilteredRow &, const FilteredRow &, size_t);

// The number of filters in which a pixel depends on the pixel to its left: Sub, Average and Paeth.
constexpr size_t kSerialFilters = 3;

bool is_serial(uint8_t filter) { return filter == kSub || filter >= kAverage; }

size_t serial_number(uint8_t filter) { return filter == kSub ? 0 : filter - kAverage + 1; }

struct Unfilters {
  std::array<UnfilterRow, kSerialFilters> one;
  std::array<std::array<UnfilterTwoRows, kSerialFilters>, kSerialFilters> two;
};

template <size_t kBytes, Filter kFirst>
constexpr std::array<UnfilterTwoRows, kSerialFilters> kPairs = {
    unfilter_two_rows<kBytes, kFirst, kSub>, unfilter_two_rows<kBytes, kFirst, kAverage>, unfilter_two_rows<kBytes, kFirst, kPaeth>};

template <size_t kBytes>
constexpr Unfilters kUnfilters = {
    {unfilter_row<kBytes, kSub>, unfilter_row<kBytes, kAverage>, unfilter_row<kBytes, kPaeth>},
    {kPairs<kBytes, kSub>, kPairs<kBytes, kAverage>, kPairs<kBytes, kPaeth>}};

const Unfilters &unfilters_for(size_t pixel_bytes) {
  switch (pixel_bytes) {
    case 1: return kUnfilters<1>;
    case 2: return kUnfilters<2>;
    case 3: return kUnfilters<3>;
    case 4: return kUnfilters<4>;
    case 6: return kUnfilters<6>;
    default: return kUnfilters<8>;
  }
}

// -- pixels ------------------------------------------------------------------------------------------------------------

// libpng's integer weights of red, green and blue, for the 0.299 and 0.587 that OpenCV sets.
template <class Value>
Value grey_of(const Value *colour) {
  constexpr uint32_t kRed = 9797, kGreen = 19234, kBlue = 3737, kHalf = sizeof(Value) == 1 ? 0 : 1 << 14;
  return static_cast<Value>((kRed * colour[0] + kGreen * colour[1] + kBlue * colour[2] + kHalf) >> 15);
}

template <class Value, size_t kChannels>
void convert_pixels(const Value *from, size_t pixels, int64_t space, Value *to) {
  constexpr bool kIsColour = kChannels >= 3;
  switch (space) {
    case PENSTOCK_PIXELS_AS_STORED: std::copy_n(from, pixels * kChannels, to); return;
    case PENSTOCK_PIXELS_GREY:
      for (size_t x = 0; x < pixels; ++x, from += kChannels) to[x] = kIsColour ? grey_of(from) : from[0];
      return;
    default:
      const size_t first = kIsColour && space == PENSTOCK_PIXELS_BGR ? 2 : 0, second = kIsColour ? 1 : 0;
      const size_t third = kIsColour ? 2 - first : 0;
      for (size_t x = 0; x < pixels; ++x, from += kChannels, to += kColourBytes) {
        to[0] = from[first];
        to[1] = from[second];
        to[2] = from[third];
      }
  }
}

template <class Value>
void convert_pixels(const Value *from, size_t channels, size_t pixels, int64_t space, Value *to) {
  switch (channels) {
    case 1: return convert_pixels<Value, 1>(from, pixels, space, to);
    case 2: return convert_pixels<Value, 2>(from, pixels, space, to);
    case 3: return convert_pixels<Value, 3>(from, pixels, space, to);
    default: return convert_pixels<Value, 4>(from, pixels, space, to);
  }
}

// Converts a range of columns of unfiltered rows to pixels of the output.
class RowConverter {
 public:
  RowConverter(const Parts &parts, int64_t left, int64_t width, int64_t space)
      : parts_(parts), left_(left), width_(width), space_(space) {
    if (parts.colour_type == kPalette) {
      // The palette in the space of the output: colours, or their grey values.
      const size_t count = parts.palette.size() / kColourBytes;
      convert_pixels<uint8_t>(parts.palette.data(), kColourBytes, count, space, colours_.data());
      colour_count_ = count;
    }
  }

  // The size in bytes of the buffer for intermediate values of a row.
  static size_t scratch_bytes(const Parts &parts) {
    return parts.bits == 8 && parts.colour_type != kPalette ? 0 : parts.width * channels_of(parts.colour_type) * sizeof(uint16_t);
  }

  // Fills a row of the output; returns false if a pixel's colour is not in the palette.
  bool convert(const uint8_t *row, uint8_t *scratch, uint8_t *output) const {
    const size_t channels = channels_of(parts_.colour_type);
    if (parts_.bits == 16) {
      auto *values = reinterpret_cast<uint16_t *>(scratch);
      const uint8_t *from = row + left_ * channels * 2;
      for (size_t i = 0; i < width_ * channels; ++i) values[i] = static_cast<uint16_t>(from[2 * i] << 8 | from[2 * i + 1]);
      convert_pixels(values, channels, width_, space_, reinterpret_cast<uint16_t *>(output));
      return true;
    }
    const uint8_t *values = row + left_ * channels;
    if (parts_.bits < 8) {
      unpack(row, scratch);
      values = scratch;
    }
    if (parts_.colour_type == kPalette) return look_up(values, output);
    convert_pixels(values, channels, width_, space_, output);
    return true;
  }

 private:
  void unpack(const uint8_t *row, uint8_t *values) const {
    const size_t bits = parts_.bits, mask = (size_t{1} << bits) - 1;
    // Grey values are scaled to 8 bits.
    const size_t factor = parts_.colour_type == kPalette ? 1 : 255 / mask;
    for (size_t x = 0; x < width_; ++x) {
      const size_t bit = (left_ + x) * bits;
      values[x] = static_cast<uint8_t>((row[bit / 8] >> (8 - bits - bit % 8) & mask) * factor);
    }
  }

  bool look_up(const uint8_t *indices, uint8_t *output) const {
    size_t largest = 0;
    if (space_ == PENSTOCK_PIXELS_GREY) {
      for (size_t x = 0; x < width_; ++x) output[x] = colours_[indices[x]];
    } else {
      for (size_t x = 0; x < width_; ++x) std::memcpy(output + kColourBytes * x, &colours_[kColourBytes * indices[x]], kColourBytes);
    }
    for (size_t x = 0; x < width_; ++x) largest = std::max<size_t>(largest, indices[x]);
    return largest < colour_count_;
  }

  const Parts &parts_;
  const size_t left_, width_;
  const int64_t space_;
  std::array<uint8_t, kColours * kColourBytes> colours_{};
  size_t colour_count_ = 0;
};

// Returns whether unfiltered rows need no conversion, so that they can be written to the output directly.
bool is_output(const Parts &parts, const PenstockPng &png) {
  if (parts.bits != 8 || parts.colour_type == kPalette) return false;
  if (png.top != 0 || png.left != 0 || png.width != static_cast<int64_t>(parts.width)) return false;
  if (png.space == PENSTOCK_PIXELS_AS_STORED) return true;
  return parts.colour_type == kColour ? png.space == PENSTOCK_PIXELS_RGB
                                      : parts.colour_type == kGrey && png.space == PENSTOCK_PIXELS_GREY;
}

bool write_pixels(const Parts &parts, const PenstockPng &png, uint8_t *filtered, const uint8_t *zeros, uint8_t *scratch) {
  const size_t pixel_bytes = std::max<size_t>(parts.pixel_bits() / 8, 1), row_bytes = parts.row_bytes(), pitch = row_bytes + 1;
  const size_t bottom = png.top + png.height;
  // Columns to the right of the region are skipped.
  const size_t used_bytes = ((png.left + png.width) * parts.pixel_bits() + 7) / 8, used_pixels = used_bytes / pixel_bytes;
  const bool in_output = is_output(parts, png);
  const Unfilters &unfilters = unfilters_for(pixel_bytes);
  const RowConverter converter(parts, png.left, png.width, png.space);
  const auto filter_of = [&](size_t y) { return filtered[y * pitch]; };
  for (size_t y = 0; y < parts.height; ++y) {
    if (filter_of(y) > kPaeth) return false;
  }
  // If rows have to be converted, an unfiltered row is written over the filtered row, but one byte earlier: it begins where the number of
  // the filter was.
  const auto result_of = [&](size_t y) { return in_output ? png.output + y * row_bytes : filtered + y * pitch; };
  const auto row_at = [&](size_t y) {
    return FilteredRow{filtered + y * pitch + 1, y == 0 ? zeros : result_of(y - 1), result_of(y)};
  };
  const auto finish = [&](size_t y) {
    if (in_output || y < static_cast<size_t>(png.top)) return true;
    return converter.convert(result_of(y), scratch, png.output + (y - png.top) * png.output_pitch);
  };
  for (size_t y = 0; y < bottom;) {
    const uint8_t filter = filter_of(y);
    const FilteredRow row = row_at(y);
    if (filter == kNone) {
      std::memmove(row.result, row.filtered, used_bytes);
    } else if (filter == kUp) {
      add_above(row, used_bytes);
    } else if (y + 1 < bottom && is_serial(filter_of(y + 1))) {
      unfilters.two[serial_number(filter)][serial_number(filter_of(y + 1))](row, row_at(y + 1), used_pixels);
      if (!finish(y++)) return false;
    } else {
      unfilters.one[serial_number(filter)](row, used_pixels);
    }
    if (!finish(y++)) return false;
  }
  return true;
}

// Returns the number of channels of the output.
size_t output_channels(const Parts &parts, int64_t space) {
  if (space == PENSTOCK_PIXELS_GREY) return 1;
  const bool is_stored = space == PENSTOCK_PIXELS_AS_STORED && parts.colour_type != kPalette;
  return is_stored ? channels_of(parts.colour_type) : kColourBytes;
}

bool decode_png(const PenstockLibdeflate &library, const PenstockPng &png) {
  Parts parts;
  if (!find_parts(library, {png.data, static_cast<size_t>(png.size)}, parts)) return false;
  if ((parts.bits == 16 ? 2 : 1) != png.value_bytes || png.top < 0 || png.left < 0 || png.height < 1 || png.width < 1) return false;
  if (png.top + png.height > static_cast<int64_t>(parts.height)) return false;
  if (png.left + png.width > static_cast<int64_t>(parts.width)) return false;
  // The caller may have read another file's header, with another number of channels.
  if (png.output_pitch != png.width * png.value_bytes * static_cast<int64_t>(output_channels(parts, png.space))) return false;
  const bool is_colour = parts.colour_type != kGrey && parts.colour_type != kGreyAlpha;
  // Where a file declares its colour space, other decoders compute grey values in linear light.
  if (is_colour && png.space == PENSTOCK_PIXELS_GREY && parts.has_colour_space) return false;
  // Allocate no memory for a file whose header declares more pixels than the data can encode.
  if (parts.filtered_bytes() / kMaxExpansion > parts.data_bytes) return false;
  const size_t filtered = parts.filtered_bytes() + kPadding, zeros = parts.row_bytes() + kPadding;
  const size_t joined = parts.data_chunks > 1 ? parts.data_bytes : 0, values = RowConverter::scratch_bytes(parts);
  // Values of 16 bits come first, as they need alignment.
  const std::unique_ptr<uint8_t[]> memory(new (std::nothrow) uint8_t[values + filtered + zeros + joined]);
  if (memory == nullptr) return false;
  uint8_t *rows = memory.get() + values, *zero_row = rows + filtered;
  if (!inflate(library, parts, zero_row + zeros, rows)) return false;
  std::memset(zero_row, 0, zeros);
  return write_pixels(parts, png, rows, zero_row, memory.get());
}

}  // namespace
}  // namespace penstock

extern "C" int32_t penstock_decode_png(const PenstockLibdeflate *library, const PenstockPng *png) {
  return penstock::decode_png(*library, *png);
}

extern "C" void penstock_decode_pngs(const PenstockLibdeflate *library, const PenstockPng *pngs, int64_t count, uint8_t *decoded) {
  for (int64_t i = 0; i < count; ++i) decoded[i] = penstock::decode_png(*library, pngs[i]);
}
