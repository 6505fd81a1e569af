// The one Python interpreter of the server's process.
#pragma once

#include <string>

#include "cpython.h"

namespace penstock {

// Starts the interpreter, once for the process; returns what went wrong, or nothing.
// Args: library: its shared library; executable: the program whose environment it is to have, e.g. .venv/bin/python.
std::string start_python(const std::string& library, const std::string& executable);

// Ends it in order: what Python code has registered for its end is run. Call it as often as it was started.
void end_python();

// Holds the interpreter for a scope: only one thread does at a time.
class Held {
 public:
  Held();
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
};

// Lets other threads have the interpreter for a scope, inside of one that holds it.
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

// A text for Python, whatever bytes it has.
inline PyObject* text(const std::string& value) {
  return PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace");
}

// The bytes of a text of Python's.
std::string bytes_of(PyObject* value);

}  // namespace penstock
