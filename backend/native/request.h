// A request as Python sees it: what it asks, and the answer that it gets.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cpython.h"
#include "triton.h"

namespace penstock {

struct Answer;
struct Response;

// The data added to a Python object. Owns Triton's request, which is released when Python refers neither to this nor to its
// inputs' memory any more.
struct Request {
  TRITONBACKEND_Request* request;
  TRITONBACKEND_ResponseFactory* factory;
  Answer* answer;      // to be sent
  Response* response;  // with memory that the model writes its outputs to, if it has asked for that
  bool begun;          // an answer was sent already
  bool failed;
};

// The type of requests and that of their inputs' memory, made on first use and then kept.
bool prepare_request_types();

// A new reference; nullptr with an error raised. Takes the request over only if there is none.
Request* new_request(TRITONBACKEND_Request* request);

// After the model has run: decides whether the response that it wrote to can be sent.
void settle(Request* request);

// The size of a request's answer.
uint64_t answer_bytes(const Request* request);

// Sends a request's answer, the last one, without the interpreter; other threads may take part. What the model has not answered is
// refused with this text.
// Args: done: called when it is sent, by any thread.
void complete(Request* request, const std::string& otherwise, const std::function<void()>& done);

// The memory that sent answers were copied from, given back to Python.
void forget_answer(Request* request);

// A request that Python does not refer to any more.
class Released {
 public:
  explicit Released(Request* request);

  // Gives it back to Triton, without the interpreter: Triton has its own locks.
  void release();

 private:
  TRITONBACKEND_Request* request_;
  TRITONBACKEND_ResponseFactory* factory_;
};

// Releases a request that is answered. It is added to those to be released, unless Python has kept it: then it is released later.
void let_go(Request* request, std::vector<Released>* released);

// How many samples a request brings, where requests are batches.
uint64_t count_samples(TRITONBACKEND_Request* request);

// An error of Triton's as a text, or nothing; the error is gone then.
std::string take_error(TRITONSERVER_Error* error);

}  // namespace penstock
