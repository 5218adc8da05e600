// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/resident_blocks.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace triptych::cuda::emulation {
namespace {

/// The block that runs on this thread of the processor.
thread_local std::size_t own_block = 0;

}  // namespace

ResidentBlocks::ResidentBlocks(std::size_t blocks, std::function<void()> opened)
    : opened_(std::move(opened)), places_(blocks) {}

void ResidentBlocks::run(const std::function<void(std::size_t)>& body) {
  {
    std::vector<std::jthread> threads;
    threads.reserve(places_.size());
    for (std::size_t block = 0; block < places_.size(); ++block) {
      threads.emplace_back([this, block, &body] { run_block(block, body); });
    }
  }
  if (error_) std::rethrow_exception(error_);
}

void ResidentBlocks::run_block(std::size_t block, const std::function<void(std::size_t)>& body) {
  own_block = block;
  std::unique_lock lock(mutex_);
  await_turn(lock, block);
  if (!error_) {
    lock.unlock();
    std::exception_ptr error;
    try {
      body(block);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) {
      error_ = error;
      absent_ = block;
    }
  }
  places_[block].state = State::Ended;
  pass_turn();
}

std::optional<std::size_t> ResidentBlocks::wait_for_all() {
  const auto block = own_block;
  std::unique_lock lock(mutex_);
  places_[block].state = State::Waiting;
  pass_turn();
  await_turn(lock, block);
  return absent_;
}

/// Gives the turn to the next block that can continue.
void ResidentBlocks::pass_turn() {
  const auto find = [&](std::size_t from, State state) {
    while (from < places_.size() && places_[from].state != state) ++from;
    return from;
  };
  auto next = find(running_ + 1, State::Ready);
  if (next == places_.size()) {
    const auto ended = find(0, State::Ended), waiting = find(0, State::Waiting);
    if (waiting == places_.size()) return;  // all have ended
    if (ended < places_.size() && !absent_) absent_ = ended;
    if (!absent_) opened_();
    for (auto& place : places_) {
      if (place.state == State::Waiting) place.state = State::Ready;
    }
    next = waiting;
  }
  running_ = next;
  places_[next].turn.notify_one();
}

void ResidentBlocks::await_turn(std::unique_lock<std::mutex>& lock, std::size_t block) {
  auto& place = places_[block];
  place.turn.wait(lock, [&] { return running_ == block && place.state == State::Ready; });
}

}  // namespace triptych::cuda::emulation
