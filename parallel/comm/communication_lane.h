// A thread beside a rank's own, on which its communication goes on while the rank computes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace triptych::parallel {

/// Runs what it is given one after another. After an exception it runs nothing more.
class CommunicationLane {
 public:
  CommunicationLane();
  /// Waits for what is running. What was not begun is dropped.
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
