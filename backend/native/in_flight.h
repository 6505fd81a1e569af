// Batches in flight: a thread of an instance completes one while Triton's thread begins the next.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace penstock {

// The batches of an instance that were begun and are not completed yet, in order. The class needs no GIL; the functions that complete
// batches take it themselves.
class BatchesInFlight {
 public:
  BatchesInFlight() = default;
  ~BatchesInFlight();
  BatchesInFlight(const BatchesInFlight&) = delete;
  BatchesInFlight& operator=(const BatchesInFlight&) = delete;

  // Makes a thread complete a batch after those before it. Waits while more than one batch is left: meanwhile, requests collect in
  // Triton's queue, so that the next batch is larger.
  void add(std::function<void()> complete);

  bool is_empty();
  void wait_until_empty();

 private:
  // Returns false if the system grants no thread.
  bool start();
  void run();

  std::mutex alone_;
  std::condition_variable changed_;
  // One function for each batch, oldest first; the first batch is being completed.
  std::deque<std::function<void()>> batches_;
  std::thread thread_;
  bool ending_ = false;
};

}  // namespace penstock
