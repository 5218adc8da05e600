// Blocks of a cooperative launch: all are resident at once, each on a thread of the processor. They
// take turns in ascending order, from one barrier of the grid to the next: every run is the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>

namespace triptych::cuda::emulation {

class ResidentBlocks {
 public:
  /// `opened` is called at each barrier of the grid, when all blocks have come.
  ResidentBlocks(std::size_t blocks, std::function<void()> opened);

  /// Runs `body` for each block, on a thread of its own. Throws the first error.
  void run(const std::function<void(std::size_t block)>& body);
  /// The running block waits for all others. The number of a block that has ended and never comes,
  /// or of one with an error.
  std::optional<std::size_t> wait_for_all();

 private:
  enum class State { Ready, Waiting, Ended };
  struct Place {
    State state = State::Ready;
    std::condition_variable turn;
  };

  void run_block(std::size_t block, const std::function<void(std::size_t)>& body);
  void pass_turn();
  void await_turn(std::unique_lock<std::mutex>& lock, std::size_t block);

  std::function<void()> opened_;
  std::mutex mutex_;
  std::deque<Place> places_;
  std::size_t running_ = 0;
  std::optional<std::size_t> absent_;  ///< a block that the others wait for in vain
  std::exception_ptr error_;
};

}  // namespace triptych::cuda::emulation
