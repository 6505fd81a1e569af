// Refuses to load models whose files a client uploads, whatever their backend: Triton would write the files to a new folder, and load a
// native library from there. This works only if this library is preloaded into Triton, as `penstock serve` does if clients may load models
// but not upload any.

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cstdio>

namespace {

constexpr char kFolderOfUpload[] = "/folderXXXXXX";
constexpr char kThisLibrary[] = "libtriton_penstock.so";

bool ends_with(const char* text, size_t size, const char* end) {
  const size_t length = strlen(end);
  return size >= length && memcmp(text + size - length, end, length) == 0;
}

// Removes this library from LD_PRELOAD of programs that Triton starts: in them, its references to Triton could not be resolved.
__attribute__((constructor)) void leave_children_alone() {
  const char* preloaded = getenv("LD_PRELOAD");
  if (preloaded == nullptr || !ends_with(preloaded, strcspn(preloaded, ":"), kThisLibrary)) return;
  const char* rest = strchr(preloaded, ':');
  if (rest == nullptr) {
    unsetenv("LD_PRELOAD");
  } else {
    setenv("LD_PRELOAD", rest + 1, 1);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) char* mkdtemp(char* name) noexcept {
  if (ends_with(name, strlen(name), kFolderOfUpload)) {
    fputs("Refused a model with uploaded files: `penstock serve --allow-model-upload` permits uploads, whose files run here as code.\n",
          stderr);
    errno = EPERM;
    return nullptr;
  }
  static const auto original = reinterpret_cast<char* (*)(char*)>(dlsym(RTLD_NEXT, "mkdtemp"));
  return original(name);
}
