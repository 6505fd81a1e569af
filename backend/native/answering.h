// Answers in flight: threads copy and send them while models compute the next ones. Nothing here needs Python unless noted.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace penstock {

// Makes another thread do some work soon; the calling thread does it at once if the system grants no thread.
void do_soon(std::function<void()> work);

// Ends the threads when no work is left. Until then they may take Python's interpreter, so it must not have ended.
void end_answering_threads();

// The batches of an instance whose answers are being sent: one after the other, so that answers do not overtake earlier ones.
class Line {
 public:
  // Calls `begin` when the answers of all earlier batches are sent. Waits while the line is full, so that memory does not run short.
  // Args: begin: makes threads send a batch's answers; then they call `answered`, and `leave` when the batch's memory is freed.
  void join(std::function<void()> begin);

  // Called when the first batch's answers are sent.
  void answered();

  void leave();

  bool is_empty();
  void wait_until_empty();

 private:
  std::mutex alone_;
  std::condition_variable changed_;
  // The first one's answers are being sent.
  std::deque<std::function<void()>> waiting_;
  size_t present_ = 0;
};

// Waits until all lines are empty, or the time is up; returns whether they are.
bool wait_for_answers(double seconds);

}  // namespace penstock
