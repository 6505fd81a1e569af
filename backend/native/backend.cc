// The backend's entry points, which Triton looks up in this library.

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "answering.h"
#include "in_flight.h"
#include "interpreter.h"
#include "lifeline.h"
#include "request.h"
#include "triton.h"

using namespace penstock;

namespace {

constexpr uint32_t kMajor = 1, kMinor = 19;
constexpr const char* kModule = "penstock.serving.in_process";
constexpr const char* kPlaces = "/python.txt";
// Answers of at least this many bytes are sent by other threads. For smaller ones, waking a thread takes longer than sending them.
constexpr uint64_t kWorthThreads = 1 << 18;
// If an execution begins within this many nanoseconds after the previous one returned, its requests have waited in Triton's queue.
constexpr uint64_t kBackToBack = 100'000;

#define RETURN_IF_ERROR(call) \
  if (TRITONSERVER_Error* error = (call)) return error

TRITONSERVER_Error* failure(const std::string& message) {
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, message.c_str());
}

uint64_t now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

// Returns a message's JSON, and deletes the message.
TRITONSERVER_Error* take_json(TRITONSERVER_Message* message, std::string* json) {
  const char* base = nullptr;
  size_t size = 0;
  TRITONSERVER_Error* error = TRITONSERVER_MessageSerializeToJson(message, &base, &size);
  if (error == nullptr) json->assign(base, size);
  take_error(TRITONSERVER_MessageDelete(message));
  return error;
}

// Calls a function of Penstock's Python module; returns nullptr with a Python exception set if it fails.
template <typename... Arguments>
Reference call(const char* name, const char* format, Arguments... arguments) {
  Reference module(PyImport_ImportModule(kModule));
  return Reference(module ? PyObject_CallMethod(module.get(), name, format, arguments...) : nullptr);
}

TRITONSERVER_Error* check_version() {
  uint32_t major = 0, minor = 0;
  RETURN_IF_ERROR(TRITONBACKEND_ApiVersion(&major, &minor));
  if (major == kMajor && minor >= kMinor) return nullptr;
  return failure(
      "this Triton has version " + std::to_string(major) + "." + std::to_string(minor) + " of the interface for backends, and penstock needs " +
      std::to_string(kMajor) + "." + std::to_string(kMinor) + " or a later 1.x: use Triton 2.51 or later, or `penstock serve --backend stub`");
}

// The configuration of a model, the path of its folder, and its version.
struct ModelPlace {
  std::string config, folder;
  long long version = 0;
};

TRITONSERVER_Error* read_place(TRITONBACKEND_Model* model, ModelPlace* place) {
  TRITONSERVER_Message* message = nullptr;
  RETURN_IF_ERROR(TRITONBACKEND_ModelConfig(model, 1, &message));
  RETURN_IF_ERROR(take_json(message, &place->config));
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char* location = nullptr;
  RETURN_IF_ERROR(TRITONBACKEND_ModelRepository(model, &type, &location));
  place->folder = location;
  uint64_t version = 0;
  RETURN_IF_ERROR(TRITONBACKEND_ModelVersion(model, &version));
  place->version = static_cast<long long>(version);
  return nullptr;
}

// An instance of a model.
struct Instance {
  PyObject* object = nullptr;
  bool batched = false;
  Line line;
  BatchesInFlight in_flight;
  uint64_t returned = 0;  // when its last execution returned to Triton
};

// One execution of an instance, that is, of one batch of requests; deletes itself at its end.
class Execution {
 public:
  Execution(TRITONBACKEND_ModelInstance* instance, Instance* state) : instance_(instance), state_(state), begin_(now()) {}

  // Hands the requests to Python, and sends their answers, before or after returning. If it returns an error, no request was handed over,
  // and Triton still owns all of them.
  TRITONSERVER_Error* run(TRITONBACKEND_Request** requests, uint32_t count) {
    Instance* state = state_;
    if (!begin(requests, count)) {
      TRITONSERVER_Error* error = failure(error_);
      delete this;
      return error;
    }
    if (pending_) {
      state->in_flight.add([this] { finish_computing(); });
    } else {
      respond();
    }
    state->returned = now();
    return nullptr;
  }

 private:
  // Hands the requests to Python, which either answers them or leaves the rest of the computation to `finish_computing`.
  bool begin(TRITONBACKEND_Request** requests, uint32_t count) {
    // If no other execution is in flight or follows soon, the calling thread computes everything: waking another thread takes longer.
    const bool more_follow = !state_->in_flight.is_empty() || begin_ - state_->returned < kBackToBack;
    Held held;
    for (uint32_t index = 0; index < count; ++index) {
      Request* request = new_request(requests[index]);
      if (request == nullptr) {
        error_ = take_error();
        give_back();
        return false;
      }
      requests_.push_back(request);
    }
    Reference list(PyList_New(count));
    for (uint32_t index = 0; index < count; ++index) {
      Py_IncRef(object_of(requests_[index]));
      PyList_SetItem(list.get(), index, object_of(requests_[index]));
    }
    Reference rest(PyObject_CallMethod(state_->object, "execute", "(Oi)", list.get(), static_cast<int>(more_follow)));
    if (rest && rest.get() != none) {
      pending_ = std::move(rest);
      return true;
    }
    if (!rest) error_ = take_error();
    for (Request* request : requests_) settle(request);
    return true;
  }

  // Runs on the instance's thread that completes batches. Afterwards, this object may be destroyed.
  void finish_computing() {
    {
      Held held;
      Reference done(PyObject_CallMethod(pending_.get(), "finish", nullptr));
      if (!done) error_ = take_error();
      // The Python object of the pending computation refers to the answers' memory.
      pending_.reset(nullptr);
      for (Request* request : requests_) settle(request);
    }
    respond();
  }

  // Sends the answers, on this thread or on others. Afterwards, this object may be destroyed.
  void respond() {
    computed_ = now();
    left_ = requests_.size();
    uint64_t bytes = 0;
    for (const Request* request : requests_) bytes += answer_bytes(request);
    in_line_ = bytes >= kWorthThreads || !state_->line.is_empty();
    if (in_line_) {
      state_->line.join([this] { begin_answers(); });
    } else {
      answer(0, requests_.size());
    }
  }

  // Divides the requests among threads, which send the answers. After the last answer, this object may be destroyed.
  void begin_answers() {
    std::vector<size_t> ends;
    uint64_t bytes = 0;
    for (size_t index = 0; index < requests_.size(); ++index) {
      bytes += answer_bytes(requests_[index]);
      if (bytes < kWorthThreads && index + 1 < requests_.size()) continue;
      ends.push_back(index + 1);
      bytes = 0;
    }
    size_t begin = 0;
    for (const size_t end : ends) {
      do_soon([this, begin, end] { answer(begin, end); });
      begin = end;
    }
  }

  // Answers the requests from `begin` up to `end`, exclusive, without holding the GIL. After the last answer of the batch, this object
  // may be destroyed.
  void answer(size_t begin, size_t end) {
    for (size_t index = begin; index < end; ++index) {
      Request* request = requests_[index];
      complete(request, error_, [this, request] {
        report(request);
        if (--left_ == 0) finish();
      });
    }
  }

  void report(Request* request) {
    samples_ += state_->batched ? count_samples(request->request) : 1;
    take_error(TRITONBACKEND_ModelInstanceReportStatistics(
        instance_, request->request, !request->failed, begin_, begin_, computed_, now()));
  }

  // Called when all requests are answered. Releases them; a request to which Python still refers is released when Python drops it.
  void finish() {
    take_error(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance_, samples_, begin_, begin_, computed_, now()));
    if (in_line_) state_->line.answered();
    std::vector<Released> released;
    {
      Held held;
      for (Request* request : requests_) let_go(request, &released);
    }
    for (Released& request : released) request.release();
    if (in_line_) state_->line.leave();
    delete this;
  }

  void give_back() {
    for (Request* request : requests_) {
      take_error(TRITONBACKEND_ResponseFactoryDelete(request->factory));
      request->request = nullptr;
      Py_DecRef(object_of(request));
    }
    requests_.clear();
  }

  TRITONBACKEND_ModelInstance* instance_;
  Instance* state_;
  uint64_t begin_, computed_ = 0;
  std::vector<Request*> requests_;
  Reference pending_;  // the rest of the computation, if another thread completes it
  std::string error_;
  bool in_line_ = false;
  std::atomic<size_t> left_{0};
  std::atomic<uint64_t> samples_{0};
};

}  // namespace

extern "C" {

#define ENTRY __attribute__((visibility("default"))) TRITONSERVER_Error*

ENTRY TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  RETURN_IF_ERROR(check_version());
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char *folder = nullptr, *name = nullptr;
  RETURN_IF_ERROR(TRITONBACKEND_BackendArtifacts(backend, &type, &folder));
  RETURN_IF_ERROR(TRITONBACKEND_BackendName(backend, &name));
  TRITONSERVER_Message* message = nullptr;
  std::string config, library, executable;
  RETURN_IF_ERROR(TRITONBACKEND_BackendConfig(backend, &message));
  // The server owns the message that holds this string.
  const char* base = nullptr;
  size_t size = 0;
  RETURN_IF_ERROR(TRITONSERVER_MessageSerializeToJson(message, &base, &size));
  config.assign(base, size);
  const std::string places = std::string(folder) + kPlaces;
  std::ifstream file(places);
  if (!std::getline(file, library) || !std::getline(file, executable)) {
    return failure("'" + places + "' does not tell which Python to host: a line for its shared library, and one for its program");
  }
  std::string problem = start_python(library, executable);
  if (problem.empty()) {
    Held held;
    if (!prepare_request_types() || !call("start", "(ss)", name, config.c_str())) problem = take_error();
  }
  if (!problem.empty()) return failure(problem);
  listen_to_supervisor();
  return nullptr;
}

ENTRY TRITONBACKEND_Finalize(TRITONBACKEND_Backend*) {
  end_answering_threads();
  end_python();
  return nullptr;
}

ENTRY TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  TRITONSERVER_Server* server = nullptr;
  RETURN_IF_ERROR(TRITONBACKEND_ModelServer(model, &server));
  {
    Held held;
    Reference told = call("reach_server", "(K)", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(server)));
    if (!told) return failure(take_error());
  }
  bool complete = false;
  RETURN_IF_ERROR(TRITONBACKEND_ModelAutoCompleteConfig(model, &complete));
  if (!complete) return nullptr;
  ModelPlace place;
  RETURN_IF_ERROR(read_place(model, &place));
  std::string completed;
  {
    Held held;
    Reference told = call("complete", "(ssL)", place.config.c_str(), place.folder.c_str(), place.version);
    if (!told) return failure(take_error());
    completed = bytes_of(told.get());
  }
  TRITONSERVER_Message* message = nullptr;
  RETURN_IF_ERROR(TRITONSERVER_MessageNewFromSerializedJson(&message, completed.data(), completed.size()));
  TRITONSERVER_Error* error = TRITONBACKEND_ModelSetConfig(model, 1, message);
  take_error(TRITONSERVER_MessageDelete(message));
  return error;
}

ENTRY TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  TRITONBACKEND_Model* model = nullptr;
  RETURN_IF_ERROR(TRITONBACKEND_ModelInstanceModel(instance, &model));
  ModelPlace place;
  RETURN_IF_ERROR(read_place(model, &place));
  const char* name = nullptr;
  RETURN_IF_ERROR(TRITONBACKEND_ModelInstanceName(instance, &name));
  TRITONSERVER_InstanceGroupKind kind{};
  RETURN_IF_ERROR(TRITONBACKEND_ModelInstanceKind(instance, &kind));
  int32_t device = -1;
  if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU) RETURN_IF_ERROR(TRITONBACKEND_ModelInstanceDeviceId(instance, &device));
  auto* state = new Instance;
  {
    Held held;
    Reference made =
        call("load", "(ssLsi)", place.config.c_str(), place.folder.c_str(), place.version, name, static_cast<int>(device));
    Reference batched(made ? PyObject_GetAttrString(made.get(), "batched") : nullptr);
    if (!batched) {
      delete state;
      return failure(take_error());
    }
    state->batched = PyObject_IsTrue(batched.get()) == 1;
    state->object = made.release();
  }
  return TRITONBACKEND_ModelInstanceSetState(instance, state);
}

ENTRY TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) {
  void* state = nullptr;
  RETURN_IF_ERROR(TRITONBACKEND_ModelInstanceState(instance, &state));
  auto* own = static_cast<Instance*>(state);
  if (own == nullptr) return nullptr;  // the model was never loaded
  own->in_flight.wait_until_empty();
  own->line.wait_until_empty();
  std::string problem;
  {
    Held held;
    Reference closed(PyObject_CallMethod(own->object, "close", nullptr));
    if (!closed) problem = take_error();
    Py_DecRef(own->object);
    // The last instance releases the resources that instances share.
    Reference tidied = call("tidy", nullptr);
    if (!tidied) problem = take_error();
  }
  delete own;
  return problem.empty() ? nullptr : failure(problem);
}

ENTRY TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests, const uint32_t count) {
  void* state = nullptr;
  RETURN_IF_ERROR(TRITONBACKEND_ModelInstanceState(instance, &state));
  return (new Execution(instance, static_cast<Instance*>(state)))->run(requests, count);
}

}  // extern "C"
