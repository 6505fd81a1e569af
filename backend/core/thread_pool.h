// The threads that share the tasks of launches.

#pragma once

#include <sched.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

namespace penstock {

// A function that does one of several tasks.
using Task = void (*)(void *context, int64_t number);

// How many threads do the tasks of a launch, and where.
struct Crew {
  int64_t threads;          // at most, with the calling one
  int64_t worth_waking_ns;  // wake other threads only if the calling one would need longer for the rest
  const int64_t *cores;     // to which they are bound, in turn, the calling one first
  int64_t core_count;       // 0: they are not bound
};

// Threads shared by all pipelines of the process. They are started when they are first needed and sleep while there is no work.
class ThreadPool {
 public:
  // The pool of this process.
  static ThreadPool &shared();

  // Does the tasks from 0 to `count`, on the calling thread and as many others as are free; returns when all are done.
  void run(Task task, void *context, int64_t count, const Crew &crew);

 private:
  class Job;

  ThreadPool();
  void share(Job &&job, int64_t helpers);
  void start_threads(int64_t wanted);
  void serve();

  const cpu_set_t cores_;  // on which threads run unless they are bound
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Job *> open_;  // jobs that still accept threads
  int64_t thread_count_ = 0;
};

}  // namespace penstock
