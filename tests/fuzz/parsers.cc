// Fuzzes the core's own parsers of untrusted files: of the headers of JPEGs, PNGs and WAVs, and of PNGs' pixels. To be run with
// sanitizers: each file and each output is a separate allocation of exactly the required size.
//
//   parsers SEEDS LIBDEFLATE CASES [SEED [FIRST]]
//
// SEEDS: a folder of files named jpeg-*, png-* and wav-*. LIBDEFLATE: the library that inflates PNGs. A case is identified by its number
// and SEED; a crash reports both. Cases from number FIRST on are run.
//
// In half of the cases, a stand-in for libdeflate accepts all checksums and makes up the rows to which a PNG's data inflate, so that
// chunks of any kind and rows with any filter are reached. The pixels are then compared with those of a simple implementation of the
// specification.
#include <dlfcn.h>
#include <sanitizer/common_interface_defs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../../backend/core/core.h"

// The only object of Python to which the library in the wheel refers; the functions that are called here do not use it.
extern "C" __attribute__((visibility("default"))) void *PyExc_ValueError;
void *PyExc_ValueError = nullptr;

namespace {

using File = std::vector<uint8_t>;

enum Format : size_t { kJpeg, kPng, kWav, kFormats };
constexpr std::array<const char *, kFormats> kNames{"jpeg", "png", "wav"};

uint64_t current_seed = 0, current_case = 0;

void name_case() {
  std::fprintf(stderr, "case %llu of seed %llu\n", static_cast<unsigned long long>(current_case),
               static_cast<unsigned long long>(current_seed));
}

void expect(bool holds, const char *what) {
  if (holds) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  name_case();
  std::exit(1);
}

// Source: Sebastiano Vigna, SplitMix64. The state advances by an addition.
class Random {
 public:
  explicit Random(uint64_t state) : state_(state) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }
  size_t below(size_t end) { return next() % end; }
  bool one_in(size_t n) { return below(n) == 0; }
  uint8_t byte() { return static_cast<uint8_t>(next()); }
  template <class T, size_t kCount>
  T any_of(const T (&values)[kCount]) {
    return values[below(kCount)];
  }

 private:
  uint64_t state_;
};

// -- mutations ---------------------------------------------------------------------------------------------------------

uint32_t big_endian32(const uint8_t *data) {
  return static_cast<uint32_t>(data[0]) << 24 | static_cast<uint32_t>(data[1]) << 16 | static_cast<uint32_t>(data[2]) << 8 | data[3];
}

void put(uint8_t *data, uint64_t number, size_t bytes, bool is_big_endian) {
  for (size_t i = 0; i < bytes; ++i) data[is_big_endian ? bytes - 1 - i : i] = static_cast<uint8_t>(number >> 8 * i);
}

uint8_t unusual_byte(Random &random) {
  constexpr uint8_t kUnusual[] = {0, 1, 2, 3, 4, 8, 16, 17, 33, 34, 65, 127, 128, 192, 254, 255};
  return random.one_in(3) ? random.byte() : random.any_of(kUnusual);
}

uint64_t unusual_number(Random &random) {
  constexpr uint64_t kUnusual[] = {0,      1,      2,       3,          4,          7,          8,          12,         13,        255,
                                   256,    0x7FFF, 0x8000,  0xFFFE,     0xFFFF,     0x10000,    0x3FFFFF,   0x400000,   0x400001,  999'999,
                                   1000000, 1000001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF3, 0xFFFFFFF4, 0xFFFFFFFE, 0xFFFFFFFF};
  return random.any_of(kUnusual) + (random.one_in(4) ? random.below(5) - 2 : 0);
}

// Returns a random position. Headers, which are short, are hit as often as all the rest of the file.
size_t position_in(Random &random, const File &file) {
  constexpr size_t kReaches[] = {16, 48, 128, 512, SIZE_MAX, SIZE_MAX};
  return random.below(std::min(file.size(), random.any_of(kReaches)));
}

void mutate_bytes(Random &random, File &file, const File &other) {
  constexpr size_t kSpans[] = {1, 2, 4, 12, 64, 300};
  if (file.empty()) return;
  const size_t position = position_in(random, file), span = std::min(random.any_of(kSpans), file.size() - position);
  const auto at = file.begin() + static_cast<ptrdiff_t>(position), end = at + static_cast<ptrdiff_t>(span);
  switch (random.below(9)) {
    case 0: file[position] ^= static_cast<uint8_t>(1 << random.below(8)); return;
    case 1: file[position] = unusual_byte(random); return;
    case 2: {
      constexpr size_t kBytes[] = {2, 2, 4, 4, 8};
      const size_t bytes = std::min(random.any_of(kBytes), file.size() - position);
      return put(&file[position], unusual_number(random), bytes, random.one_in(2));
    }
    case 3: file.resize(random.one_in(2) ? position : random.below(file.size())); return;
    case 4: file.erase(at, end); return;
    case 5: {
      const File copy(at, end);
      file.insert(at, copy.begin(), copy.end());
      return;
    }
    case 6: std::generate(at, end, [&] { return random.byte(); }); return;
    case 7: std::fill(at, end, random.one_in(2) ? 0 : 0xFF); return;
    default:
      if (other.empty()) return;
      const size_t start = random.below(other.size());
      const size_t count = random.one_in(2) ? other.size() - start : std::min(random.any_of(kSpans), other.size() - start);
      const auto first = other.begin() + static_cast<ptrdiff_t>(start);
      file.insert(at, first, first + static_cast<ptrdiff_t>(count));
  }
}

// A chunk of a PNG or a WAV, or a segment of a JPEG.
struct Chunk {
  size_t start, length_at, length_bytes, content, end;
};

std::vector<Chunk> chunks_of(Format format, const File &file) {
  std::vector<Chunk> chunks;
  size_t position = format == kJpeg ? 2 : format == kPng ? 8 : 12;
  while (position + 12 <= file.size()) {
    Chunk chunk{position, position, 4, position + 8, 0};
    if (format == kJpeg) {
      chunk.length_at = position + 2, chunk.length_bytes = 2, chunk.content = position + 4;
      chunk.end = position + 2 + (file[position + 2] << 8 | file[position + 3]);
    } else if (format == kPng) {
      chunk.end = position + 12 + big_endian32(&file[position]);
    } else {
      uint32_t bytes;
      chunk.length_at = position + 4;
      std::memcpy(&bytes, &file[position + 4], sizeof(bytes));
      chunk.end = position + 8 + bytes;
    }
    if (chunk.end > file.size() || chunk.end < chunk.content) break;
    chunks.push_back(chunk);
    position = chunk.end;
  }
  return chunks;
}

void mutate_chunk(Random &random, Format format, File &file) {
  const std::vector<Chunk> chunks = chunks_of(format, file);
  if (chunks.empty()) return;
  const Chunk &chunk = chunks[random.below(chunks.size())];
  const auto begin = file.begin() + static_cast<ptrdiff_t>(chunk.start), end = file.begin() + static_cast<ptrdiff_t>(chunk.end);
  switch (random.below(8)) {
    case 0: file.erase(begin, end); return;
    case 1: {
      const File copy(begin, end);
      file.insert(begin, copy.begin(), copy.end());
      return;
    }
    case 2: return put(&file[chunk.length_at], unusual_number(random), chunk.length_bytes, format != kWav);
    case 3: {
      constexpr uint8_t kMarkers[] = {0xC0, 0xC1, 0xC2, 0xC4, 0xC8, 0xC9, 0xCC, 0xD8, 0xD9, 0xDA, 0xDD, 0xE1, 0x01, 0xFF};
      constexpr const char *kPngNames[] = {"IDAT", "PLTE", "tRNS", "gAMA", "eXIf", "IEND", "acTL", "zTXt", "IHDR", "cHRM"};
      constexpr const char *kWavNames[] = {"data", "fmt ", "LIST", "fact", "PEAK", "JUNK"};
      if (format == kJpeg) {
        file[chunk.start + 1] = random.any_of(kMarkers);
      } else {
        const char *name = format == kPng ? random.any_of(kPngNames) : random.any_of(kWavNames);
        std::memcpy(&file[chunk.start + (format == kPng ? 4 : 0)], name, 4);
      }
      return;
    }
    case 4: {
      // Truncate the chunk and end the file there. The stored length is changed to match, so that the chunk is complete.
      const size_t size = random.below(chunk.end - chunk.content + 1);
      // The length of a JPEG segment includes its own two bytes; that of a PNG chunk excludes the checksum.
      const size_t length = format == kJpeg ? size + 2 : format == kPng && size >= 4 ? size - 4 : size;
      file.resize(chunk.content + size);
      return put(&file[chunk.length_at], length, chunk.length_bytes, format != kWav);
    }
    default: {
      if (chunk.content >= chunk.end) return;
      const size_t position = chunk.content + random.below(std::min<size_t>(chunk.end - chunk.content, 40));
      if (random.one_in(2)) {
        file[position] = unusual_byte(random);
      } else {
        const size_t bytes = std::min<size_t>(random.one_in(2) ? 2 : 4, file.size() - position);
        put(&file[position], unusual_number(random), bytes, format != kWav);
      }
    }
  }
}

using Crc32 = uint32_t (*)(uint32_t, const void *, size_t);

void mend_checksums(File &file, Crc32 crc32) {
  for (const Chunk &chunk : chunks_of(kPng, file)) {
    put(&file[chunk.end - 4], crc32(0, &file[chunk.start + 4], chunk.end - chunk.start - 8), 4, true);
  }
}

File mutated(Random &random, Format format, const File &seed, const File &other, Crc32 crc32) {
  constexpr size_t kChanges[] = {0, 1, 1, 1, 1, 2, 2, 3, 6};
  File file = seed;
  for (size_t changes = random.any_of(kChanges); changes > 0; --changes) {
    if (random.one_in(2)) {
      mutate_chunk(random, format, file);
    } else {
      mutate_bytes(random, file, other);
    }
  }
  if (format == kPng && !random.one_in(8)) mend_checksums(file, crc32);
  file.shrink_to_fit();
  return file;
}

// -- a stand-in for libdeflate -----------------------------------------------------------------------------------------

// The rows to which the stand-in inflates all data.
File made_up;

void *no_decompressor() { return &made_up; }

void forget(void *) {}

int32_t make_up(void *, const void *, size_t in_bytes, void *out, size_t out_bytes, size_t *read, size_t *written) {
  *read = in_bytes;
  *written = std::min(out_bytes, made_up.size());
  if (*written > 0) std::memcpy(out, made_up.data(), *written);
  return *written == out_bytes ? 0 : 1;
}

// Returns the checksum in the file, which follows the data, so that all checksums match.
uint32_t matching_crc32(uint32_t, const void *data, size_t bytes) { return big_endian32(static_cast<const uint8_t *>(data) + bytes); }

constexpr PenstockLibdeflate kStandIn{no_decompressor, forget, make_up, matching_crc32};

// -- PNG ---------------------------------------------------------------------------------------------------------------

struct Header {
  size_t height, width, bits, colour_type;

  size_t channels() const { return colour_type == 2 ? 3 : colour_type == 4 ? 2 : colour_type == 6 ? 4 : 1; }
  size_t value_bytes() const { return bits == 16 ? 2 : 1; }
  size_t row_bytes() const { return (width * channels() * bits + 7) / 8; }
};

std::optional<Header> header_of(const File &file) {
  constexpr size_t kMaxSide = 1 << 12;
  if (file.size() < 33) return std::nullopt;
  const Header header{big_endian32(&file[20]), big_endian32(&file[16]), file[24], file[25]};
  if (header.height == 0 || header.width == 0 || header.height > kMaxSide || header.width > kMaxSide) return std::nullopt;
  if (header.bits == 0 || header.bits > 16) return std::nullopt;
  return header;
}

// Returns rows with random filters, a few of which do not exist, and with mostly random values.
File random_rows(Random &random, const Header &header) {
  const size_t pitch = header.row_bytes() + 1, kinds = random.below(6);
  File rows(header.height * pitch);
  uint64_t bits = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % 8 == 0) bits = kinds == 0 ? (random.one_in(2) ? 0 : ~uint64_t{0}) : random.next();
    rows[i] = static_cast<uint8_t>(bits >> 8 * (i % 8));
  }
  const size_t one_filter = random.below(5);
  for (size_t y = 0; y < header.height; ++y) {
    rows[y * pitch] = static_cast<uint8_t>(kinds == 1 ? one_filter : random.below(5));
    if (random.one_in(5000)) rows[y * pitch] = random.byte();
  }
  return rows;
}

// Source: the PNG specification, 9.2 and 9.4.
int paeth(int a, int b, int c) {
  const int p = a + b - c, pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

// Returns the bytes of unfiltered rows; nothing if a filter does not exist.
std::optional<File> unfiltered(const File &filtered, const Header &header) {
  const size_t row_bytes = header.row_bytes(), step = std::max<size_t>(header.channels() * header.bits / 8, 1);
  File rows(header.height * row_bytes);
  for (size_t y = 0; y < header.height; ++y) {
    const uint8_t *in = &filtered[y * (row_bytes + 1)];
    if (in[0] > 4) return std::nullopt;
    for (size_t i = 0; i < row_bytes; ++i) {
      const auto byte = [&](bool is_there, size_t row, size_t column) { return is_there ? int{rows[row * row_bytes + column]} : 0; };
      const int a = byte(i >= step, y, i - step), b = byte(y > 0, y - 1, i), c = byte(i >= step && y > 0, y - 1, i - step);
      const int expected[] = {0, a, b, (a + b) / 2, paeth(a, b, c)};
      rows[y * row_bytes + i] = static_cast<uint8_t>(in[i + 1] + expected[in[0]]);
    }
  }
  return rows;
}

File big_endian_values(File values) {
  for (size_t i = 0; i + 1 < values.size(); i += 2) std::swap(values[i], values[i + 1]);
  return values;
}

// Returns the palette of a file; empty if there is none.
File palette_of(const File &file) {
  for (const Chunk &chunk : chunks_of(kPng, file)) {
    if (std::memcmp(&file[chunk.start + 4], "PLTE", 4) != 0) continue;
    return File(file.begin() + static_cast<ptrdiff_t>(chunk.content), file.begin() + static_cast<ptrdiff_t>(chunk.end - 4));
  }
  return {};
}

// Returns the values of unfiltered rows as stored or, with a palette, the values of their colours; nothing if a colour is not in the
// palette. Source: the PNG specification, 7.2 and 11.2.2.
std::optional<File> values_of(const File &rows, const Header &header, const File &palette) {
  constexpr size_t kColourBytes = 3;
  if (header.bits == 16) return big_endian_values(rows);
  if (header.bits == 8 && header.colour_type != 3) return rows;
  const size_t mask = (size_t{1} << header.bits) - 1;
  File values;
  for (size_t y = 0; y < header.height; ++y) {
    for (size_t x = 0; x < header.width; ++x) {
      const size_t bit = x * header.bits, byte = rows[y * header.row_bytes() + bit / 8];
      const size_t value = byte >> (8 - header.bits - bit % 8) & mask;
      if (header.colour_type != 3) {
        values.push_back(static_cast<uint8_t>(value * 255 / mask));
      } else if (kColourBytes * value + kColourBytes > palette.size()) {
        return std::nullopt;
      } else {
        const auto colour = palette.begin() + static_cast<ptrdiff_t>(kColourBytes * value);
        values.insert(values.end(), colour, colour + kColourBytes);
      }
    }
  }
  return values;
}

struct Window {
  size_t top, left, height, width;
};

constexpr int64_t kSpaces[] = {PENSTOCK_PIXELS_AS_STORED, PENSTOCK_PIXELS_RGB, PENSTOCK_PIXELS_BGR, PENSTOCK_PIXELS_GREY};

size_t output_channels(const Header &header, int64_t space) {
  if (space == PENSTOCK_PIXELS_GREY) return 1;
  return space == PENSTOCK_PIXELS_AS_STORED && header.colour_type != 3 ? header.channels() : 3;
}

// Returns the pixels of a window; nothing if the core does not decode it.
std::optional<File> decoded(const PenstockLibdeflate &library, const File &file, const Header &header, const Window &window,
                            int64_t space, size_t pixel_bytes) {
  File output(window.height * window.width * pixel_bytes);
  const PenstockPng png{file.data(),
                        static_cast<int64_t>(file.size()),
                        static_cast<int64_t>(header.value_bytes()),
                        static_cast<int64_t>(window.top),
                        static_cast<int64_t>(window.left),
                        static_cast<int64_t>(window.height),
                        static_cast<int64_t>(window.width),
                        space,
                        output.data(),
                        static_cast<int64_t>(window.width * pixel_bytes)};
  if (!penstock_decode_png(&library, &png)) return std::nullopt;
  return output;
}

File cut(const File &whole, size_t width, const Window &window, size_t pixel_bytes) {
  File part;
  for (size_t y = window.top; y < window.top + window.height; ++y) {
    const auto row = whole.begin() + static_cast<ptrdiff_t>((y * width + window.left) * pixel_bytes);
    part.insert(part.end(), row, row + static_cast<ptrdiff_t>(window.width * pixel_bytes));
  }
  return part;
}

// Decodes a PNG, and windows of it, and checks the results; returns whether the whole image could be decoded.
bool decode_png(Random &random, const PenstockLibdeflate &real, const File &file) {
  const std::optional<Header> header = header_of(file);
  if (!header) {
    expect(!decoded(real, file, {1, 1, 8, 2}, {0, 0, 1, 1}, PENSTOCK_PIXELS_RGB, 3) || file.size() >= 33, "pixels without a header");
    return false;
  }
  const bool is_stand_in = random.one_in(2);
  const PenstockLibdeflate &library = is_stand_in ? kStandIn : real;
  if (is_stand_in) {
    made_up = random_rows(random, *header);
    if (random.one_in(50)) made_up.resize(random.below(made_up.size() + 1));
  }
  const int64_t space = random.any_of(kSpaces);
  const size_t pixel_bytes = output_channels(*header, space) * header->value_bytes();
  const Window all{0, 0, header->height, header->width};
  const std::optional<File> whole = decoded(library, file, *header, all, space, pixel_bytes);
  // A window that reaches beyond the image, and a row of another length, as if the caller had read another file's header, are refused.
  const Window beyond{random.below(2), random.below(2), header->height, header->width + random.below(2)};
  if (beyond.top + beyond.left + beyond.width > header->width) {
    expect(!decoded(library, file, *header, beyond, space, pixel_bytes), "pixels beyond the image");
  }
  expect(!decoded(library, file, *header, all, space, pixel_bytes + 1), "pixels of another size");
  Window window{random.below(header->height), random.below(header->width), 0, 0};
  window.height = 1 + random.below(header->height - window.top);
  window.width = 1 + random.below(header->width - window.left);
  const std::optional<File> part = decoded(library, file, *header, window, space, pixel_bytes);
  if (!whole) {
    // If a window can be decoded, the image can be, too, except if a colour outside the window is not in the palette.
    expect(!part || header->colour_type == 3, "a part of an image that cannot be decoded");
    return false;
  }
  expect(part && *part == cut(*whole, header->width, window, pixel_bytes), "a part that is equal to the whole");
  if (is_stand_in && space == PENSTOCK_PIXELS_AS_STORED) {
    const std::optional<File> rows = unfiltered(made_up, *header);
    expect(rows.has_value(), "an unknown filter");
    expect(*whole == values_of(*rows, *header, palette_of(file)), "pixels of generated rows");
  }
  return true;
}

// -- headers -----------------------------------------------------------------------------------------------------------

bool read_headers(const File &file) {
  const auto address = reinterpret_cast<int64_t>(file.data()), size = static_cast<int64_t>(file.size());
  const PenstockEncodedFiles files{1, &address, &size};
  PenstockJpegHeader jpeg, prepared;
  PenstockImageSize png;
  PenstockEncodedImage image;
  PenstockRecording recording;
  uint8_t is_whole;
  penstock_read_jpeg_headers(&files, &jpeg);
  penstock_read_png_sizes(&files, &png);
  PenstockPngHeader plain_png;
  penstock_read_png_headers(&files, &plain_png);
  penstock_find_whole_jpegs(&files, &is_whole);
  const int64_t room = penstock_prepare_jpegs(&files, 3, 1 << 22, &image, &prepared);
  penstock_read_recordings(&files, &recording);
  expect(jpeg.height == 0 || (jpeg.height <= 0xFFFF && 0 < jpeg.width && jpeg.width <= 0xFFFF), "a JPEG's size");
  expect(jpeg.channels == 0 || jpeg.channels == 1 || jpeg.channels == 3, "a JPEG's channels");
  expect(png.height >= 0 && png.width >= 0 && png.height * png.width <= 1 << 22, "a PNG's size");
  expect(plain_png.channels >= 0 && plain_png.channels <= 4, "a PNG's channels");
  const bool has_size = plain_png.height == png.height && plain_png.width == png.width;
  expect(plain_png.channels == 0 ? plain_png.height == 0 && plain_png.width == 0 : has_size, "a plain PNG's header");
  expect(room == 0 || (is_whole && room >= jpeg.height * jpeg.width * 3 && image.data == file.data()), "a JPEG's description");
  if (recording.encoding != PENSTOCK_UNUSUAL_RECORDING) {
    constexpr int64_t kBytes[] = {0, 1, 2, 3, 4, 4, 8, 1, 1};
    const int64_t bytes = recording.frames * recording.channels * kBytes[recording.encoding];
    expect(recording.channels > 0 && recording.rate > 0 && recording.frames >= 0, "a recording");
    expect(file.data() <= recording.data && recording.data + bytes <= file.data() + file.size(), "samples that are there");
  }
  return jpeg.height > 0 || png.height > 0 || recording.encoding != PENSTOCK_UNUSUAL_RECORDING;
}

// -- cases -------------------------------------------------------------------------------------------------------------

using Seeds = std::array<std::vector<File>, kFormats>;

Seeds seeds_in(const char *folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  // Sorted, because the cases depend on the order of the seeds.
  std::sort(paths.begin(), paths.end());
  Seeds seeds;
  for (const auto &path : paths) {
    const std::string name = path.filename().string();
    for (size_t format = 0; format < kFormats; ++format) {
      if (!name.starts_with(std::string(kNames[format]) + "-")) continue;
      std::ifstream stream(path, std::ios::binary);
      seeds[format].emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    }
  }
  for (const auto &files : seeds) expect(!files.empty(), "a folder with files of each format");
  return seeds;
}

struct Counts {
  uint64_t cases, headers, decoded;
};

void run_case(const Seeds &seeds, const PenstockLibdeflate &library, std::array<Counts, kFormats> &counts) {
  constexpr Format kShares[] = {kJpeg, kJpeg, kPng, kPng, kPng, kWav};
  Random random(Random(current_seed << 40 ^ current_case).next());
  const Format format = random.any_of(kShares);
  const auto &files = seeds[format], &others = seeds[random.below(kFormats)];
  const File &seed = files[random.below(files.size())], &other = others[random.below(others.size())];
  const File file = mutated(random, format, seed, other, library.crc32);
  Counts &count = counts[format];
  ++count.cases;
  count.headers += read_headers(file);
  if (format == kPng) count.decoded += decode_png(random, library, file);
}

template <class Function>
Function function_in(void *library, const char *name) {
  void *const found = dlsym(library, name);
  expect(found != nullptr, name);
  return reinterpret_cast<Function>(found);
}

}  // namespace

int main(int count, char **arguments) {
  expect(4 <= count && count <= 6, "the arguments: SEEDS LIBDEFLATE CASES [SEED [FIRST]]");
  const Seeds seeds = seeds_in(arguments[1]);
  void *const found = dlopen(arguments[2], RTLD_LAZY);
  expect(found != nullptr, "a library that can be loaded");
  const PenstockLibdeflate library{
      function_in<decltype(PenstockLibdeflate::alloc_decompressor)>(found, "libdeflate_alloc_decompressor"),
      function_in<decltype(PenstockLibdeflate::free_decompressor)>(found, "libdeflate_free_decompressor"),
      function_in<decltype(PenstockLibdeflate::zlib_decompress_ex)>(found, "libdeflate_zlib_decompress_ex"),
      function_in<decltype(PenstockLibdeflate::crc32)>(found, "libdeflate_crc32")};
  current_seed = count > 4 ? std::stoull(arguments[4]) : 1;
  const uint64_t first = count > 5 ? std::stoull(arguments[5]) : 0, end = first + std::stoull(arguments[3]);
  __sanitizer_set_death_callback(name_case);
  std::array<Counts, kFormats> counts{};
  const auto started = std::chrono::steady_clock::now();
  for (current_case = first; current_case < end; ++current_case) run_case(seeds, library, counts);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  for (size_t format = 0; format < kFormats; ++format) {
    std::printf("%s: %llu cases, %llu with a header, %llu decoded\n", kNames[format], static_cast<unsigned long long>(counts[format].cases),
                static_cast<unsigned long long>(counts[format].headers), static_cast<unsigned long long>(counts[format].decoded));
  }
  std::printf("seed %llu: %llu cases in %.0f s, nothing found\n", static_cast<unsigned long long>(current_seed),
              static_cast<unsigned long long>(end - first), took.count());
  return 0;
}
