// Moves elements of any type: cuts windows, mirrors and pads.

#pragma once

#include "copies.h"
#include "core.h"

namespace penstock {

// Returns the region in coordinates of the input, which may lie partly outside, that corresponds to a region of the output.
PenstockRegion source_region(const PenstockPlacement &placement, const PenstockRegion &window, int64_t rank);

// Returns the part of `source_region` that lies inside the input.
PenstockRegion read_region(const PenstockPlacement &placement, const PenstockRegion &window, int64_t rank);

// Returns whether the output is a part of the input, neither mirrored nor padded.
bool is_view(const PenstockPlacement &placement, int64_t rank);

// Computes a part of the output.
void place(const PenstockPlacement &placement, const PenstockPart &source, const PenstockPart &target, int64_t rank,
           Writes writes = Writes::kCached);

// Returns the region of a store's input that is needed for a region of its output; all channels are read. Its dimensions are in the input's
// order.
PenstockRegion read_region(const PenstockStore &store, const PenstockRegion &window, int64_t rank);

// Computes a part of a store's output, which must contain all channels.
void place_images(const PenstockStore &store, PenstockComputeImage compute, const PenstockPart &source, const PenstockPart &target,
                  int64_t rank);

}  // namespace penstock
