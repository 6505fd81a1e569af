// Threads that go on with work while the caller is busy, and work that they share.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core.h"

namespace penstock {

// A task for a thread, run once or on several threads.
class Task {
 public:
  Task(std::function<void()> run, int64_t times) : run_(std::move(run)), left_(times) {}

  void run_once() {
    run_();
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_all();
  }

  bool is_done() const { return left_.load(std::memory_order_acquire) == 0; }

  void wait() const {
    for (int64_t left; (left = left_.load(std::memory_order_acquire)) != 0;) left_.wait(left, std::memory_order_acquire);
  }

 private:
  const std::function<void()> run_;
  std::atomic<int64_t> left_;
};

// Threads that run tasks; a single one runs them in order.
class BackgroundThreads {
 public:
  BackgroundThreads(const char *name, int64_t count);

  // Ends the threads once they have run all tasks.
  ~BackgroundThreads();

  BackgroundThreads(const BackgroundThreads &) = delete;
  BackgroundThreads &operator=(const BackgroundThreads &) = delete;

  // Makes `times` threads run a task.
  void submit(std::shared_ptr<Task> task, int64_t times);

 private:
  struct Queued {
    std::shared_ptr<Task> task;
    int64_t times;
  };

  void serve();

  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Queued> queue_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

// Work that threads take in shares, and calls that are made once all shares are done. They are made by whoever comes last: the thread
// that completes the last share, or the caller of `follow`.
class SharedWork {
 public:
  SharedWork(PenstockShare task, void *argument, int64_t shares) : task_(task), argument_(argument), shares_(shares) {}

  // Takes shares until there is none left.
  void take_shares();

  // Sets the calls to be made after the shares; returns whether the caller has to make them, by `conclude`.
  bool follow(const PenstockCall *calls, int64_t count);

  // Makes the calls; then, the work is done.
  void conclude();

  bool is_done() const { return done_.load(std::memory_order_acquire); }

  // Waits for the calls; returns 0, or the result of the one that failed.
  int32_t wait() const;

 private:
  // Records that one more share is done, or that the calls are set. Returns whether this was the last of these events.
  bool end_one() { return through_.fetch_add(1, std::memory_order_acq_rel) == shares_; }

  const PenstockShare task_;
  void *const argument_;
  const int64_t shares_;
  std::atomic<int64_t> taken_{0}, through_{0};
  const PenstockCall *calls_ = nullptr;
  int64_t call_count_ = 0;
  int32_t status_ = 0;
  std::atomic<bool> done_{false};
};

// Makes calls until one fails; returns the result of that one, or 0.
int32_t make_calls(const PenstockCall *calls, int64_t count);

}  // namespace penstock
