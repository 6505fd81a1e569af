#include "cpython.h"

#include <dlfcn.h>

namespace penstock {

#define PENSTOCK_DEFINE_FUNCTION(type, name, arguments) type(*name) arguments = nullptr;
#define PENSTOCK_DEFINE_OBJECT(type, name, symbol) type* name = nullptr;
PENSTOCK_PYTHON_FUNCTIONS(PENSTOCK_DEFINE_FUNCTION)
PENSTOCK_PYTHON_OBJECTS(PENSTOCK_DEFINE_OBJECT)

size_t object_head = 0;

bool read_object_head() {
  Reference builtins(PyImport_ImportModule("builtins"));
  Reference type(builtins ? PyObject_GetAttrString(builtins.get(), "object") : nullptr);
  Reference size(type ? PyObject_GetAttrString(type.get(), "__basicsize__") : nullptr);
  if (!size) return false;
  object_head = static_cast<size_t>(PyLong_AsLongLong(size.get()));
  return true;
}

std::string load_python(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) return std::string("Python cannot be loaded: ") + dlerror();
  std::string missing;
  auto find = [&](const char* name) {
    void* found = dlsym(handle, name);
    if (found == nullptr) missing += std::string(" ") + name;
    return found;
  };
#define PENSTOCK_FIND_FUNCTION(type, name, arguments) name = reinterpret_cast<type(*) arguments>(find(#name));
#define PENSTOCK_FIND_OBJECT(type, name, symbol) name = static_cast<type*>(find(#symbol));
  PENSTOCK_PYTHON_FUNCTIONS(PENSTOCK_FIND_FUNCTION)
  PENSTOCK_PYTHON_OBJECTS(PENSTOCK_FIND_OBJECT)
  return missing.empty() ? "" : "'" + library + "' is no Python that is known here: it lacks" + missing;
}

}  // namespace penstock
