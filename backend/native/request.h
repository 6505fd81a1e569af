// A request as Python sees it: what it asks, and the answer that it gets.
#pragma once

#include <string>

#include "cpython.h"
#include "triton.h"

namespace penstock {

struct Answer;
struct Response;

// Owns Triton's request: that one is released when Python refers neither to this nor to its inputs' memory any more.
struct Request {
  PyObject base;
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

// Sends a request's answer, the last one; without the interpreter. What the model has not answered is refused with this text.
void complete(Request* request, const std::string& otherwise);

// The memory that sent answers were copied from, given back to Python.
void forget_answer(Request* request);

// How many samples a request brings, where requests are batches.
uint64_t count_samples(TRITONBACKEND_Request* request);

// An error of Triton's as a text, or nothing; the error is gone then.
std::string take_error(TRITONSERVER_Error* error);

}  // namespace penstock
