#include "thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <system_error>

namespace penstock {

struct ThreadPool::Job {
  Job(Task task, void *context, int64_t count, const Crew &crew)
      : task(task), context(context), count(count), crew(crew), vacancies(std::min(crew.threads, count) - 1) {}

  const Task task;
  void *const context;
  const int64_t count;
  const Crew crew;
  int64_t vacancies;               // how many more threads may join; guarded by the pool's mutex
  int64_t helpers = 0;             // threads at work besides the caller; guarded by the pool's mutex
  std::atomic<int64_t> next{0};    // the first task that nobody has taken
  std::condition_variable helped;  // the last helper has left

  // The core for the next thread that joins; negative: any.
  int64_t next_core() const {
    return crew.core_count ? crew.cores[(crew.threads - 1 - vacancies) % crew.core_count] : -1;
  }

  void take_tasks() {
    for (int64_t number; (number = next.fetch_add(1, std::memory_order_relaxed)) < count;) task(context, number);
  }
};

namespace {

// A forked child has none of its parent's threads, and its parent may have held the mutex: it starts with a new pool. The old one's
// memory is left alone, as it cannot be told what state it is in.
ThreadPool *current_pool = nullptr;

// Where a thread may run: where the process may, or on one core.
class Binding {
 public:
  Binding() { sched_getaffinity(0, sizeof(unbound_), &unbound_); }

  void bind(int64_t core) {
    if (core == core_) return;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &cores);
    // A core that is not there, or not for this process, is as good as any.
    sched_setaffinity(0, sizeof(cores), core < 0 ? &unbound_ : &cores);
    core_ = core;
  }

 private:
  cpu_set_t unbound_;
  int64_t core_ = -1;
};

}  // namespace

ThreadPool &ThreadPool::shared() {
  static std::once_flag created;
  std::call_once(created, [] {
    current_pool = new ThreadPool;
    pthread_atfork(nullptr, nullptr, [] { current_pool = new ThreadPool; });
  });
  return *current_pool;
}

void ThreadPool::run(Task task, void *context, int64_t count, const Crew &crew) {
  Job job(task, context, count, crew);
  if (job.vacancies <= 0) {
    job.take_tasks();
    return;
  }
  const int64_t wanted = job.vacancies;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    start_threads(static_cast<size_t>(wanted));
    open_.push_back(&job);
  }
  for (int64_t i = 0; i < wanted; ++i) work_.notify_one();
  job.take_tasks();
  std::unique_lock<std::mutex> lock(mutex_);
  // From now on nobody joins, as there is nothing left to take.
  const auto place = std::find(open_.begin(), open_.end(), &job);
  if (place != open_.end()) open_.erase(place);
  job.helped.wait(lock, [&job] { return job.helpers == 0; });
}

void ThreadPool::start_threads(size_t wanted) {
  while (thread_count_ < wanted) {
    try {
      std::thread(&ThreadPool::serve, this).detach();
    } catch (const std::system_error &) {
      return;  // The system refuses more threads: those that there are, or the caller alone, do the work.
    }
    ++thread_count_;
  }
}

void ThreadPool::serve() {
  Binding binding;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return !open_.empty(); });
    Job &job = *open_.front();
    const int64_t core = job.next_core();
    ++job.helpers;
    if (--job.vacancies == 0) open_.pop_front();
    lock.unlock();
    binding.bind(core);
    job.take_tasks();
    lock.lock();
    // The job may be gone as soon as the mutex is released.
    if (--job.helpers == 0) job.helped.notify_one();
  }
}

}  // namespace penstock
