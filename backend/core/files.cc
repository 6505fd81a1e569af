// Reads files, and ranges of files, into blocks of memory.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "core.h"

namespace penstock {

namespace {

constexpr int64_t kLargestFile = int64_t{1} << 46;  // in bytes; what reports a larger size is a folder

// A file descriptor, closed by the destructor.
class File {
 public:
  explicit File(const char *path) {
    do {
      descriptor_ = open(path, O_RDONLY | O_CLOEXEC);
    } while (descriptor_ < 0 && errno == EINTR);
  }
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

int64_t read_some(int file, int64_t start, uint8_t *target, int64_t bytes) {
  ssize_t count;
  do {
    count = pread(file, target, bytes, start);
  } while (count < 0 && errno == EINTR);
  return count;
}

// Reads a range of a file; returns whether all of its bytes were read.
bool read_all(int file, int64_t start, uint8_t *target, int64_t bytes) {
  for (int64_t done = 0; done < bytes;) {
    const int64_t count = read_some(file, start + done, target + done, bytes - done);
    if (count <= 0) return false;
    done += count;
  }
  return true;
}

// Reads a whole file; returns its size, or -1 if it cannot be read. If the file is larger than `room`, nothing is read. `known`: the size
// that the file had before; negative: not known.
int64_t read_file(const char *path, int64_t known, uint8_t *target, int64_t room) {
  const File file(path);
  if (!file) return -1;
  // Tries to read one byte more than the file had: if that reaches the end of the file, its size is confirmed, which is cheaper than asking
  // for the size.
  if (known >= 0 && known < room && read_some(file.descriptor(), 0, target, known + 1) == known) return known;
  const int64_t bytes = lseek(file.descriptor(), 0, SEEK_END);
  if (bytes < 0 || bytes >= kLargestFile) return -1;
  if (bytes <= room && !read_all(file.descriptor(), 0, target, bytes)) return -1;
  return bytes;
}

}  // namespace

}  // namespace penstock

extern "C" int64_t penstock_read_files(const PenstockFiles *files, int64_t count, uint8_t *block, int64_t block_bytes) {
  int64_t end = 0;
  for (int64_t i = 0; i < count; ++i) {
    end = (end + files->alignment - 1) / files->alignment * files->alignment;
    const int64_t room = std::max<int64_t>(block_bytes - end, 0);
    const int64_t bytes = penstock::read_file(files->names + files->name_starts[i], files->known[i], block + end, room);
    if (bytes < 0) return -1;
    files->places[i] = end;
    files->sizes[i] = bytes;
    end += bytes;
  }
  return end;
}

extern "C" int32_t penstock_read_ranges(const PenstockRange *ranges, int64_t count, uint8_t *block, int64_t block_bytes) {
  for (int64_t first = 0, next; first < count; first = next) {
    const PenstockRange &begin = ranges[first];
    for (next = first + 1; next < count; ++next) {
      const PenstockRange &other = ranges[next];
      if (other.file != begin.file || other.place - begin.place != other.start - begin.start) break;
    }
    const PenstockRange &end = ranges[next - 1];
    const int64_t bytes = end.place + end.bytes - begin.place;
    if (begin.place < 0 || bytes < 0 || begin.place + bytes > block_bytes) return -1;
    if (!penstock::read_all(static_cast<int>(begin.file), begin.start, block + begin.place, bytes)) return -1;
  }
  return 0;
}

extern "C" int32_t penstock_copy_pieces(int64_t window_file, const PenstockPiece *pieces, int64_t count, const PenstockPiece *window,
                                        uint8_t *block, int64_t block_bytes) {
  static_assert(sizeof(PenstockPiece) == sizeof(iovec), "pieces are what the system takes");
  int64_t done = 0;
  for (int64_t first = 0, next; first < count; first = next) {
    int64_t bytes = 0;
    for (next = first; next < count && next - first < IOV_MAX && bytes + pieces[next].bytes <= window->bytes; ++next) {
      bytes += pieces[next].bytes;
    }
    if (next == first || done + bytes > block_bytes) return -1;
    const auto *vectors = reinterpret_cast<const iovec *>(pieces + first);
    ssize_t written;
    do {
      written = pwritev(static_cast<int>(window_file), vectors, static_cast<int>(next - first), 0);
    } while (written < 0 && errno == EINTR);
    if (written != bytes) return -1;
    std::copy_n(window->data, bytes, block + done);
    done += bytes;
  }
  return 0;
}
