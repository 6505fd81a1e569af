#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <system_error>
#include <thread>

namespace penstock {

namespace {

using Clock = std::chrono::steady_clock;

// The time for which to run tasks before their duration is used as an estimate: the first tasks take longer, because their data are not
// cached.
constexpr auto kMeasured = std::chrono::microseconds(20);
// The time for which a thread that waits for other threads' last tasks spins before it sleeps: a sleeping thread resumes late.
constexpr auto kAwake = std::chrono::microseconds(50);

// Returns the cores on which a thread may run; 0: the calling thread. The id of a process is that of its first thread.
cpu_set_t cores_of(pid_t thread) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(thread, sizeof(cores), &cores);
  return cores;
}

// Binds the calling thread to a core, and releases it to the cores on which it could run before.
class Binding {
 public:

  explicit Binding(const cpu_set_t &unbound) : unbound_(unbound) {}

  // Binds the thread to a core; negative: releases it.
  void bind(int64_t core) {
    if (core == core_) return;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &cores);
    // An error is ignored: if the core does not exist or is not allowed for this process, the thread's cores do not change.
    sched_setaffinity(0, sizeof(cores), core < 0 ? &unbound_ : &cores);
    core_ = core;
  }

 private:
  const cpu_set_t unbound_;
  int64_t core_ = -1;
};

// Binds the calling thread only while it works on a job, because the thread belongs to the caller.
class CallersBinding {
 public:
  explicit CallersBinding(const Crew &crew) : binding_(crew.core_count ? cores_of(0) : cpu_set_t{}) {
    if (crew.core_count) binding_.bind(crew.cores[0]);
  }
  ~CallersBinding() { binding_.bind(-1); }
  CallersBinding(const CallersBinding &) = delete;
  CallersBinding &operator=(const CallersBinding &) = delete;

 private:
  Binding binding_;
};

// Does tasks on the calling thread until it is clear that the rest takes long enough to wake other threads; returns the number of tasks
// done.
int64_t do_first_tasks(Task task, void *context, int64_t count, int64_t worth_waking_ns) {
  const auto began = Clock::now();
  int64_t done = 0;
  while (done < count) {
    task(context, done++);
    const auto taken = Clock::now() - began;
    const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count();
    if (taken >= kMeasured && double(ns) * double(count - done) > double(worth_waking_ns) * double(done)) break;
  }
  return done;
}

}  // namespace

// A job that threads share. It is on the calling thread's stack until no thread uses it any more.
class ThreadPool::Job {
 public:
  Job(Task task, void *context, int64_t first, int64_t count, int64_t helpers, const Crew &crew)
      : task_(task), context_(context), count_(count), crew_(crew), next_(first), vacancies_(helpers) {}

  void take_tasks() {
    for (int64_t number; (number = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) task_(context_, number);
  }

  // Called by a thread that joins, while it holds the pool's mutex. Returns the core to which to bind the thread; negative: any core.
  int64_t join() {
    const int64_t number = ++joined_;
    --vacancies_;
    at_work_.fetch_add(1, std::memory_order_relaxed);
    return crew_.core_count ? crew_.cores[number % crew_.core_count] : -1;
  }

  bool is_full() const { return vacancies_ == 0; }

  // Called by a thread that has joined, while it holds the pool's mutex: once the mutex is released, the job may no longer exist.
  void leave() {
    if (at_work_.fetch_sub(1, std::memory_order_release) == 1) left_.notify_one();
  }

  // Waits for the threads that have joined; called when no more threads can join. Spins for a while, then sleeps.
  void wait(std::mutex &mutex) {
    const auto end = Clock::now() + kAwake;
    while (at_work_.load(std::memory_order_acquire) && Clock::now() < end) std::this_thread::yield();
    std::unique_lock<std::mutex> lock(mutex);
    left_.wait(lock, [this] { return at_work_.load(std::memory_order_acquire) == 0; });
  }

 private:
  const Task task_;
  void *const context_;
  const int64_t count_;
  const Crew crew_;
  std::atomic<int64_t> next_;       // the first task that no thread has taken
  std::atomic<int64_t> at_work_{0};  // the number of threads besides the calling one; changed only while holding the pool's mutex
  int64_t vacancies_;               // the number of threads that may still join; guarded by the pool's mutex
  int64_t joined_ = 0;              // the number of threads that have joined; guarded by the pool's mutex
  std::condition_variable left_;    // signalled when the last thread has left
};

// A forked child has none of its parent's threads, and the parent may have held the mutex; so the child starts with a new pool. The memory
// of the old pool is not freed, because its state is unknown.
static ThreadPool *current_pool = nullptr;

ThreadPool &ThreadPool::shared() {
  static std::once_flag created;
  std::call_once(created, [] {
    current_pool = new ThreadPool;
    pthread_atfork(nullptr, nullptr, [] { current_pool = new ThreadPool; });
  });
  return *current_pool;
}

// A thread inherits the cores of the thread that starts it, which may be bound to one core at that time; so the cores of the process's
// first thread are used.
ThreadPool::ThreadPool() : cores_(cores_of(getpid())) {}

void ThreadPool::run(Task task, void *context, int64_t count, const Crew &crew) {
  const CallersBinding binding(crew);
  // With more threads than cores, threads would only take turns.
  const int64_t most = crew.core_count ? crew.threads : std::min<int64_t>(crew.threads, CPU_COUNT(&cores_));
  const int64_t worth_waking_ns = most > 1 ? crew.worth_waking_ns : std::numeric_limits<int64_t>::max();
  int64_t done = worth_waking_ns > 0 ? do_first_tasks(task, context, count, worth_waking_ns) : 0;
  const int64_t helpers = std::min(most, count - done) - 1;
  if (helpers > 0) {
    share(Job(task, context, done, count, helpers, crew), helpers);
  } else {
    while (done < count) task(context, done++);
  }
}

void ThreadPool::share(Job &&job, int64_t helpers) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    start_threads(helpers);
    open_.push_back(&job);
  }
  for (int64_t i = 0; i < helpers; ++i) work_.notify_one();
  job.take_tasks();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // From now on, no thread may join: no tasks are left.
    const auto place = std::find(open_.begin(), open_.end(), &job);
    if (place != open_.end()) open_.erase(place);
  }
  job.wait(mutex_);
}

void ThreadPool::start_threads(int64_t wanted) {
  while (thread_count_ < wanted) {
    try {
      std::thread(&ThreadPool::serve, this).detach();
    } catch (const std::system_error &) {
      return;  // the system grants no more threads: the existing ones, or the caller alone, do the work
    }
    ++thread_count_;
  }
}

void ThreadPool::serve() {
  sched_setaffinity(0, sizeof(cores_), &cores_);
  Binding binding(cores_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return !open_.empty(); });
    Job &job = *open_.front();
    const int64_t core = job.join();
    if (job.is_full()) open_.pop_front();
    lock.unlock();
    binding.bind(core);
    job.take_tasks();
    lock.lock();
    job.leave();
  }
}

}  // namespace penstock
