// Reads the headers of ordinary JPEGs and PNGs. Unusual files are left to readers that parse more.

#pragma once

#include <cstdint>
#include <span>

#include "core.h"

namespace penstock {

using Bytes = std::span<const uint8_t>;

// Reads a JPEG's segments up to its first scan; returns false if anything about them is unusual.
bool read_jpeg_header(Bytes file, PenstockJpegHeader &header);

// Returns whether a file ends with a JPEG's end marker, apart from trailing zeros.
bool is_whole_jpeg(Bytes file);

// Returns whether the first frame of a JPEG is sequential and Huffman-coded.
bool is_baseline_jpeg(Bytes file);

// Returns whether an image with this EXIF orientation is not stored upright.
inline bool is_turned(int64_t orientation) { return 2 <= orientation && orientation <= 8; }

// Reads the size of a PNG of 8 bits that has no orientation and is not animated; returns false for other files.
bool read_png_size(Bytes file, PenstockImageSize &size);

// Reads the header of a PNG of 8 bits without a palette and without chunks that affect the pixels; returns false for other files.
bool read_png_header(Bytes file, PenstockPngHeader &header);

}  // namespace penstock
