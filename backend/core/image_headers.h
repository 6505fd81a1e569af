// The headers of ordinary JPEGs and PNGs. Unusual files are left to readers that parse more.

#pragma once

#include <cstdint>
#include <span>

#include "core.h"

namespace penstock {

using Bytes = std::span<const uint8_t>;

// Reads a JPEG's segments up to its first scan; false if anything about them is unusual.
bool read_jpeg_header(Bytes file, PenstockJpegHeader &header);

// Whether a file ends as JPEGs do, before any zeros.
bool is_whole_jpeg(Bytes file);

// Whether the first frame of a JPEG is sequential, coded by Huffman.
bool is_baseline_jpeg(Bytes file);

// Whether an image of this EXIF orientation is not stored upright.
inline bool is_turned(int64_t orientation) { return 2 <= orientation && orientation <= 8; }

// Reads a PNG of 8 bits that is neither turned nor animated; false if it is another one.
bool read_png_size(Bytes file, PenstockImageSize &size);

// Reads the header of a PNG of 8 bits without a palette, none of whose chunks says more about the pixels; false for other files.
bool read_png_header(Bytes file, PenstockPngHeader &header);

}  // namespace penstock
