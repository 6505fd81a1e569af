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

// How many threads do the tasks of a launch, and where.
struct Crew {
  int64_t threads;               // with the calling one
  const int64_t *cores;          // to which the others are bound, in turn
  int64_t core_count;            // 0: they are not bound
};

// Threads shared by all pipelines of the process. They are started when they are first needed and sleep while there is no work.
class ThreadPool {
 public:
  // The pool of this process.
  static ThreadPool &shared();

  // Does the tasks from 0 to `count`, on the calling thread and as many others as are free; returns when all are done.
  void run(Task task, void *context, int64_t count, const Crew &crew);

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
