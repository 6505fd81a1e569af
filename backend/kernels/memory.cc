// What numba's code calls in kernels that were compiled ahead of time: where it makes, counts and reshapes arrays, and in lists.
//
// An array's memory is described by a `Memory`, whose layout numba's code knows: it changes the count and reads where the data is.
// (numba/core/runtime/nrt.cpp, whose functions for hosts and threads are not needed here.)

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

struct Memory {
  std::atomic<size_t> references;
  void (*destroy)(void *data, size_t size, void *information);
  void *information;
  void *data;
  size_t size;
  void *allocator;
};

// One block: the description, and the data, aligned.
Memory *allocate(size_t size, size_t alignment) {
  size_t room = sizeof(Memory) + alignment;
  if (size > SIZE_MAX - room) return nullptr;
  void *block = std::malloc(room + size);
  if (!block) return nullptr;
  uintptr_t data = reinterpret_cast<uintptr_t>(block) + sizeof(Memory);
  if (alignment > 1) data += (alignment - data % alignment) % alignment;
  return new (block) Memory{{1}, nullptr, nullptr, reinterpret_cast<void *>(data), size, nullptr};
}

// Of memory whose size changes: `information` is the function that destroys what is in it, or null.
void destroy_varying(void *data, size_t, void *information) {
  if (information) reinterpret_cast<void (*)(void *)>(information)(data);
  std::free(data);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("hidden")))

EXPORT void NRT_MemInfo_call_dtor(Memory *memory) {
  if (memory->destroy) memory->destroy(memory->data, memory->size, memory->information);
  std::free(memory);
}

EXPORT Memory *NRT_MemInfo_alloc_aligned(size_t size, uint32_t alignment) { return allocate(size, alignment); }

EXPORT Memory *NRT_MemInfo_alloc_safe_aligned(size_t size, uint32_t alignment) { return allocate(size, alignment); }

EXPORT Memory *NRT_MemInfo_alloc(size_t size) { return allocate(size, 1); }

EXPORT Memory *NRT_MemInfo_new_varsize_dtor(size_t size, void *destroy) {
  void *data = std::malloc(size);
  void *block = data ? std::malloc(sizeof(Memory)) : nullptr;
  if (!block) {
    std::free(data);
    return nullptr;
  }
  return new (block) Memory{{1}, destroy_varying, destroy, data, size, nullptr};
}

EXPORT void *NRT_MemInfo_varsize_realloc(Memory *memory, size_t size) {
  void *data = std::realloc(memory->data, size);
  if (data) {
    memory->data = data;
    memory->size = size;
  }
  return data;
}

EXPORT void *NRT_Allocate(size_t size) { return std::malloc(size); }

EXPORT void NRT_Free(void *block) { std::free(block); }

EXPORT float numba_nextafterf(float from, float to) { return std::nextafter(from, to); }

EXPORT double numba_nextafter(double from, double to) { return std::nextafter(from, to); }

// Strides, in bytes, by which an array has another shape, in C's order, without being copied; returns 0 if there are none.
//
// Both shapes are gone through together, in the smallest groups of extents with the same product. The elements of a group have to be
// equally far apart in the array.
EXPORT int32_t numba_attempt_nocopy_reshape(int64_t rank, const int64_t *extents, const int64_t *strides, int64_t new_rank,
                                            const int64_t *new_extents, int64_t *new_strides, int64_t element_bytes, int32_t) {
  int64_t volume = 1, new_volume = 1;
  for (int64_t axis = 0; axis < rank; ++axis) volume *= extents[axis];
  for (int64_t axis = 0; axis < new_rank; ++axis) new_volume *= new_extents[axis];
  if (volume != new_volume) return 0;
  int64_t axis = rank - 1, stride = element_bytes;
  if (volume == 0) axis = -1;
  for (int64_t target = new_rank - 1; target >= 0; --target) {
    if (volume == 0 || new_extents[target] == 1) {
      new_strides[target] = stride;
      stride *= new_extents[target];
      continue;
    }
    while (axis >= 0 && extents[axis] == 1) --axis;
    // A group begins: `count` elements of the array, `stride` apart, and `filled` of the new shape.
    int64_t count = extents[axis], filled = new_extents[target];
    stride = strides[axis];
    new_strides[target] = stride;
    while (count != filled) {
      if (count < filled) {
        int64_t outer = axis - 1;
        while (extents[outer] == 1) --outer;
        if (strides[outer] != strides[axis] * extents[axis]) return 0;
        axis = outer;
        count *= extents[axis];
      } else {
        --target;
        new_strides[target] = stride * filled;
        filled *= new_extents[target];
      }
    }
    stride *= filled;
    --axis;
  }
  return 1;
}

// Releases the memory of a result that Python has copied.
extern "C" __attribute__((visibility("default"))) void penstock_release_memory(Memory *memory) {
  if (memory && memory->references.fetch_sub(1) == 1) NRT_MemInfo_call_dtor(memory);
}

// What numba's code calls of CPython to make the message of an error from values, after the kernel has failed. We take the message
// without them (`calls.py`), so these are never called; they are here so that libraries need nothing of the process that loads them.
EXPORT void *PyExc_RuntimeError = nullptr;
EXPORT void PyErr_SetString() { std::abort(); }
EXPORT void PyObject_Hash() { std::abort(); }
EXPORT void PyTuple_Pack() { std::abort(); }
EXPORT void PyUnicode_FromKindAndData() { std::abort(); }
