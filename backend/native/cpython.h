// The part of CPython's stable interface that we use, declared from its documentation, so that no Python headers are needed, and one
// library serves every Python from 3.11 on. The functions are looked up at run time, when the interpreter is chosen.
#pragma once

#include <cstddef>
#include <string>

namespace penstock {

using Py_ssize_t = ptrdiff_t;

struct PyTypeObject;
struct PyThreadState;
struct PyObject;  // its layout differs between builds of Python, above all free-threaded ones
using PyCFunction = PyObject* (*)(PyObject* self, PyObject* arguments);
struct PyMethodDef {
  const char* name;
  PyCFunction function;
  int flags;
  const char* doc;
};
struct PyType_Slot {
  int slot;
  void* function;
};
struct PyType_Spec {
  const char* name;
  int size;
  int item_size;
  unsigned flags;
  PyType_Slot* slots;
};
struct Py_buffer {
  void* data;
  PyObject* owner;
  Py_ssize_t size, item_size;
  int readonly, rank;
  char* format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void* internal;
};

constexpr int METH_VARARGS = 1, METH_NOARGS = 4, METH_O = 8;
constexpr int Py_bf_getbuffer = 1, Py_tp_dealloc = 52, Py_tp_methods = 64;
constexpr unsigned Py_TPFLAGS_DEFAULT = 1u << 18;
constexpr int PyBUF_SIMPLE = 0;

// For each function, a pointer of the same name: (type, name, arguments).
#define PENSTOCK_PYTHON_FUNCTIONS(F)                                                  \
  F(wchar_t*, Py_DecodeLocale, (const char*, size_t*))                                \
  F(void, Py_SetProgramName, (const wchar_t*))                                        \
  F(void, Py_InitializeEx, (int))                                                     \
  F(int, Py_IsInitialized, ())                                                        \
  F(PyThreadState*, PyEval_SaveThread, ())                                            \
  F(void, PyEval_RestoreThread, (PyThreadState*))                                     \
  F(int, PyGILState_Ensure, ())                                                       \
  F(void, PyGILState_Release, (int))                                                  \
  F(void, Py_IncRef, (PyObject*))                                                     \
  F(void, Py_DecRef, (PyObject*))                                                     \
  F(PyObject*, PyImport_ImportModule, (const char*))                                  \
  F(PyObject*, PyType_FromSpec, (PyType_Spec*))                                       \
  F(PyObject*, PyType_GenericAlloc, (PyTypeObject*, Py_ssize_t))                      \
  F(PyObject*, PyObject_Type, (PyObject*))                                            \
  F(void, PyObject_Free, (void*))                                                     \
  F(PyObject*, PyObject_GetAttrString, (PyObject*, const char*))                      \
  F(PyObject*, PyObject_CallMethod, (PyObject*, const char*, const char*, ...))       \
  F(PyObject*, PyObject_Str, (PyObject*))                                             \
  F(int, PyObject_IsTrue, (PyObject*))                                                \
  F(int, PyArg_ParseTuple, (PyObject*, const char*, ...))                             \
  F(PyObject*, Py_BuildValue, (const char*, ...))                                     \
  F(int, PyObject_GetBuffer, (PyObject*, Py_buffer*, int))                            \
  F(int, PyBuffer_FillInfo, (Py_buffer*, PyObject*, void*, Py_ssize_t, int, int))     \
  F(void, PyBuffer_Release, (Py_buffer*))                                             \
  F(void, PyErr_Fetch, (PyObject**, PyObject**, PyObject**))                          \
  F(void, PyErr_NormalizeException, (PyObject**, PyObject**, PyObject**))             \
  F(void, PyErr_SetString, (PyObject*, const char*))                                  \
  F(void, PyErr_Clear, ())                                                            \
  F(PyObject*, PyErr_Occurred, ())                                                    \
  F(PyObject*, PyList_New, (Py_ssize_t))                                              \
  F(Py_ssize_t, PyList_Size, (PyObject*))                                             \
  F(PyObject*, PyList_GetItem, (PyObject*, Py_ssize_t))                               \
  F(int, PyList_SetItem, (PyObject*, Py_ssize_t, PyObject*))                          \
  F(PyObject*, PyTuple_New, (Py_ssize_t))                                             \
  F(Py_ssize_t, PyTuple_Size, (PyObject*))                                            \
  F(PyObject*, PyTuple_GetItem, (PyObject*, Py_ssize_t))                              \
  F(int, PyTuple_SetItem, (PyObject*, Py_ssize_t, PyObject*))                         \
  F(PyObject*, PyDict_New, ())                                                        \
  F(int, PyDict_SetItem, (PyObject*, PyObject*, PyObject*))                           \
  F(PyObject*, PyUnicode_DecodeUTF8, (const char*, Py_ssize_t, const char*))          \
  F(const char*, PyUnicode_AsUTF8AndSize, (PyObject*, Py_ssize_t*))                   \
  F(PyObject*, PyLong_FromLongLong, (long long))                                      \
  F(long long, PyLong_AsLongLong, (PyObject*))                                        \
  F(PyObject*, PyFloat_FromDouble, (double))                                          \
  F(PyObject*, PyBool_FromLong, (long))

// CPython's global objects: (name here, name in the library).
#define PENSTOCK_PYTHON_OBJECTS(F)                  \
  F(PyObject, none, _Py_NoneStruct)                 \
  F(PyObject*, runtime_error, PyExc_RuntimeError)   \
  F(PyObject*, buffer_error, PyExc_BufferError)     \
  F(int, utf8_mode, Py_UTF8Mode)

#define PENSTOCK_DECLARE_FUNCTION(type, name, arguments) extern type(*name) arguments;
#define PENSTOCK_DECLARE_OBJECT(type, name, symbol) extern type* name;
PENSTOCK_PYTHON_FUNCTIONS(PENSTOCK_DECLARE_FUNCTION)
PENSTOCK_PYTHON_OBJECTS(PENSTOCK_DECLARE_OBJECT)
#undef PENSTOCK_DECLARE_FUNCTION
#undef PENSTOCK_DECLARE_OBJECT

// Loads an interpreter's shared library so that Python's extension modules can use its symbols; returns an error message, or "".
std::string load_python(const std::string& library);

// Owns a reference to a Python object and releases it at the end of the scope. The caller must hold the GIL.
class Reference {
 public:
  Reference() = default;
  explicit Reference(PyObject* owned) : object_(owned) {}
  Reference(Reference&& other) noexcept : object_(other.release()) {}
  Reference& operator=(Reference&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Reference() { reset(nullptr); }

  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  PyObject* release() {
    PyObject* given = object_;
    object_ = nullptr;
    return given;
  }
  void reset(PyObject* owned) {
    PyObject* before = object_;
    object_ = owned;
    if (before != nullptr) Py_DecRef(before);
  }

 private:
  PyObject* object_ = nullptr;
};

// The size in bytes of an object's header, after which the data of its type begins; set once `read_object_head` has returned true.
extern size_t object_head;

// Sets `object_head`; returns false with a Python exception set. The caller must hold the GIL.
bool read_object_head();

// Returns the data that follows the header of an object of one of our types.
template <typename Added>
Added* added_to(PyObject* object) {
  return object == nullptr ? nullptr : reinterpret_cast<Added*>(reinterpret_cast<char*>(object) + object_head);
}

// Returns the object whose data, after its header, is at this address.
inline PyObject* object_of(void* added) { return reinterpret_cast<PyObject*>(static_cast<char*>(added) - object_head); }

// Makes an object of one of our types; returns the data that follows its header, all zeros, or nullptr with a Python exception set.
template <typename Added>
Added* new_object(PyTypeObject* type) {
  return added_to<Added>(PyType_GenericAlloc(type, 0));
}

// Frees an object of one of our types, and releases its reference to the type.
inline void free_object(PyObject* object) {
  Reference type(PyObject_Type(object));
  PyObject_Free(object);
  Py_DecRef(type.get());
}

}  // namespace penstock
