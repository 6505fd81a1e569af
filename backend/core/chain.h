// Chains: the steps of several operators, computed sample by sample, strip by strip, while the data are in the caches.

#pragma once

#include "core.h"

namespace penstock {

// Runs one sample of a batch through a chain.
void run_sample(const PenstockChain &chain, int64_t sample);

}  // namespace penstock
