#include "interpreter.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>

namespace penstock {
namespace {

constexpr const char* kModule = "penstock.serving.in_process";

// The Python state of a Triton thread. It persists between calls, and with it the data that Python code stores for the thread.
class ThreadState {
 public:
  ~ThreadState() {
    if (state_ == nullptr) return;
    PyEval_RestoreThread(state_);
    PyGILState_Release(before_);
  }
  void enter() {
    if (state_ == nullptr) {
      before_ = PyGILState_Ensure();
    } else {
      PyEval_RestoreThread(state_);
    }
  }
  void leave() { state_ = PyEval_SaveThread(); }

 private:
  PyThreadState* state_ = nullptr;
  int before_ = 0;
};

thread_local ThreadState thread_state;

// Triton's wheel contains its own OpenSSL, liblzma and Zstandard. The loader finds their symbols before those of the libraries that
// Python's modules were linked with, so a module would mix functions of two versions, whose structures have different layouts. So each of
// these modules is loaded now, in such a way that symbols of its own libraries take precedence over Triton's.
std::string import_with_own_libraries() {
  Reference sys(PyImport_ImportModule("sys"));
  Reference usual(sys ? PyObject_CallMethod(sys.get(), "getdlopenflags", nullptr) : nullptr);
  if (!usual) return take_error();
  Reference own(PyObject_CallMethod(sys.get(), "setdlopenflags", "i", RTLD_NOW | RTLD_DEEPBIND));
  if (!own) return take_error();
  for (const char* name : {"_hashlib", "_ssl", "_lzma", "_zstd"}) {
    Reference module(PyImport_ImportModule(name));
    if (!module) PyErr_Clear();  // some builds of Python lack this module
  }
  Reference reset(PyObject_CallMethod(sys.get(), "setdlopenflags", "O", usual.get()));
  return reset ? "" : take_error();
}

// The thread that Python regards as its main thread: it starts the interpreter, waits, and ends it. Never destroyed: at the end of the
// process, threads may still be running.
class MainThread {
 public:
  std::string start(const std::string& library, const std::string& executable) {
    std::lock_guard<std::mutex> alone(in_turn_);
    if (users_ == 0) {
      std::promise<std::string> started;
      done_ = std::promise<void>();
      thread_ = std::thread([&] { run(library, executable, started); });
      const std::string failure = started.get_future().get();
      if (!failure.empty()) {
        thread_.join();
        return failure;
      }
      on_exit(exit_at_once, this);
    }
    ++users_;
    return "";
  }

  void end() {
    std::lock_guard<std::mutex> alone(in_turn_);
    if (users_ == 0 || --users_ > 0) return;
    done_.set_value();
    thread_.join();
  }

 private:
  // When Triton's exit timeout expires, Triton exits while threads of models still run, and its exit would destroy objects that they use.
  // So the process ends here, before any object is destroyed.
  static void exit_at_once(int status, void* self) {
    if (static_cast<MainThread*>(self)->users_ == 0) return;
    std::fflush(nullptr);
    _exit(status);
  }

  void run(const std::string& library, const std::string& executable, std::promise<std::string>& started) {
    std::string failure = load_python(library);
    if (failure.empty()) failure = initialize(executable);
    std::future<void> done = done_.get_future();
    started.set_value(failure);  // afterwards, the arguments may no longer exist
    if (!failure.empty()) return;
    done.wait();
    Held held;
    Reference module(PyImport_ImportModule(kModule));
    Reference told(module ? PyObject_CallMethod(module.get(), "end", nullptr) : nullptr);
    if (!told) take_error();
  }

  static std::string initialize(const std::string& executable) {
    // The library may be loaded twice, under two names of the backend, but there is one interpreter.
    if (!Py_IsInitialized()) {
      // Python keeps a pointer to the name, which is therefore never freed.
      Py_SetProgramName(Py_DecodeLocale(executable.c_str(), nullptr));
      *utf8_mode = 1;
      Py_InitializeEx(0);  // 0: no signal handlers, as the server has its own
      PyEval_SaveThread();
    }
    Held held;
    const std::string failure = import_with_own_libraries();
    if (!failure.empty()) return failure;
    Reference module(PyImport_ImportModule(kModule));
    return module ? "" : "'" + executable + "' cannot be served from: " + take_error();
  }

  std::mutex in_turn_;
  std::promise<void> done_;
  std::thread thread_;
  std::atomic<int> users_{0};
};

MainThread& main_thread() {
  static MainThread* only = new MainThread;
  return *only;
}

}  // namespace

std::string start_python(const std::string& library, const std::string& executable) {
  return main_thread().start(library, executable);
}

void end_python() { main_thread().end(); }

Held::Held() { thread_state.enter(); }
Held::~Held() { thread_state.leave(); }

std::string bytes_of(PyObject* value) {
  Py_ssize_t size = 0;
  const char* data = value == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(value, &size);
  if (data == nullptr) {
    PyErr_Clear();
    return "";
  }
  return std::string(data, static_cast<size_t>(size));
}

std::string take_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Reference own_type(type), own_value(value), own_trace(trace);
  if (type == nullptr) return "an unknown error";
  Reference name(PyObject_GetAttrString(type, "__name__"));
  Reference told(value == nullptr ? nullptr : PyObject_Str(value));
  std::string message = bytes_of(name.get()) + ": " + bytes_of(told.get());
  PyErr_Clear();
  return message;
}

}  // namespace penstock
