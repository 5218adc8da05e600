// History of every word of global memory since a launch began: the blocks that wrote and read
// it. Nothing orders the blocks of one launch, so a word that one block writes belongs to that
// block alone, except for relaxed accesses (access_order.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "backends/cuda/emulation/counters.h"
#include "backends/cuda/emulation/indices.h"

namespace triptych::cuda::emulation {

class Block;

/// Shared by the processor's threads. Each of them uses a GlobalWindow.
class GlobalShadow {
 public:
  static constexpr std::uintptr_t kPageBytes = 4096;

  /// Who did it, as one number. 0: nobody.
  struct Word {
    std::atomic<std::uint64_t> written{0}, read{0};
  };
  using Page = std::array<Word, kPageBytes / 4>;

  void begin_launch();
  std::uint64_t launch() const { return launch_; }
  Page& page(std::uintptr_t number);
  /// A block publishes its earlier actions (__threadfence), which others may observe through an
  /// atomic operation: from now on none of them is a race.
  void fence(std::uint64_t block);
  bool has_fenced(std::uint64_t block);
  bool any_has_fenced();

 private:
  std::uint64_t launch_ = 0;
  std::mutex mutex_;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::unordered_set<std::uint64_t> fenced_;
};

class GlobalWindow {
 public:
  explicit GlobalWindow(GlobalShadow& shadow) : shadow_(shadow) {}

  /// Reports races to the running block.
  void access(Access access, std::uintptr_t address, std::uintptr_t bytes, const Location& where,
              bool relaxed);
  /// The running block fences.
  void fence();

 private:
  struct Known {
    std::uintptr_t number = 0;
    std::uint64_t launch = 0;
    GlobalShadow::Page* page = nullptr;
  };
  GlobalShadow::Word& word_at(std::uintptr_t address);

  GlobalShadow& shadow_;
  std::array<Known, 64> known_{};
};

}  // namespace triptych::cuda::emulation
