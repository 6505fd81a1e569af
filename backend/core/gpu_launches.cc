// Builds the driver calls that launch kernels for ranges of the samples of a batch.

#include "core.h"

namespace {

// Replaces each sample's number of blocks by its first block; returns the total number of blocks.
int64_t add_up_blocks(int64_t *blocks, int64_t samples) {
  int64_t total = 0;
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t own = blocks[i];
    blocks[i] = total;
    total += own;
  }
  return total;
}

// Fills in the arguments that a launch passes to its kernel.
void fill_arguments(const PenstockGpuKernel &kernel, const PenstockGpuStep &step, PenstockGpuArguments &passed) {
  int64_t count = 0;
  passed.values[count++] = kernel.device_blocks + static_cast<int64_t>(sizeof(int64_t)) * step.first;
  passed.values[count++] = kernel.descriptors + kernel.descriptor_bytes * step.first;
  passed.values[count++] = step.last - step.first;
  for (int64_t i = 0; i < kernel.argument_count; ++i) {
    const PenstockGpuArgument &argument = kernel.arguments[i];
    passed.values[count++] = argument.value + argument.sample_bytes * step.first;
  }
  for (int64_t i = 0; i < count; ++i) passed.addresses[i] = &passed.values[i];
}

}  // namespace

extern "C" int64_t penstock_list_launches(const PenstockGpuStream *stream, const PenstockGpuKernel *kernels,
                                          const PenstockGpuStep *steps, int64_t count, PenstockCall *calls,
                                          PenstockGpuArguments *arguments) {
  int64_t made = 0;
  for (int64_t i = 0; i < count; ++i) {
    const PenstockGpuStep &step = steps[i];
    const PenstockGpuKernel &kernel = kernels[step.kernel];
    const int64_t blocks = add_up_blocks(kernel.blocks + step.first, step.last - step.first);
    if (blocks == 0) continue;
    PenstockGpuArguments &passed = arguments[made];
    fill_arguments(kernel, step, passed);
    calls[made++] = {stream->launch,
                     {kernel.function, blocks, 1, 1, stream->block_threads, 1, 1, kernel.shared_bytes, stream->stream,
                      reinterpret_cast<int64_t>(passed.addresses), 0}};
  }
  return made;
}
