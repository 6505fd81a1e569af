// Calls of kernels from Python: callable objects that find the compiled kernel for the types of their arguments, and call it.
//
// Only functions of CPython's stable interface are used; the process that loads this library provides them, and they are declared
// here. NumPy's arrays and scalars are read by their binary layout. So one library serves every version of Python.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

extern "C" {

struct PyObject;
struct PyThreadState;
using PyFastFunction = PyObject *(*)(PyObject *self, PyObject *const *arguments, intptr_t count);
struct PyMethodDef {
  const char *name;
  PyFastFunction function;
  int flags;
  const char *doc;
};
enum { METH_FASTCALL = 0x0080 };

PyObject *PyCFunction_NewEx(PyMethodDef *method, PyObject *self, PyObject *module);
PyObject *PyCapsule_New(void *pointer, const char *name, void (*destroy)(PyObject *));
void *PyCapsule_GetPointer(PyObject *capsule, const char *name);
PyThreadState *PyEval_SaveThread();
void PyEval_RestoreThread(PyThreadState *state);
void Py_IncRef(PyObject *object);
void Py_DecRef(PyObject *object);
PyObject *PyTuple_New(intptr_t size);
intptr_t PyTuple_Size(PyObject *tuple);
PyObject *PyTuple_GetItem(PyObject *tuple, intptr_t index);
int PyTuple_SetItem(PyObject *tuple, intptr_t index, PyObject *item);
PyObject *PyObject_Call(PyObject *function, PyObject *arguments, PyObject *keywords);
long long PyLong_AsLongLong(PyObject *number);
unsigned long long PyLong_AsUnsignedLongLong(PyObject *number);
PyObject *PyLong_FromLongLong(long long value);
PyObject *PyLong_FromUnsignedLongLong(unsigned long long value);
double PyFloat_AsDouble(PyObject *number);
PyObject *PyFloat_FromDouble(double value);
PyObject *PyErr_Occurred();
void PyErr_Clear();
}

namespace {

// How arguments are recognized, and how results are made: `penstock/kernels/cpu/calls.py` writes programs of these operations.
enum Operation : int64_t {
  // A number of Python's, as int64, uint64 or float64.
  WHOLE,
  NATURAL,
  REAL,
  TRUTH,
  NOTHING,
  // A NumPy scalar. Operands: its type, and the size of its value.
  SCALAR,
  // An array. Operands: number of the elements' type, that type itself or 0, element size, rank, order (0: C, 1: Fortran, 2: any), whether
  // it is read-only.
  ARRAY,
  // A tuple. Operands: its type, and the number of its items, whose operations follow.
  TUPLE,
  // For results only. Operands: the size of the value; for arrays, a function that makes one from a shape, the element size, the rank.
  WHOLE_OF,
  NATURAL_OF,
  REAL_OF,
  ARRAY_OF,
};

enum { MAX_WORDS = 1024 };

// The status of a kernel that returns None instead of a result.
enum { NO_RESULT = -2 };
// A status of this library, for `calls.py`: a result is a view of an argument.
constexpr int64_t IS_VIEW = 1 << 30;

// What depends on the version of Python, and Python's types and constants; set before any call.
struct Interpreter {
  int64_t head;  // bytes of an object's header; its last word is the type
  PyObject *whole, *real, *truth, *nothing, *yes, *no, *array, *tuple;
} python;

PyObject *type_of(PyObject *object) {
  return *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + python.head - sizeof(void *));
}

template <typename T>
T field(PyObject *object, int64_t offset) {
  T value;
  std::memcpy(&value, reinterpret_cast<char *>(object) + python.head + offset, sizeof value);
  return value;
}

// Offsets after the object's header in NumPy's `PyArrayObject_fields` and `PyArray_Descr`, and flags of arrays.
enum { DATA = 0, RANK = 8, SHAPE = 16, STRIDES = 24, ELEMENTS = 40, FLAGS = 48 };
enum { ENDIANNESS = 10, NUMBER = 12 };
enum { IN_C_ORDER = 1, IN_FORTRAN_ORDER = 2, ALIGNED = 0x100, WRITABLE = 0x400 };

using Function = int32_t (*)(const int64_t *arguments, int64_t *results, void **error);
using Release = void (*)(void *memory);

struct Entry {
  std::vector<int64_t> arguments, results;
  int64_t count;  // of arguments
  Function function;
  Release release;
  bool keeps_gil;
  PyObject *compiled;  // called with the arguments instead, if it is not null
  Entry *next;
};

struct Kernel {
  std::atomic<Entry *> entries{nullptr};
  PyObject *miss, *fail;
};

// Checks arguments against a program, and packs their values into words.
struct Packer {
  const int64_t *program;
  int64_t *words;

  bool take(PyObject *object) {
    PyObject *type = type_of(object);
    switch (*program++) {
      case WHOLE: {
        if (type != python.whole) return false;
        long long value = PyLong_AsLongLong(object);
        if (value == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
        *words++ = value;
        return true;
      }
      case NATURAL: {
        if (type != python.whole) return false;
        unsigned long long value = PyLong_AsUnsignedLongLong(object);
        // Numbers that fit int64 are WHOLE.
        if (static_cast<long long>(value) >= 0) return false;
        if (value == ~0ull && PyErr_Occurred()) return PyErr_Clear(), false;
        *words++ = static_cast<int64_t>(value);
        return true;
      }
      case REAL: {
        if (type != python.real) return false;
        double value = PyFloat_AsDouble(object);
        std::memcpy(words++, &value, sizeof value);
        return true;
      }
      case TRUTH:
        if (type != python.truth) return false;
        *words++ = object == python.yes;
        return true;
      case NOTHING:
        if (object != python.nothing) return false;
        *words++ = 0;
        return true;
      case SCALAR: {
        int64_t wanted = *program++, size = *program++;
        if (reinterpret_cast<int64_t>(type) != wanted) return false;
        *words = 0;
        std::memcpy(words++, reinterpret_cast<char *>(object) + python.head, size);
        return true;
      }
      case ARRAY:
        if (type != python.array) return false;
        return take_array(object);
      default:
        return take_tuple(object, type);
    }
  }

  bool take_array(PyObject *object) {
    int64_t number = program[0], kind = program[1], size = program[2], rank = program[3], order = program[4];
    bool read_only = program[5];
    program += 6;
    int flags = field<int>(object, FLAGS);
    PyObject *elements = field<PyObject *>(object, ELEMENTS);
    if (field<int>(object, RANK) != rank || !(flags & ALIGNED) || !(flags & WRITABLE) != read_only) return false;
    if (kind) {
      if (reinterpret_cast<int64_t>(elements) != kind) return false;
    } else {
      char byte_order = field<char>(elements, ENDIANNESS);
      if (field<int>(elements, NUMBER) != number || (byte_order != '=' && byte_order != '|')) return false;
    }
    if (order != (flags & IN_C_ORDER ? 0 : flags & IN_FORTRAN_ORDER ? 1 : 2)) return false;
    const int64_t *shape = field<const int64_t *>(object, SHAPE), *strides = field<const int64_t *>(object, STRIDES);
    int64_t volume = 1;
    for (int64_t axis = 0; axis < rank; ++axis) volume *= shape[axis];
    words[0] = words[1] = 0;  // numba's meminfo and parent, not needed: the caller holds the array
    words[2] = volume;
    words[3] = size;
    words[4] = field<int64_t>(object, DATA);
    words += 5;
    for (int64_t axis = 0; axis < rank; ++axis) *words++ = shape[axis];
    for (int64_t axis = 0; axis < rank; ++axis) *words++ = strides[axis];
    return true;
  }

  bool take_tuple(PyObject *object, PyObject *type) {
    int64_t wanted = *program++, count = *program++;
    if (reinterpret_cast<int64_t>(type) != wanted || PyTuple_Size(object) != count) return false;
    for (int64_t index = 0; index < count; ++index)
      if (!take(PyTuple_GetItem(object, index))) return false;
    return true;
  }
};

// Makes Python objects from the words of results. Once something has failed, it only releases the memory of the rest.
struct Maker {
  const int64_t *program, *words;
  Release release;
  PyObject *fail;  // raises an error for a status
  bool failed;

  PyObject *make() {
    switch (*program++) {
      case NOTHING:
        ++words;
        if (failed) return nullptr;
        Py_IncRef(python.nothing);
        return python.nothing;
      case TRUTH: {
        bool value = *reinterpret_cast<const uint8_t *>(words++) & 1;
        if (failed) return nullptr;
        PyObject *object = value ? python.yes : python.no;
        Py_IncRef(object);
        return object;
      }
      case WHOLE_OF: {
        int64_t bits = 64 - 8 * *program++;
        uint64_t word = static_cast<uint64_t>(*words++);
        return checked(failed ? nullptr : PyLong_FromLongLong(static_cast<int64_t>(word << bits) >> bits));
      }
      case NATURAL_OF: {
        int64_t bits = 64 - 8 * *program++;
        uint64_t word = static_cast<uint64_t>(*words++);
        return checked(failed ? nullptr : PyLong_FromUnsignedLongLong(word << bits >> bits));
      }
      case REAL_OF: {
        double value;
        if (*program++ == sizeof(float)) {
          float single;
          std::memcpy(&single, words++, sizeof single);
          value = single;
        } else {
          std::memcpy(&value, words++, sizeof value);
        }
        return checked(failed ? nullptr : PyFloat_FromDouble(value));
      }
      case ARRAY_OF:
        return make_array();
      default:
        return make_tuple();
    }
  }

  PyObject *checked(PyObject *object) {
    failed = failed || !object;
    return object;
  }

  PyObject *make_tuple() {
    int64_t type = *program++, count = *program++;
    PyObject *tuple = failed ? nullptr : checked(PyTuple_New(count));
    for (int64_t index = 0; index < count; ++index) {
      PyObject *item = make();
      if (item && tuple)
        PyTuple_SetItem(tuple, index, item);
      else if (item)
        Py_DecRef(item);
    }
    if (failed) {
      if (tuple) Py_DecRef(tuple);
      return nullptr;
    }
    if (type == reinterpret_cast<int64_t>(python.tuple)) return tuple;
    PyObject *named = checked(PyObject_Call(reinterpret_cast<PyObject *>(type), tuple, nullptr));
    Py_DecRef(tuple);
    return named;
  }

  // Returns a copy, so that Python owns its memory. Results that are views of arguments are refused: a copy would not be a view.
  PyObject *make_array() {
    PyObject *maker = reinterpret_cast<PyObject *>(program[0]);
    int64_t size = program[1], rank = program[2];
    program += 3;
    void *memory = reinterpret_cast<void *>(words[0]);
    int64_t volume = words[2];
    const void *data = reinterpret_cast<const void *>(words[4]);
    const int64_t *shape = words + 5;
    words += 5 + 2 * rank;
    if (!memory && volume && !failed) {
      const int64_t failure[] = {IS_VIEW, 0};
      PyObject *raised = called_with(fail, failure, 2);
      if (raised) Py_DecRef(raised);
      failed = true;
    }
    PyObject *array = failed ? nullptr : checked(called_with(maker, shape, rank));
    if (array && volume) std::memcpy(field<void *>(array, DATA), data, volume * size);
    release(memory);
    return array;
  }

  static PyObject *called_with(PyObject *function, const int64_t *numbers, int64_t count) {
    PyObject *arguments = PyTuple_New(count);
    for (int64_t index = 0; arguments && index < count; ++index) {
      PyObject *number = PyLong_FromLongLong(numbers[index]);
      if (!number) {
        Py_DecRef(arguments);
        return nullptr;
      }
      PyTuple_SetItem(arguments, index, number);
    }
    PyObject *result = arguments ? PyObject_Call(function, arguments, nullptr) : nullptr;
    if (arguments) Py_DecRef(arguments);
    return result;
  }
};

PyObject *call_in_python(PyObject *function, PyObject *const *arguments, intptr_t count) {
  PyObject *given = PyTuple_New(count);
  if (!given) return nullptr;
  for (intptr_t index = 0; index < count; ++index) {
    Py_IncRef(arguments[index]);
    PyTuple_SetItem(given, index, arguments[index]);
  }
  PyObject *result = PyObject_Call(function, given, nullptr);
  Py_DecRef(given);
  return result;
}

PyObject *run(const Kernel &kernel, const Entry &entry, const int64_t *arguments) {
  int64_t results[MAX_WORDS];
  void *error = nullptr;
  int32_t status;
  if (entry.keeps_gil) {
    status = entry.function(arguments, results, &error);
  } else {
    PyThreadState *state = PyEval_SaveThread();
    status = entry.function(arguments, results, &error);
    PyEval_RestoreThread(state);
  }
  if (status == NO_RESULT) {
    Py_IncRef(python.nothing);
    return python.nothing;
  }
  if (status == 0) return Maker{entry.results.data(), results, entry.release, kernel.fail, false}.make();
  const int64_t failure[] = {status, reinterpret_cast<int64_t>(error)};
  PyObject *raised = Maker::called_with(kernel.fail, failure, 2);
  if (raised) Py_DecRef(raised);
  return nullptr;
}

const char CAPSULE[] = "penstock.kernel";

PyObject *call(PyObject *self, PyObject *const *arguments, intptr_t count) {
  auto *kernel = static_cast<Kernel *>(PyCapsule_GetPointer(self, CAPSULE));
  int64_t words[MAX_WORDS];
  for (Entry *entry = kernel->entries.load(std::memory_order_acquire); entry; entry = entry->next) {
    if (entry->count != count) continue;
    Packer packer{entry->arguments.data(), words};
    intptr_t taken = 0;
    while (taken < count && packer.take(arguments[taken])) ++taken;
    if (taken < count) continue;
    return entry->compiled ? call_in_python(entry->compiled, arguments, count) : run(*kernel, *entry, words);
  }
  return call_in_python(kernel->miss, arguments, count);
}

PyMethodDef method = {"kernel", call, METH_FASTCALL, nullptr};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// Sets the size of an object's header, and int, float, bool, None, True, False, numpy.ndarray and tuple, to which references are held.
void penstock_calls_begin(int64_t head, PyObject *const *objects) {
  PyObject **places[] = {&python.whole, &python.real, &python.truth, &python.nothing, &python.yes, &python.no, &python.array, &python.tuple};
  for (PyObject **place : places) Py_IncRef(*place = *objects++);
  python.head = head;
}

// Returns a function that calls a kernel. Until kernels are added, it calls `miss` with its arguments; on failure of a kernel, it calls
// `fail` with a status and an error.
PyObject *penstock_calls_create(PyObject *miss, PyObject *fail) {
  auto *kernel = new Kernel;
  Py_IncRef(kernel->miss = miss);
  Py_IncRef(kernel->fail = fail);
  PyObject *capsule = PyCapsule_New(kernel, CAPSULE, nullptr);
  if (!capsule) return nullptr;
  PyObject *function = PyCFunction_NewEx(&method, capsule, nullptr);
  Py_DecRef(capsule);
  return function;
}

// Adds the kernel for some types of arguments; `compiled`, unless None, is called instead of it. Returns -1 if there are too many words.
int32_t penstock_calls_add(PyObject *capsule, int64_t count, const int64_t *arguments, int64_t argument_length, const int64_t *results,
                           int64_t result_length, int64_t words, int64_t result_words, void *function, void *release, int32_t keeps_gil,
                           PyObject *compiled) {
  if (words > MAX_WORDS || result_words > MAX_WORDS) return -1;
  auto *kernel = static_cast<Kernel *>(PyCapsule_GetPointer(capsule, CAPSULE));
  auto *entry = new Entry{{arguments, arguments + argument_length},
                          {results, results + result_length},
                          count,
                          reinterpret_cast<Function>(function),
                          reinterpret_cast<Release>(release),
                          keeps_gil != 0,
                          compiled == python.nothing ? nullptr : compiled,
                          kernel->entries.load()};
  if (entry->compiled) Py_IncRef(entry->compiled);
  while (!kernel->entries.compare_exchange_weak(entry->next, entry)) {
  }
  return 0;
}
}
#pragma GCC visibility pop
