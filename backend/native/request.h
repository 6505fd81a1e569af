// A request as Python sees it: its contents, and its answer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cpython.h"
#include "triton.h"

namespace penstock {

struct Answer;
struct Response;

// What a request's Python object holds after its PyObject header. Owns Triton's request, which is released when Python no longer
// refers to this object or to the memory of its inputs.
struct Request {
  TRITONBACKEND_Request* request;
  TRITONBACKEND_ResponseFactory* factory;
  Answer* answer;      // to be sent
  Response* response;  // whose memory the model writes its outputs to; null unless it has reserved some
  bool begun;          // an answer was sent already
  bool failed;
};

// Makes the types of requests, responses and their memory on first use; false with a Python exception set.
bool prepare_request_types();

// Returns a new reference; nullptr with a Python exception set: then the caller still owns Triton's request.
Request* new_request(TRITONBACKEND_Request* request);

// Decides, after the model has run, whether the response that it wrote to can be sent.
void settle(Request* request);

// The size of a request's answer.
uint64_t answer_bytes(const Request* request);

// Sends a request's last answer, without holding the interpreter; other threads may help. If the model has given no answer, the request
// is refused with the text `otherwise`.
// Args: done: called by any thread when the answer is sent.
void complete(Request* request, const std::string& otherwise, const std::function<void()>& done);

// Releases an answer after it is sent, and the memory from which it was copied.
void forget_answer(Request* request);

// A request to which Python no longer refers.
class Released {
 public:
  explicit Released(Request* request);

  // Gives the request back to Triton, without holding the interpreter, as Triton takes its own locks.
  void release();

 private:
  TRITONBACKEND_Request* request_;
  TRITONBACKEND_ResponseFactory* factory_;
};

// Drops our reference to an answered request. It is added to `released`, unless Python still refers to it: then it is released later.
void let_go(Request* request, std::vector<Released>* released);

// The number of samples in a request, for models whose requests are batches.
uint64_t count_samples(TRITONBACKEND_Request* request);

// Returns the message of an error of Triton's, or "" for none, and deletes the error.
std::string take_error(TRITONSERVER_Error* error);

}  // namespace penstock
