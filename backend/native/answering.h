// Answers in flight: threads copy and send them while models compute the next ones. Without Python's interpreter unless noted.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace penstock {

// Makes a thread do some work soon; this one does it at once if the system grants no thread.
void do_soon(std::function<void()> work);

// Ends the threads when nothing is left to do. Threads may hold the interpreter until then, so it must not have ended.
void end_answering_threads();

// The batches of an instance whose answers are being sent: one after the other, so that answers do not overtake earlier ones.
class Line {
 public:
  // Begins with a batch's answers when those before are sent. Waits while there are so many batches that memory would run short.
  // Args: begin: makes threads send the answers; then they call `answered`, and `leave` when nothing is left of the batch.
  void join(std::function<void()> begin);

  // The first batch's answers are sent.
  void answered();

  void leave();

  bool is_empty();
  void wait_until_empty();

 private:
  std::mutex alone_;
  std::condition_variable changed_;
  // The first one has begun.
  std::deque<std::function<void()>> waiting_;
  size_t present_ = 0;
};

// Waits until all lines are empty, or the time is over; returns whether they are.
bool wait_for_answers(double seconds);

}  // namespace penstock
