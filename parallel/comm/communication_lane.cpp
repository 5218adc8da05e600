// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/communication_lane.h"

#include <utility>

namespace triptych::parallel {

CommunicationLane::CommunicationLane() : thread_([this] { run(); }) {}

CommunicationLane::~CommunicationLane() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CommunicationLane::start(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void CommunicationLane::wait(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ >= count || failure_; });
  if (ended_ < count) std::rethrow_exception(failure_);
}

void CommunicationLane::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || (!waiting_.empty() && !failure_); });
    if (closing_) return;
    const auto work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    if (!failure) ++ended_;
    changed_.notify_all();
  }
}

}  // namespace triptych::parallel
