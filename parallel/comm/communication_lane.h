// A second thread of a rank, which communicates while the rank computes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace triptych::parallel {

/// Runs its tasks one after another. After an exception it runs nothing more.
class CommunicationLane {
 public:
  CommunicationLane();
  /// Waits for the running task. Tasks that have not begun are dropped.
  ~CommunicationLane();

  void start(std::function<void()> work);
  /// Returns when so many, of all that were started, have ended. Rethrows an exception of one.
  void wait(std::size_t count);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;  // guarded by mutex_, as all below
  std::size_t ended_ = 0;
  std::exception_ptr failure_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace triptych::parallel
