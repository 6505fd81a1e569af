// The threads that share the tasks of launches.

#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock {

// A function that does one of several tasks.
using Task = void (*)(void *context, int64_t number);

// Threads shared by all pipelines of the process. They are started when they are first needed and sleep while there is no work.
class ThreadPool {
 public:
  // The pool of this process.
  static ThreadPool &shared();

  // Does the tasks from 0 to `count`, on the calling thread and at most `threads - 1` others; returns when all are done.
  void run(Task task, void *context, int64_t count, int64_t threads);

 private:
  struct Job;

  ThreadPool() = default;
  void start_threads(size_t wanted);
  void serve();

  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Job *> open_;  // jobs that more threads may join
  size_t thread_count_ = 0;
};

}  // namespace penstock
