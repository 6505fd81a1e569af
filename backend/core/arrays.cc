// Finds the memory of Python's arrays through the buffer protocol. Done in Python, this would take a microsecond or two for each array.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core.h"

namespace penstock {

namespace {

// The layout of CPython's Py_buffer.
struct Buffer {
  void *data;
  void *owner;
  ptrdiff_t bytes, element_bytes;
  int read_only, rank;
  char *format;
  ptrdiff_t *extents, *strides, *suboffsets;
  void *internal;
};

constexpr int kStrided = 0x18;    // PyBUF_STRIDES
constexpr int kWritable = 0x01;   // PyBUF_WRITABLE: a contiguous buffer of bytes

// The functions of CPython that are called.
struct Python {
  explicit Python(const PenstockPython &functions)
      : get_buffer(reinterpret_cast<int (*)(void *, Buffer *, int)>(functions.get_buffer)),
        release_buffer(reinterpret_cast<void (*)(Buffer *)>(functions.release_buffer)),
        list_item(reinterpret_cast<void *(*)(void *, ptrdiff_t)>(functions.list_item)) {}

  int (*const get_buffer)(void *, Buffer *, int);
  void (*const release_buffer)(Buffer *);
  void *(*const list_item)(void *, ptrdiff_t);
};

// An array's buffer, released by the destructor. If the memory is used after that, the caller must keep the array alive.
class View {
 public:
  View(const Python &python, void *array, int how) : python_(python) {
    is_valid_ = array && python.get_buffer(array, &buffer_, how) == 0;
  }
  ~View() {
    if (is_valid_) python_.release_buffer(&buffer_);
  }
  View(const View &) = delete;
  View &operator=(const View &) = delete;

  explicit operator bool() const { return is_valid_; }
  const Buffer *operator->() const { return &buffer_; }

  int64_t elements() const {
    int64_t count = 1;
    for (int axis = 0; axis < buffer_.rank; ++axis) count *= buffer_.extents[axis];
    return count;
  }

  bool has_extents_of(const View &other) const {
    return buffer_.rank == other->rank && buffer_.element_bytes == other->element_bytes &&
           std::equal(buffer_.extents, buffer_.extents + buffer_.rank, other->extents);
  }

  bool is_contiguous() const {
    ptrdiff_t stride = buffer_.element_bytes;
    bool holds = true;
    for (int axis = buffer_.rank - 1; axis >= 0; --axis) {
      const ptrdiff_t extent = buffer_.extents[axis];
      if (extent == 0) return true;
      if (extent > 1) holds = holds && buffer_.strides[axis] == stride;
      stride *= extent;
    }
    return holds;
  }

 private:
  const Python &python_;
  Buffer buffer_{};
  bool is_valid_;
};

PenstockArray described(const View &view) {
  PenstockArray array{};
  array.data = reinterpret_cast<int64_t>(view->data);
  array.elements = view.elements();
  array.rank = view->rank;
  array.is_contiguous = view.is_contiguous();
  std::copy_n(view->extents, std::min<int>(view->rank, PENSTOCK_MAX_RANK), array.extents);
  return array;
}

}  // namespace

}  // namespace penstock

extern "C" int32_t penstock_describe(const PenstockPython *functions, void *list, int64_t count, void *out) {
  const penstock::Python python(*functions);
  const penstock::View memory(python, out, penstock::kWritable);
  if (!memory) return -1;
  auto *arrays = static_cast<PenstockArray *>(memory->data);
  for (int64_t number = 0; number < count; ++number) {
    const penstock::View view(python, python.list_item(list, number), penstock::kStrided);
    if (!view) return -1;
    arrays[number] = penstock::described(view);
  }
  return 0;
}

extern "C" int64_t penstock_address(const PenstockPython *functions, void *array) {
  const penstock::Python python(*functions);
  const penstock::View view(python, array, penstock::kStrided);
  return view ? reinterpret_cast<int64_t>(view->data) : -1;
}

extern "C" int64_t penstock_addresses(const PenstockPython *functions, void *list, int64_t count, void *out) {
  const penstock::Python python(*functions);
  const penstock::View memory(python, out, penstock::kWritable);
  if (!memory) return -1;
  auto *addresses = static_cast<int64_t *>(memory->data);
  for (int64_t number = 0; number < count; ++number) {
    const penstock::View view(python, python.list_item(list, number), penstock::kStrided);
    if (!view) return -1;
    if (!view.is_contiguous()) return number;
    addresses[number] = reinterpret_cast<int64_t>(view->data);
  }
  return count;
}

extern "C" int64_t penstock_copy_alike(const PenstockPython *functions, void *list, int64_t count, void *out) {
  const penstock::Python python(*functions);
  const penstock::View memory(python, out, penstock::kWritable);
  const penstock::View first(python, python.list_item(list, 0), penstock::kStrided);
  if (!memory || !first) return -1;
  const int64_t bytes = first.elements() * first->element_bytes;
  const int64_t room = bytes ? memory->bytes / bytes : count;
  auto *target = static_cast<char *>(memory->data);
  for (int64_t number = 0; number < count; ++number) {
    const penstock::View view(python, python.list_item(list, number), penstock::kStrided);
    if (!view) return -1;
    if (number == room || !view.is_contiguous() || !view.has_extents_of(first)) return number;
    if (bytes) std::memcpy(target + number * bytes, view->data, bytes);
  }
  return count;
}
