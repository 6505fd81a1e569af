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
  Answer* answer;      // the next answer to send; null: none yet
  Response* response;  // the response whose memory the model has reserved for outputs; null: none
  bool begun;          // whether an answer was sent already
  bool failed;
};

// Makes the types of requests, responses and their memory on first use; returns false with a Python exception set.
bool prepare_request_types();

// Returns a new reference to a request object, which then owns Triton's request. On failure, returns nullptr with a Python exception set;
// the caller still owns Triton's request.
Request* new_request(TRITONBACKEND_Request* request);

// Decides, after the model has run, whether the response whose memory it has written to can be sent.
void settle(Request* request);

// Returns the size of a request's answer in bytes.
uint64_t answer_bytes(const Request* request);

// Sends a request's last answer; other threads may help. Call this without holding the GIL. If the model has set no answer, the client
// gets an error with the text `otherwise`.
// Args: done: called by any thread when the answer is sent.
void complete(Request* request, const std::string& otherwise, const std::function<void()>& done);

// Releases an answer that was sent, and the memory from which it was copied.
void forget_answer(Request* request);

// Triton's request, after its Python object was destroyed.
class Released {
 public:
  explicit Released(Request* request);

  // Gives the request back to Triton. Call this without holding the GIL, as Triton takes its own locks.
  void release();

 private:
  TRITONBACKEND_Request* request_;
  TRITONBACKEND_ResponseFactory* factory_;
};

// Drops our reference to an answered request, and adds the request to `released`. If Python still refers to the request, it is not added,
// but released when Python drops it.
void let_go(Request* request, std::vector<Released>* released);

// Returns the number of samples in a request of a model whose requests are batches.
uint64_t count_samples(TRITONBACKEND_Request* request);

// Returns the message of an error that Triton reported, or "" if there is none, and deletes the error.
std::string take_error(TRITONSERVER_Error* error);

}  // namespace penstock
