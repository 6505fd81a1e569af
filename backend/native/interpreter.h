// The one Python interpreter of the server's process.
#pragma once

#include <string>

#include "cpython.h"

namespace penstock {

// Starts the interpreter, once for the process; returns an error message, or "".
// Args: library: the interpreter's shared library; executable: the program whose environment it uses, e.g. .venv/bin/python.
std::string start_python(const std::string& library, const std::string& executable);

// Ends the interpreter; functions that Python code has registered for its exit are run. Call this as often as `start_python`.
void end_python();

// Holds Python's global interpreter lock (GIL) in a scope; only one thread at a time can hold it.
class Held {
 public:
  Held();
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
};

// Releases the GIL while this object exists. The thread must hold the GIL when it is constructed.
class Let {
 public:
  Let() : state_(PyEval_SaveThread()) {}
  ~Let() { PyEval_RestoreThread(state_); }
  Let(const Let&) = delete;
  Let& operator=(const Let&) = delete;

 private:
  PyThreadState* state_;
};

// Returns the text of Python's current exception, and clears it.
std::string take_error();

// Makes a Python string from UTF-8; invalid bytes are replaced by U+FFFD.
inline PyObject* text(const std::string& value) {
  return PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace");
}

// Returns the UTF-8 bytes of a Python string.
std::string bytes_of(PyObject* value);

}  // namespace penstock
