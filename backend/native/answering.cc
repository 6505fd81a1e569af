#include "answering.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

namespace penstock {
namespace {

// More threads would not copy faster: the GPU's bus and memory are the limit.
constexpr size_t kMostThreads = 8;
// The largest number of batches in the line of an instance, not counting the batch that it is computing. More would take too much memory
// for answers.
constexpr size_t kMostBatches = 2;

size_t cores() {
  cpu_set_t own;
  return sched_getaffinity(0, sizeof(own), &own) == 0 ? static_cast<size_t>(CPU_COUNT(&own)) : 1;
}

// The threads that send answers, started as needed. Never destroyed: at the end of the process, they may still be running.
class Threads {
 public:
  void add(std::function<void()> work) {
    {
      std::unique_lock<std::mutex> alone(alone_);
      if (idle_ <= work_.size() && threads_.size() < limit_) start();
      if (!threads_.empty()) {
        work_.push_back(std::move(work));
        changed_.notify_one();
        return;
      }
    }
    work();
  }

  void end() {
    std::vector<std::thread> threads;
    {
      std::lock_guard<std::mutex> alone(alone_);
      threads.swap(threads_);
      ending_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads) thread.join();
    std::lock_guard<std::mutex> alone(alone_);
    ending_ = false;
  }

 private:
  void start() {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {
      // The system grants no thread: the threads that exist do the work, or the caller if there are none.
    }
  }

  void run() {
    std::unique_lock<std::mutex> alone(alone_);
    while (true) {
      ++idle_;
      changed_.wait(alone, [this] { return ending_ || !work_.empty(); });
      --idle_;
      if (work_.empty()) return;
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      alone.unlock();
      work();
      alone.lock();
    }
  }

  const size_t limit_ = std::min(cores(), kMostThreads);
  std::mutex alone_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool ending_ = false;
};

Threads& threads() {
  static Threads* only = new Threads;
  return *only;
}

// The number of batches in all lines.
struct Count {
  std::mutex alone;
  std::condition_variable changed;
  size_t batches = 0;

  void add(int change) {
    std::lock_guard<std::mutex> held(alone);
    batches += static_cast<size_t>(change);
    changed.notify_all();
  }
};

Count& count() {
  static Count* only = new Count;
  return *only;
}

}  // namespace

void do_soon(std::function<void()> work) { threads().add(std::move(work)); }

void end_answering_threads() { threads().end(); }

void Line::join(std::function<void()> begin) {
  std::unique_lock<std::mutex> alone(alone_);
  changed_.wait(alone, [this] { return present_ < kMostBatches; });
  ++present_;
  count().add(1);
  waiting_.push_back(std::move(begin));
  if (waiting_.size() > 1) return;
  const std::function<void()> first = waiting_.front();
  alone.unlock();
  first();
}

void Line::answered() {
  std::unique_lock<std::mutex> alone(alone_);
  waiting_.pop_front();
  const std::function<void()> first = waiting_.empty() ? nullptr : waiting_.front();
  alone.unlock();
  if (first) first();
}

void Line::leave() {
  std::lock_guard<std::mutex> alone(alone_);
  --present_;
  count().add(-1);
  // Notifies while holding the lock: once it is free, a thread that has waited for the last batch may destroy this object.
  changed_.notify_all();
}

bool Line::is_empty() {
  std::lock_guard<std::mutex> alone(alone_);
  return present_ == 0;
}

void Line::wait_until_empty() {
  std::unique_lock<std::mutex> alone(alone_);
  changed_.wait(alone, [this] { return present_ == 0; });
}

bool wait_for_answers(double seconds) {
  std::unique_lock<std::mutex> held(count().alone);
  return count().changed.wait_for(held, std::chrono::duration<double>(seconds), [] { return count().batches == 0; });
}

}  // namespace penstock
