#include "in_flight.h"

#include <system_error>

namespace penstock {
namespace {

constexpr size_t kMostLeft = 1;

}  // namespace

BatchesInFlight::~BatchesInFlight() {
  {
    std::lock_guard<std::mutex> alone(alone_);
    ending_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void BatchesInFlight::add(std::function<void()> complete) {
  std::unique_lock<std::mutex> alone(alone_);
  if (!start()) {
    alone.unlock();
    complete();
    return;
  }
  batches_.push_back(std::move(complete));
  changed_.notify_all();
  changed_.wait(alone, [this] { return batches_.size() <= kMostLeft; });
}

bool BatchesInFlight::is_empty() {
  std::lock_guard<std::mutex> alone(alone_);
  return batches_.empty();
}

void BatchesInFlight::wait_until_empty() {
  std::unique_lock<std::mutex> alone(alone_);
  changed_.wait(alone, [this] { return batches_.empty(); });
}

bool BatchesInFlight::start() {
  if (thread_.joinable()) return true;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void BatchesInFlight::run() {
  std::unique_lock<std::mutex> alone(alone_);
  while (true) {
    changed_.wait(alone, [this] { return ending_ || !batches_.empty(); });
    if (batches_.empty()) return;
    const std::function<void()>& complete = batches_.front();
    alone.unlock();
    complete();
    alone.lock();
    batches_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace penstock
