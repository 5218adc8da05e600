// A grid at work: blocks one after another, the warps of a block in turns, the lanes of a warp
// together where they stand at the same instruction. Of lanes at different ones, those that are
// behind run first. Asynchronous work of the hardware happens here as late as possible: copies when
// somebody waits for them, products of a warpgroup at the wait that covers them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "tests/ptx/async.h"
#include "tests/ptx/memory.h"
#include "tests/ptx/program.h"

namespace triptych::ptx {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

struct Launch {
  const Program& program;
  GlobalMemory& memory;
  Dim3 grid, block;
  std::size_t shared_bytes = 0;  ///< in addition to the kernel's declaration
  std::vector<std::byte> parameters;
};

/// Runs the whole grid. Throws Fault with kernel, line, instruction, block and warp.
void run(const Launch& launch);

class Block;

class Warp {
 public:
  enum class State { Ready, AtBarrier, Done };

  Warp(Block& block, int index);

  void begin();
  /// Runs until it is done, waits at a barrier, or gives others a turn.
  void run();

  State state() const { return state_; }
  void leave_barrier() { state_ = State::Ready; }
  int barrier() const { return barrier_; }
  std::uint32_t live() const { return live_; }
  int index() const { return index_; }
  Block& block() { return block_; }
  int line() const;

  // Parts of steps.
  template <class T>
  T* lanes(const Slot& slot) {
    auto* memory = slot.constant ? constants_ : registers_;
    return reinterpret_cast<T*>(memory + slot.offset);
  }
  std::uint32_t predicate(const Slot& slot) {
    const auto bits = *lanes<std::uint32_t>(slot);
    return slot.negated ? ~bits : bits;
  }
  void set_predicate(const Slot& slot, std::uint32_t mask, std::uint32_t bits) {
    auto& word = *lanes<std::uint32_t>(slot);
    word = (word & ~mask) | (bits & mask);
  }
  /// The memory behind an address of a lane. Throws Fault when it is not there or not aligned.
  std::byte* memory(Space space, std::uint64_t address, std::size_t bytes, int lane);
  /// Address that at[place] and offsets[place] of a step give for a lane.
  std::uint64_t address_of(const Step& step, int lane, std::size_t place = 0);

  void branch(std::uint32_t mask, std::size_t target);
  void exit(std::uint32_t mask);
  void wait_at_barrier(int number);
  /// The lanes wait for something that others must do first: those get a turn.
  void give_way() { gives_way_ = true; }
  /// The step is done again when the warp has its next turn.
  void repeat_later() {
    --pc_;
    gives_way_ = true;
  }

  LaneCopies& copies(int lane) { return copies_[static_cast<std::size_t>(lane)]; }
  int registers_per_thread = 0;    ///< from setmaxnreg, 0 before the first
  bool products_fenced = false;    ///< a wgmma.fence after the last wait
  std::size_t products_begun = 0;  ///< of the warpgroup's list
  std::size_t groups_begun = 0;

 private:
  /// Lanes that stand at one instruction.
  struct Split {
    std::size_t pc;
    std::uint32_t mask;
    bool waits;   ///< for other lanes, to do a step together
    bool sleeps;  ///< has given way
  };

  void run_steps();
  /// Chooses who runs next. False when nobody is left.
  bool reschedule();
  /// Puts the lanes aside that are at a later or another place, until all that belong are here.
  bool gathered(const Step& step, std::uint32_t active);
  [[noreturn]] void explain(const std::string& what);

  Block& block_;
  int index_;
  State state_ = State::Ready;
  int barrier_ = 0;
  std::vector<std::byte> register_memory_, local_;
  std::byte* registers_ = nullptr;
  std::byte* constants_ = nullptr;
  std::uint32_t live_ = 0, mask_ = 0;
  std::size_t pc_ = 0, next_pc_ = 0, current_ = 0;
  std::vector<Split> parked_;
  bool gives_way_ = false;
  std::array<LaneCopies, kLanes> copies_;
};

class Block {
 public:
  explicit Block(const Launch& launch);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void run(Dim3 index);

  const Launch& launch() const { return launch_; }
  Dim3 index() const { return index_; }
  std::byte* shared(std::uint64_t address, std::size_t bytes);
  std::span<const std::unique_ptr<Warp>> warps() const { return warps_; }
  AsyncUnits& async() { return async_; }
  /// Something happened that others may wait for.
  void progress() { progress_ = true; }

 private:
  void release_barriers();
  [[noreturn]] void explain_deadlock();

  const Launch& launch_;
  Dim3 index_;
  std::vector<std::byte> shared_;
  std::vector<std::unique_ptr<Warp>> warps_;
  AsyncUnits async_;
  bool progress_ = false;
};

/// f(lane) for every lane of the mask.
template <class F>
inline void for_lanes(std::uint32_t mask, F&& f) {
  if (mask == 0xFFFFFFFFU) {
#pragma GCC ivdep
    for (int lane = 0; lane < kLanes; ++lane) f(lane);
  } else {
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane & 1U) != 0) f(lane);
    }
  }
}

}  // namespace triptych::ptx
