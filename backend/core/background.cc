#include "background.h"

#include <pthread.h>

#include <utility>

namespace penstock {

BackgroundThreads::BackgroundThreads(const char *name, int64_t count) {
  threads_.reserve(count);
  try {
    for (int64_t i = 0; i < count; ++i) {
      threads_.emplace_back(&BackgroundThreads::serve, this);
      pthread_setname_np(threads_.back().native_handle(), name);
    }
  } catch (...) {
    // Fewer threads than requested can still do all the work; without any thread, it would never be done.
    if (threads_.empty()) throw;
  }
}

BackgroundThreads::~BackgroundThreads() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  work_.notify_all();
  for (std::thread &thread : threads_) thread.join();
}

void BackgroundThreads::submit(std::shared_ptr<Task> task, int64_t times) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back({std::move(task), times});
  }
  work_.notify_one();
}

void BackgroundThreads::serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Queued &next = queue_.front();
    const std::shared_ptr<Task> task = next.task;
    if (--next.times == 0) queue_.pop_front();
    const bool more = !queue_.empty();
    lock.unlock();
    // Each thread wakes the next one: if the caller that submits a task woke all of them, that would delay it.
    if (more) work_.notify_one();
    task->run_once();
    lock.lock();
  }
}

void SharedWork::take_shares() {
  for (int64_t share; (share = taken_.fetch_add(1, std::memory_order_relaxed)) < shares_;) {
    task_(argument_, share);
    if (end_one()) conclude();
  }
}

bool SharedWork::follow(const PenstockCall *calls, int64_t count) {
  calls_ = calls;
  call_count_ = count;
  return end_one();
}

void SharedWork::conclude() {
  status_ = make_calls(calls_, call_count_);
  done_.store(true, std::memory_order_release);
  done_.notify_all();
}

int32_t SharedWork::wait() const {
  while (!is_done()) done_.wait(false, std::memory_order_acquire);
  return status_;
}

int32_t make_calls(const PenstockCall *calls, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t *a = calls[i].arguments;
    const int32_t status = calls[i].function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
    if (status != 0) return status;
  }
  return 0;
}

}  // namespace penstock

// Tasks and work are shared by the caller and the threads, so handles of the C interface are pointers to shared pointers.

using penstock::BackgroundThreads;
using penstock::SharedWork;
using penstock::Task;

struct PenstockThreads : BackgroundThreads {
  using BackgroundThreads::BackgroundThreads;
};
struct PenstockTask {
  std::shared_ptr<Task> task;
};
struct PenstockWork {
  std::shared_ptr<SharedWork> work;
};

extern "C" {

PenstockThreads *penstock_threads_start(const char *name, int64_t count) {
  try {
    return new PenstockThreads(name, count);
  } catch (...) {
    return nullptr;
  }
}

void penstock_threads_close(PenstockThreads *threads) { delete threads; }

PenstockTask *penstock_task_submit(PenstockThreads *threads, PenstockFunction function, void *argument, int64_t times) {
  auto task = std::make_shared<Task>([function, argument] { function(argument); }, times);
  threads->submit(task, times);
  return new PenstockTask{std::move(task)};
}

int32_t penstock_task_is_done(const PenstockTask *task) { return task->task->is_done(); }

void penstock_task_wait(const PenstockTask *task) { task->task->wait(); }

void penstock_task_release(PenstockTask *task) { delete task; }

PenstockWork *penstock_work_create(PenstockShare task, void *argument, int64_t shares) {
  return new PenstockWork{std::make_shared<SharedWork>(task, argument, shares)};
}

void penstock_work_submit(PenstockWork *work, PenstockThreads *threads, int64_t times) {
  threads->submit(std::make_shared<Task>([own = work->work] { own->take_shares(); }, times), times);
}

void penstock_work_help(PenstockWork *work) { work->work->take_shares(); }

int32_t penstock_work_follow(PenstockWork *work, const PenstockCall *calls, int64_t count) {
  return work->work->follow(calls, count);
}

void penstock_work_conclude(PenstockWork *work, PenstockThreads *threads) {
  if (threads == nullptr) {
    work->work->conclude();
  } else {
    threads->submit(std::make_shared<Task>([own = work->work] { own->conclude(); }, 1), 1);
  }
}

int32_t penstock_work_is_done(const PenstockWork *work) { return work->work->is_done(); }

int32_t penstock_work_wait(const PenstockWork *work) { return work->work->wait(); }

void penstock_work_release(PenstockWork *work) { delete work; }

int32_t penstock_make_calls(const PenstockCall *calls, int64_t count) { return penstock::make_calls(calls, count); }

}  // extern "C"
