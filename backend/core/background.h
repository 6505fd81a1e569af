// Threads that work in the background while the caller is busy, and work that several threads share.

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

// A function that a given number of threads run once each.
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

// Threads that run tasks. If there is only one thread, it runs them in the order of submission.
class BackgroundThreads {
 public:
  BackgroundThreads(const char *name, int64_t count);

  // Waits until the threads have run all tasks, and ends the threads.
  ~BackgroundThreads();

  BackgroundThreads(const BackgroundThreads &) = delete;
  BackgroundThreads &operator=(const BackgroundThreads &) = delete;

  // Lets `times` threads run a task.
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

// Work that is divided into shares, which threads take one by one, and calls that are made once all shares are done. The thread that
// completes the last share makes the calls; if `follow` is called only after that, its caller does.
class SharedWork {
 public:
  SharedWork(PenstockShare task, void *argument, int64_t shares) : task_(task), argument_(argument), shares_(shares) {}

  // Does shares of the work on the calling thread until none are left.
  void take_shares();

  // Sets the calls to make after all shares; returns whether these are done already, so that the caller has to call `conclude`.
  bool follow(const PenstockCall *calls, int64_t count);

  // Makes the calls, and marks the work as done.
  void conclude();

  bool is_done() const { return done_.load(std::memory_order_acquire); }

  // Waits until the calls are made; returns 0, or the result of the call that failed.
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

// Makes calls until one fails; returns the result of the call that failed, or 0.
int32_t make_calls(const PenstockCall *calls, int64_t count);

}  // namespace penstock
