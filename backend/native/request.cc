#include "request.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "answering.h"
#include "cuda.h"
#include "interpreter.h"

namespace penstock {

std::string take_error(TRITONSERVER_Error* error) {
  if (error == nullptr) return "";
  std::string message = TRITONSERVER_ErrorMessage(error);
  TRITONSERVER_ErrorDelete(error);
  return message;
}

namespace {

// Returns true if Triton reported no error; otherwise sets a Python exception and returns false.
bool succeeded(TRITONSERVER_Error* error) {
  if (error == nullptr) return true;
  PyErr_SetString(*runtime_error, take_error(error).c_str());
  return false;
}

}  // namespace

// -- answers ------------------------------------------------------------------------------------------------------------

struct Output {
  std::string name;
  int data_type = 0;
  std::vector<int64_t> shape;
  const void* address = nullptr;
  uint64_t size = 0;
  int64_t device = -1;  // the GPU in whose memory the output is, or -1 for the host
  Py_buffer on_host{};  // on the host, keeps the memory alive; on a GPU, `on_gpu` does
  PyObject* on_gpu = nullptr;

  void let_go() {
    if (on_host.owner != nullptr) PyBuffer_Release(&on_host);
    if (on_gpu != nullptr) Py_DecRef(on_gpu);
    on_gpu = nullptr;
  }
};

// A parameter of a response.
struct Parameter {
  std::string name;
  int type = TRITONSERVER_PARAMETER_STRING;
  std::string text;
  int64_t whole = 0;  // the value of an integer or boolean
  double real = 0;

  TRITONSERVER_Error* set(TRITONBACKEND_Response* response) const {
    switch (type) {
      case TRITONSERVER_PARAMETER_INT:
        return TRITONBACKEND_ResponseSetIntParameter(response, name.c_str(), whole);
      case TRITONSERVER_PARAMETER_BOOL:
        return TRITONBACKEND_ResponseSetBoolParameter(response, name.c_str(), whole != 0);
      case TRITONSERVER_PARAMETER_DOUBLE:
        if (TRITONBACKEND_ResponseSetDoubleParameter != nullptr) {
          return TRITONBACKEND_ResponseSetDoubleParameter(response, name.c_str(), real);
        }
        break;  // older servers have no parameters of this type: send it as text
    }
    return TRITONBACKEND_ResponseSetStringParameter(response, name.c_str(), text.c_str());
  }
};

// An answer, or an error.
struct Answer {
  std::vector<Output> outputs;
  std::vector<Parameter> parameters;
  int code = -1;  // the code of the error; negative: no error
  std::string message;
  Reference kept;  // keeps the response alive from whose memory some outputs are copied

  ~Answer() {
    for (Output& output : outputs) output.let_go();
  }
};

// Triton's memory for an output.
struct Place {
  std::string name;
  std::vector<int64_t> shape;
  void* address = nullptr;
  TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
  int64_t device = 0;
};

// A response created before its outputs are known, so that the model can write into its memory. Python objects for that memory keep it
// alive.
struct Response {
  TRITONBACKEND_Response* response;
  std::vector<Place>* places;
  std::atomic<int64_t> lent;  // the number of Python objects that refer to its memory
};

namespace {

// The size in bytes of the pieces of an output, which several threads can copy.
constexpr size_t kPieceBytes = 2 << 20;

PyTypeObject* response_type = nullptr;

void response_dealloc(PyObject* object) {
  auto* self = added_to<Response>(object);
  if (self->response != nullptr) take_error(TRITONBACKEND_ResponseDelete(self->response));
  delete self->places;
  free_object(object);
}

// Reads the name and shape of an output; returns false with a Python exception set.
bool describe(Output* output, PyObject* name, PyObject* shape) {
  output->name = bytes_of(name);
  const Py_ssize_t rank = PyTuple_Size(shape);
  for (Py_ssize_t axis = 0; axis < rank; ++axis) output->shape.push_back(PyLong_AsLongLong(PyTuple_GetItem(shape, axis)));
  return PyErr_Occurred() == nullptr;
}

// Reads an output from the tuple (name, data type, shape, data), or, for an output on a GPU, (name, data type, shape, data, address, size,
// device); returns false with a Python exception set.
bool read_output(PyObject* given, Output* output) {
  PyObject *name = nullptr, *shape = nullptr, *data = nullptr;
  long long address = 0, size = 0, device = -1;
  if (!PyArg_ParseTuple(given, "OiOO|LLL", &name, &output->data_type, &shape, &data, &address, &size, &device)) return false;
  if (!describe(output, name, shape)) return false;
  if (device >= 0) {
    output->address = reinterpret_cast<const void*>(address);
    output->size = static_cast<uint64_t>(size);
    output->device = device;
    output->on_gpu = data;
    Py_IncRef(data);
    return true;
  }
  if (PyObject_GetBuffer(data, &output->on_host, PyBUF_SIMPLE) < 0) return false;
  output->address = output->on_host.data;
  output->size = static_cast<uint64_t>(output->on_host.size);
  return true;
}

void replace_answer(Request* self, Answer* answer) {
  delete self->answer;
  self->answer = answer;
  self->failed = answer != nullptr && answer->code >= 0;
}

TRITONSERVER_Error* failure(const std::string& problem) {
  return problem.empty() ? nullptr : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, problem.c_str());
}

// Asks Triton for the memory of an output: on the same GPU as the output, if Triton grants that.
TRITONSERVER_Error* ask(TRITONBACKEND_Response* response, const Output& output, Place* place) {
  TRITONBACKEND_Output* target = nullptr;
  const auto rank = static_cast<uint32_t>(output.shape.size());
  if (auto* error = TRITONBACKEND_ResponseOutput(response, &target, output.name.c_str(), output.data_type, output.shape.data(), rank)) {
    return error;
  }
  place->name = output.name;
  place->shape = output.shape;
  place->kind = output.device < 0 ? TRITONSERVER_MEMORY_CPU : TRITONSERVER_MEMORY_GPU;
  place->device = output.device < 0 ? 0 : output.device;
  return TRITONBACKEND_OutputBuffer(target, &place->address, output.size, &place->kind, &place->device);
}

const Place* place_of(const Response* response, const Output& output) {
  if (response == nullptr) return nullptr;
  for (const Place& place : *response->places) {
    if (place.name == output.name) return &place;
  }
  return nullptr;
}

// Keeps an error response out of Triton's response cache, which would later return it as a success. The cache rejects responses that have
// an output without memory.
void keep_from_cache(TRITONBACKEND_Response* refusal) {
  TRITONBACKEND_Output* target = nullptr;
  const int64_t shape = 1;
  take_error(TRITONBACKEND_ResponseOutput(refusal, &target, "refusal", TRITONSERVER_TYPE_UINT8, &shape, 1));
}

// A part of an output that has to be copied to Triton's memory.
struct Piece {
  char* target;
  const char* source;
  size_t size;
  int64_t device;  // the GPU whose memory is the source or the target, or -1
  bool to_ordinary_memory;

  std::string copy() const {
    if (device >= 0) return copy_with_gpu(target, source, size, device, to_ordinary_memory);
    std::memcpy(target, source, size);
    return "";
  }
};

// An answer that is being sent. Its methods may run without Python's lock (GIL).
class Delivery {
 public:
  Delivery(Request* request, const Answer& answer, uint32_t flags) : request_(request), response_(begun(request)), flags_(flags) {
    if (response_ == nullptr) lost_ = take_error(TRITONBACKEND_ResponseNewFromFactory(&response_, request->factory));
    if (lost_.empty()) refusal_ = prepare(answer);
    if (refusal_ != nullptr) pieces_.clear();
  }
  ~Delivery() {
    if (refusal_ != nullptr) TRITONSERVER_ErrorDelete(refusal_);
  }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  // The pieces that have to be copied before the answer is sent. Any thread may copy them.
  const std::vector<Piece>& pieces() const { return pieces_; }
  size_t size() const {
    size_t size = 0;
    for (const Piece& piece : pieces_) size += piece.size;
    return size;
  }

  void copy(const Piece& piece) {
    const std::string problem = piece.copy();
    if (problem.empty()) return;
    std::lock_guard<std::mutex> alone(alone_);
    if (refusal_ == nullptr) refusal_ = failure(problem);
  }

  // Sends the answer. Call this when each piece is copied or has failed. Returns false if the client gets an error.
  bool send() {
    if (lost_.empty()) {
      if (refusal_ != nullptr) keep_from_cache(response_);
      lost_ = take_error(TRITONBACKEND_ResponseSend(response_, flags_, refusal_));
      if (request_->response != nullptr) request_->response->response = nullptr;  // Triton owns it now
    }
    if (!lost_.empty()) take_error(TRITONSERVER_LogMessage(2, "penstock", 0, ("an answer is lost: " + lost_).c_str()));
    return refusal_ == nullptr && lost_.empty();
  }

 private:
  static TRITONBACKEND_Response* begun(const Request* request) { return request->response == nullptr ? nullptr : request->response->response; }

  TRITONSERVER_Error* prepare(const Answer& answer) {
    if (answer.code >= 0) return TRITONSERVER_ErrorNew(answer.code, answer.message.c_str());
    for (const Parameter& parameter : answer.parameters) {
      if (auto* error = parameter.set(response_)) return error;
    }
    for (const Output& output : answer.outputs) {
      Place place;
      if (const Place* reserved = place_of(request_->response, output)) {
        place = *reserved;
      } else if (auto* error = ask(response_, output, &place)) {
        return error;
      }
      if (output.size > 0 && output.address != place.address) add(output, place);
    }
    return nullptr;
  }

  void add(const Output& output, const Place& place) {
    const bool to_gpu = place.kind == TRITONSERVER_MEMORY_GPU;
    const int64_t device = output.device >= 0 ? output.device : to_gpu ? place.device : -1;
    for (size_t begin = 0; begin < output.size; begin += kPieceBytes) {
      pieces_.push_back({static_cast<char*>(place.address) + begin, static_cast<const char*>(output.address) + begin,
                         std::min<size_t>(kPieceBytes, output.size - begin), device, place.kind == TRITONSERVER_MEMORY_CPU});
    }
  }

  Request* request_;
  TRITONBACKEND_Response* response_;
  uint32_t flags_;
  std::string lost_;
  std::mutex alone_;
  TRITONSERVER_Error* refusal_ = nullptr;
  std::vector<Piece> pieces_;
};

// Copies the pieces, with several threads if there are enough bytes for that; then sends the answer.
void deliver(const std::shared_ptr<Delivery>& delivery, const std::function<void(bool)>& done) {
  const std::vector<Piece>& pieces = delivery->pieces();
  if (delivery->size() <= kPieceBytes) {
    for (const Piece& piece : pieces) delivery->copy(piece);
    done(delivery->send());
    return;
  }
  const auto left = std::make_shared<std::atomic<size_t>>(pieces.size());
  for (const Piece& piece : pieces) {
    do_soon([delivery, left, done, &piece] {
      delivery->copy(piece);
      if (--*left == 0) done(delivery->send());
    });
  }
}

void forget_response(Request* self) {
  if (self->response != nullptr) Py_DecRef(object_of(self->response));
  self->response = nullptr;
}

// Returns whether an answer has all outputs for which memory was reserved, with the reserved shapes.
bool fits(const Answer& answer, const Response& response) {
  size_t found = 0;
  for (const Output& output : answer.outputs) {
    const Place* place = place_of(&response, output);
    if (place != nullptr && place->shape != output.shape) return false;
    found += place != nullptr;
  }
  return found == response.places->size();
}

}  // namespace

void settle(Request* self) {
  Response* response = self->response;
  if (response == nullptr) return;
  if (self->answer != nullptr && fits(*self->answer, *response)) {
    for (Output& output : self->answer->outputs) {
      const Place* place = place_of(response, output);
      if (place != nullptr && place->address == output.address) output.let_go();
    }
    if (response->lent == 0) return;
  }
  // The response must not be sent, because Python objects still refer to its memory, or the answer has other outputs. So the outputs are
  // copied from it to another response.
  if (self->answer != nullptr) {
    Py_IncRef(object_of(response));
    self->answer->kept.reset(object_of(response));
  }
  forget_response(self);
}

uint64_t answer_bytes(const Request* request) {
  uint64_t size = 0;
  if (request->answer != nullptr) {
    for (const Output& output : request->answer->outputs) size += output.size;
  }
  return size;
}

void complete(Request* request, const std::string& otherwise, const std::function<void()>& done) {
  if (request->answer == nullptr && request->begun) {
    take_error(TRITONBACKEND_ResponseFactorySendFlags(request->factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    done();
    return;
  }
  Answer refusal;
  if (request->answer == nullptr) {
    refusal.code = TRITONSERVER_ERROR_INTERNAL;
    refusal.message = otherwise.empty() ? "the model gave no answer" : otherwise;
    request->failed = true;
  }
  const Answer& answer = request->answer == nullptr ? refusal : *request->answer;
  deliver(std::make_shared<Delivery>(request, answer, TRITONSERVER_RESPONSE_COMPLETE_FINAL), [request, done](bool answered) {
    request->failed |= !answered;
    done();
  });
}

Released::Released(Request* request) : request_(request->request), factory_(request->factory) { request->request = nullptr; }

void Released::release() {
  take_error(TRITONBACKEND_ResponseFactoryDelete(factory_));
  take_error(TRITONBACKEND_RequestRelease(request_, TRITONSERVER_REQUEST_RELEASE_ALL));
}

namespace {

// If not null: where to add the requests whose Python objects this thread destroys, so that they can be released later, without the GIL.
thread_local std::vector<Released>* collecting = nullptr;

}  // namespace

void let_go(Request* request, std::vector<Released>* released) {
  forget_answer(request);
  collecting = released;
  Py_DecRef(object_of(request));  // destroys the object, unless Python still refers to it or to its memory
  collecting = nullptr;
}

void forget_answer(Request* request) {
  delete request->answer;
  request->answer = nullptr;
  forget_response(request);
}

// -- memory of inputs and outputs ---------------------------------------------------------------------------------------

namespace {

PyTypeObject* request_type = nullptr;
PyTypeObject* memory_type = nullptr;

// Triton's memory as a Python buffer: a piece of an input, or an output to write to.
struct Memory {
  PyObject* owner;     // the request or response that owns the memory; kept alive
  Response* response;  // nullptr for an input's memory, which is read-only
  void* address;
  Py_ssize_t size;
  int64_t device;  // number of the GPU, or -1
};

int memory_get_buffer(PyObject* object, Py_buffer* view, int flags) {
  auto* self = added_to<Memory>(object);
  if (self->device >= 0) {
    PyErr_SetString(*buffer_error, "the memory is that of a GPU");
    return -1;
  }
  return PyBuffer_FillInfo(view, object, self->address, self->size, self->response == nullptr, flags);
}

// place(): (address, size, device), where device is -1 for host memory.
PyObject* memory_place(PyObject* object, PyObject*) {
  auto* self = added_to<Memory>(object);
  return Py_BuildValue("(LLL)", reinterpret_cast<long long>(self->address), static_cast<long long>(self->size), self->device);
}

void memory_dealloc(PyObject* object) {
  auto* self = added_to<Memory>(object);
  if (self->response != nullptr) --self->response->lent;
  Py_DecRef(self->owner);
  free_object(object);
}

PyObject* new_memory(PyObject* owner, const void* address, uint64_t size, TRITONSERVER_MemoryType kind, int64_t device) {
  auto* memory = new_object<Memory>(memory_type);
  if (memory == nullptr) return nullptr;
  memory->owner = owner;
  Py_IncRef(owner);
  memory->address = const_cast<void*>(address);
  memory->size = static_cast<Py_ssize_t>(size);
  memory->device = kind == TRITONSERVER_MEMORY_GPU ? device : -1;
  return object_of(memory);
}

PyObject* new_memory(Response* response, const Place& place, uint64_t size) {
  PyObject* memory = new_memory(object_of(response), place.address, size, place.kind, -1);
  if (memory == nullptr) return nullptr;
  added_to<Memory>(memory)->response = response;
  ++response->lent;
  return memory;
}

PyObject* new_memory(Request* request, TRITONBACKEND_Input* input, uint32_t index) {
  const void* address = nullptr;
  uint64_t size = 0;
  TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
  int64_t device = 0;
  if (!succeeded(TRITONBACKEND_InputBuffer(input, index, &address, &size, &kind, &device))) return nullptr;
  return new_memory(object_of(request), address, size, kind, device);
}

// -- the request's contents ---------------------------------------------------------------------------------------------

Request* request_of(PyObject* object) { return added_to<Request>(object); }

PyObject* request_id(PyObject* self, PyObject*) {
  const char* id = "";
  return succeeded(TRITONBACKEND_RequestId(request_of(self)->request, &id)) ? text(id == nullptr ? "" : id) : nullptr;
}

PyObject* parameter(TRITONSERVER_ParameterType type, const void* value) {
  switch (type) {
    case TRITONSERVER_PARAMETER_STRING:
      return text(static_cast<const char*>(value));
    case TRITONSERVER_PARAMETER_INT:
      return PyLong_FromLongLong(*static_cast<const int64_t*>(value));
    case TRITONSERVER_PARAMETER_BOOL:
      return PyBool_FromLong(*static_cast<const bool*>(value));
    case TRITONSERVER_PARAMETER_DOUBLE:
      return PyFloat_FromDouble(*static_cast<const double*>(value));
  }
  Py_IncRef(none);
  return none;
}

PyObject* request_parameters(PyObject* self, PyObject*) {
  TRITONBACKEND_Request* request = request_of(self)->request;
  uint32_t count = 0;
  if (!succeeded(TRITONBACKEND_RequestParameterCount(request, &count))) return nullptr;
  Reference found(PyDict_New());
  for (uint32_t index = 0; index < count; ++index) {
    const char* name = nullptr;
    TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_STRING;
    const void* value = nullptr;
    if (!succeeded(TRITONBACKEND_RequestParameter(request, index, &name, &type, &value))) return nullptr;
    Reference key(text(name)), given(parameter(type, value));
    if (!key || !given || PyDict_SetItem(found.get(), key.get(), given.get()) < 0) return nullptr;
  }
  return found.release();
}

PyObject* request_outputs(PyObject* self, PyObject*) {
  TRITONBACKEND_Request* request = request_of(self)->request;
  uint32_t count = 0;
  if (!succeeded(TRITONBACKEND_RequestOutputCount(request, &count))) return nullptr;
  Reference names(PyList_New(count));
  for (uint32_t index = 0; index < count; ++index) {
    const char* name = nullptr;
    if (!succeeded(TRITONBACKEND_RequestOutputName(request, index, &name))) return nullptr;
    PyList_SetItem(names.get(), index, text(name));
  }
  return names.release();
}

// trace(): the address of Triton's trace of the request; 0: it is not traced.
PyObject* request_trace(PyObject* self, PyObject*) {
  TRITONSERVER_InferenceTrace* trace = nullptr;
  if (TRITONBACKEND_RequestTrace != nullptr) take_error(TRITONBACKEND_RequestTrace(request_of(self)->request, &trace));
  return PyLong_FromLongLong(reinterpret_cast<long long>(trace));
}

PyObject* request_is_cancelled(PyObject* self, PyObject*) {
  bool cancelled = false;
  return succeeded(TRITONBACKEND_RequestIsCancelled(request_of(self)->request, &cancelled)) ? PyBool_FromLong(cancelled)
                                                                                            : nullptr;
}

// input(name): (data type, shape, the pieces of its memory), or None if the request does not have it.
PyObject* request_input(PyObject* object, PyObject* name) {
  Request* self = request_of(object);
  TRITONBACKEND_Input* input = nullptr;
  if (!take_error(TRITONBACKEND_RequestInput(self->request, bytes_of(name).c_str(), &input)).empty()) {
    Py_IncRef(none);
    return none;
  }
  int data_type = 0;
  const int64_t* extents = nullptr;
  uint32_t rank = 0, pieces = 0;
  uint64_t size = 0;
  if (!succeeded(TRITONBACKEND_InputProperties(input, nullptr, &data_type, &extents, &rank, &size, &pieces))) {
    return nullptr;
  }
  Reference shape(PyTuple_New(rank)), memory(PyList_New(pieces));
  for (uint32_t axis = 0; axis < rank; ++axis) PyTuple_SetItem(shape.get(), axis, PyLong_FromLongLong(extents[axis]));
  for (uint32_t index = 0; index < pieces; ++index) {
    PyObject* piece = new_memory(self, input, index);
    if (piece == nullptr) return nullptr;
    PyList_SetItem(memory.get(), index, piece);
  }
  return Py_BuildValue("(iOO)", data_type, shape.get(), memory.get());
}

// -- the request's answer -----------------------------------------------------------------------------------------------

Response* begin_response(Request* self) {
  auto* made = new_object<Response>(response_type);
  if (made == nullptr) return nullptr;
  made->places = new std::vector<Place>;
  if (succeeded(TRITONBACKEND_ResponseNewFromFactory(&made->response, self->factory))) return made;
  Py_DecRef(object_of(made));
  return nullptr;
}

// reserve(name, data type, shape, size): returns the answer's memory for an output, which the model writes to; None if Triton's memory is
// not on the host. Reserving the same output again begins a new answer.
PyObject* request_reserve(PyObject* object, PyObject* arguments) {
  Request* self = request_of(object);
  Output output;
  PyObject *name = nullptr, *shape = nullptr;
  long long size = 0;
  if (!PyArg_ParseTuple(arguments, "OiOL", &name, &output.data_type, &shape, &size) || !describe(&output, name, shape)) return nullptr;
  output.size = static_cast<uint64_t>(size);
  if (place_of(self->response, output) != nullptr) forget_response(self);
  if (self->response == nullptr) self->response = begin_response(self);
  if (self->response == nullptr) return nullptr;
  Place place;
  TRITONSERVER_Error* error = nullptr;
  {
    Let others;  // slow if the allocator clears the memory: let others have the GIL
    error = ask(self->response->response, output, &place);
  }
  if (!succeeded(error)) {
    forget_response(self);
    return nullptr;
  }
  self->response->places->push_back(place);
  if (place.kind != TRITONSERVER_MEMORY_GPU) return new_memory(self->response, place, output.size);
  Py_IncRef(none);
  return none;
}

// Reads a parameter from the tuple (name, type, text, whole, real); returns false with a Python exception set.
bool read_parameter(PyObject* given, Parameter* parameter) {
  PyObject *name = nullptr, *text = nullptr;
  long long whole = 0;
  if (!PyArg_ParseTuple(given, "OiOLd", &name, &parameter->type, &text, &whole, &parameter->real)) return false;
  parameter->name = bytes_of(name);
  parameter->text = bytes_of(text);
  parameter->whole = whole;
  return PyErr_Occurred() == nullptr;
}

// Reads a Python list into a vector; returns false with a Python exception set.
template <typename Item>
bool read_list(PyObject* list, std::vector<Item>* items, bool (*read)(PyObject*, Item*)) {
  const Py_ssize_t count = PyList_Size(list);
  if (count < 0) return false;
  items->resize(static_cast<size_t>(count));
  for (Py_ssize_t index = 0; index < count; ++index) {
    if (!read(PyList_GetItem(list, index), &(*items)[static_cast<size_t>(index)])) return false;
  }
  return true;
}

// answer([(name, data type, shape, data), ...], [(name, type, text, whole, real), ...]): sets the outputs and parameters of the answer,
// which is sent at the end of the execution, or by flush().
PyObject* request_answer(PyObject* self, PyObject* arguments) {
  PyObject *outputs = nullptr, *parameters = nullptr;
  if (!PyArg_ParseTuple(arguments, "OO", &outputs, &parameters)) return nullptr;
  auto answer = std::make_unique<Answer>();
  if (!read_list(outputs, &answer->outputs, read_output) || !read_list(parameters, &answer->parameters, read_parameter)) return nullptr;
  replace_answer(request_of(self), answer.release());
  Py_IncRef(none);
  return none;
}

// refuse(code, message): sets an error as the answer, which is sent at the end of the execution, or by flush().
PyObject* request_refuse(PyObject* self, PyObject* arguments) {
  int code = 0;
  PyObject* message = nullptr;
  if (!PyArg_ParseTuple(arguments, "iO", &code, &message)) return nullptr;
  auto* answer = new Answer;
  answer->code = code;
  answer->message = bytes_of(message);
  replace_answer(request_of(self), answer);
  Py_IncRef(none);
  return none;
}

// flush(): sends the answer now; more answers may follow.
PyObject* request_flush(PyObject* object, PyObject*) {
  Request* self = request_of(object);
  if (self->answer != nullptr) {
    {
      settle(self);
      Let others;
      Delivery delivery(self, *self->answer, 0);
      for (const Piece& piece : delivery.pieces()) delivery.copy(piece);
      delivery.send();
    }
    forget_answer(self);
  }
  self->begun = true;
  Py_IncRef(none);
  return none;
}

void request_dealloc(PyObject* object) {
  Request* self = request_of(object);
  forget_answer(self);
  if (self->request != nullptr && collecting != nullptr) {
    collecting->emplace_back(self);
  } else if (self->request != nullptr) {
    Let others;  // Triton takes its own locks, so release the GIL
    Released(self).release();
  }
  free_object(object);
}

PyMethodDef request_methods[] = {
    {"id", request_id, METH_NOARGS, nullptr},
    {"parameters", request_parameters, METH_NOARGS, nullptr},
    {"outputs", request_outputs, METH_NOARGS, nullptr},
    {"is_cancelled", request_is_cancelled, METH_NOARGS, nullptr},
    {"trace", request_trace, METH_NOARGS, nullptr},
    {"input", request_input, METH_O, nullptr},
    {"reserve", request_reserve, METH_VARARGS, nullptr},
    {"answer", request_answer, METH_VARARGS, nullptr},
    {"refuse", request_refuse, METH_VARARGS, nullptr},
    {"flush", request_flush, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot request_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(request_dealloc)},
    {Py_tp_methods, request_methods},
    {0, nullptr},
};
PyType_Spec request_spec = {"penstock.Request", 0, 0, Py_TPFLAGS_DEFAULT, request_slots};

PyType_Slot response_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(response_dealloc)}, {0, nullptr}};
PyType_Spec response_spec = {"penstock.Response", 0, 0, Py_TPFLAGS_DEFAULT, response_slots};

PyMethodDef memory_methods[] = {
    {"place", memory_place, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot memory_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(memory_dealloc)},
    {Py_tp_methods, memory_methods},
    {Py_bf_getbuffer, reinterpret_cast<void*>(memory_get_buffer)},
    {0, nullptr},
};
PyType_Spec memory_spec = {"penstock.Memory", 0, 0, Py_TPFLAGS_DEFAULT, memory_slots};

}  // namespace

namespace {

// Makes a type from its description, unless the type exists already.
void prepare(PyTypeObject*& type, PyType_Spec& spec, size_t added) {
  if (type != nullptr) return;
  spec.size = static_cast<int>(object_head + added);
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace

bool prepare_request_types() {
  if (!read_object_head()) return false;
  prepare(request_type, request_spec, sizeof(Request));
  prepare(response_type, response_spec, sizeof(Response));
  prepare(memory_type, memory_spec, sizeof(Memory));
  return request_type != nullptr && response_type != nullptr && memory_type != nullptr;
}

Request* new_request(TRITONBACKEND_Request* request) {
  auto* made = new_object<Request>(request_type);
  if (made == nullptr) return nullptr;
  if (!succeeded(TRITONBACKEND_ResponseFactoryNew(&made->factory, request))) {
    Py_DecRef(object_of(made));
    return nullptr;
  }
  made->request = request;
  return made;
}

uint64_t count_samples(TRITONBACKEND_Request* request) {
  TRITONBACKEND_Input* input = nullptr;
  const int64_t* shape = nullptr;
  uint32_t rank = 0;
  if (!take_error(TRITONBACKEND_RequestInputByIndex(request, 0, &input)).empty()) return 1;
  take_error(TRITONBACKEND_InputProperties(input, nullptr, nullptr, &shape, &rank, nullptr, nullptr));
  return rank > 0 && shape[0] > 0 ? static_cast<uint64_t>(shape[0]) : 1;
}

}  // namespace penstock
