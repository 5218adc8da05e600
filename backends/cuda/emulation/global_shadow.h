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

  GlobalShadow() = default;
  ~GlobalShadow() { clear(); }
  GlobalShadow(const GlobalShadow&) = delete;
  GlobalShadow& operator=(const GlobalShadow&) = delete;

  /// `is_alone`: one thread of the processor at a time runs blocks.
  void begin_launch(bool is_alone);
  bool is_alone() const { return is_alone_; }
  std::uint64_t launch() const { return launch_; }
  Page& page(std::uintptr_t number);
  /// A block publishes its earlier actions (__threadfence), which others may observe through an
  /// atomic operation: from now on none of them is a race.
  void fence(std::uint64_t block);
  bool has_fenced(std::uint64_t block);
  bool any_has_fenced();

 private:
  void clear();

  std::uint64_t launch_ = 0;
  bool is_alone_ = false;
  std::mutex mutex_;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::unordered_set<std::uint64_t> fenced_;
};

class GlobalWindow {
 public:
  explicit GlobalWindow(GlobalShadow& shadow) : shadow_(shadow) {}

  void begin_block();
  /// Notes a plain access to a whole word where it is clear at once that it races with none: only
  /// the running block has used the word, or several have read it.
  bool note_at_once(Access access, std::uintptr_t address, unsigned line);
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

  static constexpr std::size_t kKnown = 64;

  GlobalShadow& shadow_;
  std::uint64_t block_ = 0;  ///< the running one's number plus 1, at its place in an access
  std::array<Known, kKnown> known_{};
};

/// An access as a number: block 32 bits, relaxed 1, line 24, bytes of the word 4. A block is its
/// number plus 1.
struct PackedAccess {
  static constexpr std::uint64_t kSeveral = 0xFFFFFFFF;  ///< blocks
  static constexpr std::uint64_t kRelaxed = 1U << 28, kWholeWord = 0xF;
  static constexpr unsigned kLineShift = 4, kBlockShift = 32;
  static constexpr std::uint64_t kSeveralBlocks = kSeveral << kBlockShift;
  static constexpr std::uint64_t line_bits(unsigned line) {
    return (std::uint64_t{line} & 0xFFFFFF) << kLineShift;
  }
};

inline bool GlobalWindow::note_at_once(Access access, std::uintptr_t address, unsigned line) {
  const auto number = address / GlobalShadow::kPageBytes;
  const Known& known = known_[number % kKnown];
  if (known.number != number || known.launch != shadow_.launch() || !shadow_.is_alone()) {
    return false;
  }
  auto& word = (*known.page)[address % GlobalShadow::kPageBytes / 4];
  const auto written = word.written.load(std::memory_order_relaxed);
  const auto read = word.read.load(std::memory_order_relaxed);
  const auto is_own = [&](std::uint64_t before) {
    return before == 0 || (before ^ block_) >> PackedAccess::kBlockShift == 0;
  };
  if (!is_own(written)) return false;
  const auto mine = block_ | PackedAccess::line_bits(line) | PackedAccess::kWholeWord;
  if (is_own(read)) {
    (access == Access::Load ? word.read : word.written).store(mine, std::memory_order_relaxed);
    return true;
  }
  return access == Access::Load && written == 0 && read >= PackedAccess::kSeveralBlocks &&
         (read & PackedAccess::kRelaxed) == 0 &&
         (read & PackedAccess::kWholeWord) == PackedAccess::kWholeWord;
}

}  // namespace triptych::cuda::emulation
