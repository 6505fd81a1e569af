// The minimal cost of a served model: a Triton backend that returns its only input as its only output, and does nothing else.

#include <chrono>
#include <cstring>

#include "../../../backend/native/triton.h"

namespace {

uint64_t now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

TRITONSERVER_Error* answer(TRITONBACKEND_Request* request) {
  TRITONBACKEND_Input* input = nullptr;
  const int64_t* shape = nullptr;
  int type = 0;
  uint32_t rank = 0, pieces = 0;
  uint64_t size = 0;
  if (auto* error = TRITONBACKEND_RequestInputByIndex(request, 0, &input)) return error;
  if (auto* error = TRITONBACKEND_InputProperties(input, nullptr, &type, &shape, &rank, &size, &pieces)) return error;
  TRITONBACKEND_ResponseFactory* factory = nullptr;
  TRITONBACKEND_Response* response = nullptr;
  TRITONBACKEND_Output* output = nullptr;
  if (auto* error = TRITONBACKEND_ResponseFactoryNew(&factory, request)) return error;
  if (auto* error = TRITONBACKEND_ResponseNewFromFactory(&response, factory)) return error;
  if (auto* error = TRITONBACKEND_ResponseOutput(response, &output, "y", type, shape, rank)) return error;
  void* target = nullptr;
  TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
  int64_t device = 0;
  if (auto* error = TRITONBACKEND_OutputBuffer(output, &target, size, &memory, &device)) return error;
  auto* place = static_cast<char*>(target);
  for (uint32_t piece = 0; piece < pieces; ++piece) {
    const void* data = nullptr;
    uint64_t bytes = 0;
    if (auto* error = TRITONBACKEND_InputBuffer(input, piece, &data, &bytes, &memory, &device)) return error;
    std::memcpy(place, data, bytes);
    place += bytes;
  }
  if (auto* error = TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, nullptr)) return error;
  return TRITONBACKEND_ResponseFactoryDelete(factory);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests, const uint32_t count) {
  const uint64_t begin = now();
  for (uint32_t index = 0; index < count; ++index) {
    if (auto* error = answer(requests[index])) return error;
  }
  const uint64_t end = now();
  for (uint32_t index = 0; index < count; ++index) {
    TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[index], true, begin, begin, end, end);
    TRITONBACKEND_RequestRelease(requests[index], TRITONSERVER_REQUEST_RELEASE_ALL);
  }
  return TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, count, begin, begin, end, end);
}
