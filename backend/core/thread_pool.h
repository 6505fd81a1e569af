// The threads that share the tasks of a job.

#pragma once

#include <sched.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

namespace penstock {

// A function that does one of several tasks.
using Task = void (*)(void *context, int64_t number);

// The number of threads that do the tasks of a job, and the cores on which they run.
struct Crew {
  int64_t threads;          // the maximum number of threads, including the calling one
  int64_t worth_waking_ns;  // other threads are woken only if the calling thread would need longer than this for the rest
  const int64_t *cores;     // the cores to which threads are bound in turn, the calling one first
  int64_t core_count;       // 0: threads are not bound
};

// Threads that all pipelines of the process share. They are started when they are first needed, and sleep while there is no work.
class ThreadPool {
 public:
  // Returns the pool of this process.
  static ThreadPool &shared();

  // Does tasks 0 to `count - 1` on the calling thread and as many others as are free and allowed; returns when all are done.
  void run(Task task, void *context, int64_t count, const Crew &crew);

 private:
  class Job;

  ThreadPool();
  void share(Job &&job, int64_t helpers);
  void start_threads(int64_t wanted);
  void serve();

  const cpu_set_t cores_;  // the cores on which threads run unless they are bound
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Job *> open_;  // jobs that still accept threads
  int64_t thread_count_ = 0;
};

}  // namespace penstock
