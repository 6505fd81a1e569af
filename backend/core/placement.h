// Moving elements: windows, mirrors and padding, of elements of any type.

#pragma once

#include "copies.h"
#include "core.h"

namespace penstock {

// The region of the input, possibly partly outside it, from which a region of the output is made.
PenstockRegion source_region(const PenstockPlacement &placement, const PenstockRegion &window, int64_t rank);

// The part of that region which lies inside the input.
PenstockRegion read_region(const PenstockPlacement &placement, const PenstockRegion &window, int64_t rank);

// Whether the output is just a part of the input.
bool is_view(const PenstockPlacement &placement, int64_t rank);

// Computes a part of the output.
void place(const PenstockPlacement &placement, const PenstockPart &source, const PenstockPart &target, int64_t rank,
           Writes writes = Writes::kCached);

// The region of a store's input, in the input's dimensions, from which a region of its output with all channels is made.
PenstockRegion read_region(const PenstockStore &store, const PenstockRegion &window, int64_t rank);

// Computes a part of a store's output, with all channels.
void place_images(const PenstockStore &store, PenstockComputeImage compute, const PenstockPart &source, const PenstockPart &target,
                  int64_t rank);

}  // namespace penstock
