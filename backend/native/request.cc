#include "request.h"

#include <cstring>
#include <vector>

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

// Raises an error of Triton's, if it is one.
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
  int64_t device = -1;  // the GPU that it is on, or -1
  Py_buffer on_host{};  // one of these two keeps the memory
  PyObject* on_gpu = nullptr;

  void let_go() {
    if (on_host.owner != nullptr) PyBuffer_Release(&on_host);
    if (on_gpu != nullptr) Py_DecRef(on_gpu);
    on_gpu = nullptr;
  }
};

// An answer, or why there is none.
struct Answer {
  std::vector<Output> outputs;
  int code = -1;  // of an error
  std::string message;
  Reference kept;  // a response that some outputs are copied from

  ~Answer() {
    for (Output& output : outputs) output.let_go();
  }
};

// Memory of Triton's for an output.
struct Place {
  std::string name;
  std::vector<int64_t> shape;
  void* address = nullptr;
  TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
  int64_t device = 0;
};

// A response that was begun before the answer is known, so that the model writes into its memory. What Python has of that memory keeps it.
struct Response {
  PyObject base;
  TRITONBACKEND_Response* response;
  std::vector<Place>* places;
};

namespace {

PyTypeObject* response_type = nullptr;

void response_dealloc(PyObject* object) {
  auto* self = reinterpret_cast<Response*>(object);
  PyTypeObject* type = object->type;
  if (self->response != nullptr) take_error(TRITONBACKEND_ResponseDelete(self->response));
  delete self->places;
  PyObject_Free(object);
  Py_DecRef(reinterpret_cast<PyObject*>(type));
}

// Name, type and shape of an output; false with an error raised.
bool describe(Output* output, PyObject* name, PyObject* shape) {
  output->name = bytes_of(name);
  const Py_ssize_t rank = PyTuple_Size(shape);
  for (Py_ssize_t axis = 0; axis < rank; ++axis) output->shape.push_back(PyLong_AsLongLong(PyTuple_GetItem(shape, axis)));
  return PyErr_Occurred() == nullptr;
}

// (name, data type, shape, data) as an output, or (name, data type, shape, data, address, size, device) of one on a GPU; false with an
// error raised.
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

// Asks for memory for an output: on the GPU that has it if Triton grants that.
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

// Copies an output into memory of Triton's, unless it is there already. What involves a GPU is only begun.
TRITONSERVER_Error* fill(TRITONBACKEND_Response* response, const Output& output, const Place* reserved) {
  Place place;
  if (reserved != nullptr) {
    place = *reserved;
  } else if (auto* error = ask(response, output, &place)) {
    return error;
  }
  if (output.size == 0 || output.address == place.address) return nullptr;
  if (output.device < 0 && place.kind != TRITONSERVER_MEMORY_GPU) {
    std::memcpy(place.address, output.address, output.size);
    return nullptr;
  }
  return failure(begin_copy(place.address, output.address, output.size, output.device < 0 ? place.device : output.device));
}

TRITONSERVER_Error* fill(TRITONBACKEND_Response* response, const Answer& answer, const Response* reserved) {
  if (answer.code >= 0) return TRITONSERVER_ErrorNew(answer.code, answer.message.c_str());
  TRITONSERVER_Error* error = nullptr;
  for (const Output& output : answer.outputs) {
    error = fill(response, output, place_of(reserved, output));
    if (error != nullptr) break;
  }
  // In any case: what they write to is Triton's again then.
  const std::string problem = finish_copies();
  return error != nullptr ? error : failure(problem);
}

// Keeps a refusal out of Triton's response cache, from which it would be repeated as a success: the cache takes no response with an
// output that has no memory.
void keep_from_cache(TRITONBACKEND_Response* refusal) {
  TRITONBACKEND_Output* target = nullptr;
  const int64_t shape = 1;
  take_error(TRITONBACKEND_ResponseOutput(refusal, &target, "refusal", TRITONSERVER_TYPE_UINT8, &shape, 1));
}

// Sends an answer, without the interpreter; false where the client gets an error.
bool send(Request* self, const Answer& answer, uint32_t flags) {
  TRITONBACKEND_Response* response = self->response == nullptr ? nullptr : self->response->response;
  std::string lost = response != nullptr ? "" : take_error(TRITONBACKEND_ResponseNewFromFactory(&response, self->factory));
  TRITONSERVER_Error* refusal = nullptr;
  if (lost.empty()) {
    refusal = fill(response, answer, self->response);
    if (refusal != nullptr) keep_from_cache(response);
    lost = take_error(TRITONBACKEND_ResponseSend(response, flags, refusal));
    if (self->response != nullptr) self->response->response = nullptr;  // it is Triton's
  }
  const bool answered = refusal == nullptr && lost.empty();
  if (refusal != nullptr) TRITONSERVER_ErrorDelete(refusal);
  if (!lost.empty()) take_error(TRITONSERVER_LogMessage(2, "penstock", 0, ("an answer is lost: " + lost).c_str()));
  return answered;
}

void forget_response(Request* self) {
  if (self->response != nullptr) Py_DecRef(&self->response->base);
  self->response = nullptr;
}

// Whether an answer has each output that memory was reserved for, as it was then.
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
    if (response->base.references == 1) return;
  }
  // It is not to be sent: Python keeps some of its memory, or the answer is another. So it is only copied from.
  if (self->answer != nullptr) {
    Py_IncRef(&response->base);
    self->answer->kept.reset(&response->base);
  }
  forget_response(self);
}

void complete(Request* request, const std::string& otherwise) {
  if (request->answer == nullptr && request->begun) {
    take_error(TRITONBACKEND_ResponseFactorySendFlags(request->factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
  } else if (request->answer == nullptr) {
    Answer refusal;
    refusal.code = TRITONSERVER_ERROR_INTERNAL;
    refusal.message = otherwise.empty() ? "the model gave no answer" : otherwise;
    request->failed = true;
    send(request, refusal, TRITONSERVER_RESPONSE_COMPLETE_FINAL);
  } else if (!send(request, *request->answer, TRITONSERVER_RESPONSE_COMPLETE_FINAL)) {
    request->failed = true;
  }
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

// Memory of Triton's as a buffer of Python's: a piece of an input, or an output to be written.
struct Memory {
  PyObject base;
  PyObject* owner;  // the request or the response, which is kept
  void* address;
  Py_ssize_t size;
  int64_t device;  // of a GPU, or -1
};

int memory_get_buffer(PyObject* object, Py_buffer* view, int flags) {
  auto* self = reinterpret_cast<Memory*>(object);
  if (self->device >= 0) {
    PyErr_SetString(*buffer_error, "the memory is that of a GPU");
    return -1;
  }
  return PyBuffer_FillInfo(view, object, self->address, self->size, self->owner->type == request_type, flags);
}

// place(): (address, size, device), where device is -1 for the host's memory.
PyObject* memory_place(PyObject* object, PyObject*) {
  auto* self = reinterpret_cast<Memory*>(object);
  return Py_BuildValue("(LLL)", reinterpret_cast<long long>(self->address), static_cast<long long>(self->size), self->device);
}

void memory_dealloc(PyObject* object) {
  PyTypeObject* type = object->type;
  Py_DecRef(reinterpret_cast<Memory*>(object)->owner);
  PyObject_Free(object);
  Py_DecRef(reinterpret_cast<PyObject*>(type));
}

PyObject* new_memory(PyObject* owner, const void* address, uint64_t size, TRITONSERVER_MemoryType kind, int64_t device) {
  auto* memory = reinterpret_cast<Memory*>(PyType_GenericAlloc(memory_type, 0));
  if (memory == nullptr) return nullptr;
  memory->owner = owner;
  Py_IncRef(owner);
  memory->address = const_cast<void*>(address);
  memory->size = static_cast<Py_ssize_t>(size);
  memory->device = kind == TRITONSERVER_MEMORY_GPU ? device : -1;
  return &memory->base;
}

PyObject* new_memory(Request* request, TRITONBACKEND_Input* input, uint32_t index) {
  const void* address = nullptr;
  uint64_t size = 0;
  TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
  int64_t device = 0;
  if (!succeeded(TRITONBACKEND_InputBuffer(input, index, &address, &size, &kind, &device))) return nullptr;
  return new_memory(&request->base, address, size, kind, device);
}

// -- what a request asks ------------------------------------------------------------------------------------------------

Request* request_of(PyObject* object) { return reinterpret_cast<Request*>(object); }

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

PyObject* request_is_cancelled(PyObject* self, PyObject*) {
  bool cancelled = false;
  return succeeded(TRITONBACKEND_RequestIsCancelled(request_of(self)->request, &cancelled)) ? PyBool_FromLong(cancelled)
                                                                                            : nullptr;
}

// input(name): (data type, shape, the pieces of its memory), or None where the request leaves it out.
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

// -- and what it is told ------------------------------------------------------------------------------------------------

Response* begin_response(Request* self) {
  auto* made = reinterpret_cast<Response*>(PyType_GenericAlloc(response_type, 0));
  if (made == nullptr) return nullptr;
  made->places = new std::vector<Place>;
  if (succeeded(TRITONBACKEND_ResponseNewFromFactory(&made->response, self->factory))) return made;
  Py_DecRef(&made->base);
  return nullptr;
}

// reserve(name, data type, shape, size): the answer's memory for an output, to be written; None where it is not the host's. An output
// that is reserved again begins another answer.
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
    Let others;  // who grants the memory may clear it first
    error = ask(self->response->response, output, &place);
  }
  if (!succeeded(error)) {
    forget_response(self);
    return nullptr;
  }
  self->response->places->push_back(place);
  if (place.kind != TRITONSERVER_MEMORY_GPU) return new_memory(&self->response->base, place.address, output.size, place.kind, -1);
  Py_IncRef(none);
  return none;
}

// answer([(name, data type, shape, data), ...]): sent when the execution is over, or by flush().
PyObject* request_answer(PyObject* self, PyObject* outputs) {
  const Py_ssize_t count = PyList_Size(outputs);
  if (count < 0) return nullptr;
  auto* answer = new Answer;
  answer->outputs.resize(static_cast<size_t>(count));
  for (Py_ssize_t index = 0; index < count; ++index) {
    if (!read_output(PyList_GetItem(outputs, index), &answer->outputs[static_cast<size_t>(index)])) {
      delete answer;
      return nullptr;
    }
  }
  replace_answer(request_of(self), answer);
  Py_IncRef(none);
  return none;
}

// refuse(code, message): likewise.
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

// flush(): sends the answer now; more may follow.
PyObject* request_flush(PyObject* object, PyObject*) {
  Request* self = request_of(object);
  if (self->answer != nullptr) {
    {
      settle(self);
      Let others;
      send(self, *self->answer, 0);
    }
    forget_answer(self);
  }
  self->begun = true;
  Py_IncRef(none);
  return none;
}

void request_dealloc(PyObject* object) {
  Request* self = request_of(object);
  PyTypeObject* type = object->type;
  forget_answer(self);
  if (self->request != nullptr) {
    Let others;  // Triton has locks of its own
    take_error(TRITONBACKEND_ResponseFactoryDelete(self->factory));
    take_error(TRITONBACKEND_RequestRelease(self->request, TRITONSERVER_REQUEST_RELEASE_ALL));
  }
  PyObject_Free(object);
  Py_DecRef(reinterpret_cast<PyObject*>(type));
}

PyMethodDef request_methods[] = {
    {"id", request_id, METH_NOARGS, nullptr},
    {"parameters", request_parameters, METH_NOARGS, nullptr},
    {"outputs", request_outputs, METH_NOARGS, nullptr},
    {"is_cancelled", request_is_cancelled, METH_NOARGS, nullptr},
    {"input", request_input, METH_O, nullptr},
    {"reserve", request_reserve, METH_VARARGS, nullptr},
    {"answer", request_answer, METH_O, nullptr},
    {"refuse", request_refuse, METH_VARARGS, nullptr},
    {"flush", request_flush, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot request_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(request_dealloc)},
    {Py_tp_methods, request_methods},
    {0, nullptr},
};
PyType_Spec request_spec = {"penstock.Request", sizeof(Request), 0, Py_TPFLAGS_DEFAULT, request_slots};

PyType_Slot response_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(response_dealloc)}, {0, nullptr}};
PyType_Spec response_spec = {"penstock.Response", sizeof(Response), 0, Py_TPFLAGS_DEFAULT, response_slots};

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
PyType_Spec memory_spec = {"penstock.Memory", sizeof(Memory), 0, Py_TPFLAGS_DEFAULT, memory_slots};

}  // namespace

bool prepare_request_types() {
  if (request_type == nullptr) request_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&request_spec));
  if (response_type == nullptr) response_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&response_spec));
  if (memory_type == nullptr) memory_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&memory_spec));
  return request_type != nullptr && response_type != nullptr && memory_type != nullptr;
}

Request* new_request(TRITONBACKEND_Request* request) {
  auto* made = reinterpret_cast<Request*>(PyType_GenericAlloc(request_type, 0));
  if (made == nullptr) return nullptr;
  if (!succeeded(TRITONBACKEND_ResponseFactoryNew(&made->factory, request))) {
    Py_DecRef(&made->base);
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
