// The sending of answers: threads copy and send them while models compute the next batches. Unless noted, the code here needs no GIL.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace penstock {

// Makes another thread do some work soon; the calling thread does it at once if the system grants no thread.
void do_soon(std::function<void()> work);

// Ends the threads when no work is left. They may need Python's interpreter until then, so call this before the interpreter ends.
void end_answering_threads();

// The batches of an instance whose answers are being sent or wait to be sent, one batch after the other, so that no answer overtakes an
// earlier one.
class Line {
 public:
  // Adds a batch, and calls `begin` when the answers of all earlier batches are sent. While the line is full, waits before adding the
  // batch, to limit the memory that answers take.
  // Args: begin: makes threads send the batch's answers. They call `answered` when that is done, and `leave` when the batch's memory is
  // freed.
  void join(std::function<void()> begin);

  // Called when the answers of the first batch in the line are sent.
  void answered();

  void leave();

  bool is_empty();
  void wait_until_empty();

 private:
  std::mutex alone_;
  std::condition_variable changed_;
  // One function for each batch, oldest first; the answers of the first batch are being sent.
  std::deque<std::function<void()>> waiting_;
  size_t present_ = 0;
};

// Waits until no `Line` holds a batch, or the time is up; returns whether all are empty.
bool wait_for_answers(double seconds);

}  // namespace penstock
