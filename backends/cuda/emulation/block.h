// One block of threads, run by one thread of the processor. Every CUDA thread is a fiber when it
// has to wait for others. Those that never do share one. Threads run in ascending order, each until
// it waits or ends, or in an order drawn from a seed: a run is the same every time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/emulation/fiber.h"
#include "backends/cuda/emulation/function_ref.h"
#include "backends/cuda/emulation/indices.h"
#include "backends/cuda/emulation/noted_faults.h"
#include "backends/cuda/emulation/racing_stores.h"
#include "backends/cuda/emulation/schedule.h"
#include "core/runtime/kernel_fault.h"

namespace triptych::cuda::emulation {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kMaxThreads = 1024;
inline constexpr std::size_t kMaxSharedBytes = 227 * 1024;  ///< of compute capability 9.0

class AsyncUnits;
class Block;
class ResidentBlocks;

/// True while the calling thread of the processor runs code of a kernel with recorded pieces
/// (kernel_pieces.cpp).
extern constinit thread_local bool runs_kernel;
/// Block::current().
extern constinit thread_local Block* current_block;

/// The calling thread of the processor has left a kernel's own code as long as this lives.
class OutsideKernel {
 public:
  OutsideKernel() : before_(runs_kernel) { runs_kernel = false; }
  ~OutsideKernel() { runs_kernel = before_; }
  OutsideKernel(const OutsideKernel&) = delete;
  OutsideKernel& operator=(const OutsideKernel&) = delete;

 private:
  bool before_;
};

/// Reports of the actions of a block's threads (counters.h). Each call names the thread by
/// threadIdx and its number in the block.
class BlockObserver {
 public:
  virtual ~BlockObserver() = default;
  virtual void begin_block(unsigned threads) = 0;
  virtual void end_block() = 0;
  virtual void thread_ended(unsigned thread) = 0;
  /// The block ends with a fault.
  virtual void failed() = 0;
  /// All threads of the block have come to a barrier.
  virtual void barrier_passed(const Location& where) = 0;
  /// The lanes of `mask` of this warp have come together for something.
  virtual void warp_met(unsigned warp, std::uint32_t mask, WarpWork work) = 0;
  /// True when faults are looked for.
  virtual bool checks() const = 0;
  /// True when it follows the pieces of code that each thread runs.
  virtual bool counts() const = 0;
};

/// Barriers that threads passed while others of their block had ended.
struct SkippedThreads {
  std::uint64_t barriers = 0;
  Location where;      ///< the first of them
  unsigned ended = 0;  ///< threads, at that time
};

class Block {
 public:
  Block();
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// Runs `body` once for each thread of the block `index`. Throws KernelFault when the threads
  /// cannot all end. Their earlier writes stay.
  void run(const char* kernel, const Dim3& grid, const Dim3& threads, const Dim3& index,
           std::size_t shared_bytes, FunctionRef<void()> body, BlockObserver* observer = nullptr);
  /// Sets the schedule of the runs from now on.
  void follow(const Schedule& schedule) {
    if (schedule.keeps_subnormals != schedule_.keeps_subnormals) drop_fibers();
    schedule_ = schedule;
  }
  bool keeps_going() const { return schedule_.keeps_going; }

  /// The block of the thread that runs now.
  static Block& current() { return *current_block; }

  unsigned thread() const { return thread_; }
  unsigned lane() const { return thread_ % kWarp; }
  std::span<std::byte> shared() const { return shared_; }
  /// Places the shared memory of this run there: a kernel of a library brings its own.
  void lay_shared(std::span<std::byte> at) { shared_ = at; }
  /// Messages describe an address of this run by the result of `by`, unless that is empty.
  void describe_by(std::string (*by)(std::uintptr_t address)) { describe_ = by; }
  std::string describe(std::uintptr_t address, const std::string& otherwise) const;
  /// Stack of the thread that runs now.
  std::span<const std::byte> stack() const { return running_->stack(); }
  const char* kernel() const { return kernel_; }
  /// The sum over all runs.
  const SkippedThreads& skipped() const { return skipped_; }
  /// Units independent of its threads (async_units.h).
  AsyncUnits& units();
  /// Where the running thread was last seen.
  const Location& last_place() const { return threads_[thread_].where; }

  void barrier(const Location& where);
  /// Waits for all threads of the grid. `reside` allows it.
  void grid_barrier(const Location& where);
  /// The runs from now on belong to a cooperative launch. nullptr: to none.
  void reside(ResidentBlocks* resident) { resident_ = resident; }
  bool is_resident() const { return resident_ != nullptr; }
  bool exchange(std::uint32_t mask, std::uint64_t value, const Location& where, WarpWork work);
  std::uint64_t exchanged(std::uint32_t mask, unsigned lane, const Location& where);

  /// The running thread reads at this address (0: does something else). One that does nothing but
  /// read the same place again lets others go on, and fails as endless when that does not help.
  void step(const Location& where, std::uintptr_t read = 0) {
    const bool others_turn = tick(where);
    Thread& thread = threads_[thread_];
    if (read != thread.last_read) thread.repeats = 0;
    thread.last_read = read;
    if (read != 0 && ++thread.repeats % kPatience == 0) {
      read_again(where);
    } else if (others_turn) {
      take_turn(where);
    }
  }

  /// The same as pass(), unless more is to do than to count a step: then false. nullptr: the place
  /// is the last one.
  bool pass_at_once(const Location* where) {
    Thread& thread = threads_.data()[thread_];
    if (!racing_.empty() || thread.steps + 1 >= thread.pause) return false;
    ++thread.steps;
    if (where != nullptr) thread.where = *where;
    return true;
  }
  /// Bytes of the running thread's stack behind an address.
  std::size_t depth_of(const void* at) const {
    const auto stack = running_->stack();
    return reinterpret_cast<std::uintptr_t>(stack.data()) + stack.size() -
           reinterpret_cast<std::uintptr_t>(at);
  }
  /// The running thread continues with another part of its kernel, which reads nothing.
  void pass(const Location& where) {
    if (!racing_.empty()) settle_stores({});
    if (tick(where)) take_turn(where);
  }

  /// The running thread reads at this address, and is not observed. It lets others go on when it
  /// sees the same value again and again.
  void poll(const void* address);
  /// Grows whenever a thread comes further than before: where it ends, meets others or waits.
  std::uint64_t progress() const { return progress_; }

  /// Waits until some thread calls signal(). The caller itself checks the condition.
  void wait_for_signal(const Location& where);
  void signal();

  /// Ends the kernel with a fault of this thread. Does not return. It leaves its stack without
  /// unwinding, so nothing on it may own memory: it copies the words.
  [[noreturn]] void fail(FaultKind kind, const Location& where, std::string&& what);
  /// The same, unless the schedule keeps going: then it notes the fault and returns.
  void fault(FaultKind kind, const Location& where, std::string&& what, unsigned other_line = 0);
  /// The running thread races with another. Where both only store, it is a fault when the values
  /// differ, or always (Schedule::strict).
  void race(RacingAccess&& access);
  /// The sum over all runs (Schedule::keeps_going).
  const NotedFaults& noted_faults() const { return noted_; }
  /// The sum over all runs.
  const std::vector<Remark>& equal_stores() const { return racing_.equal(); }
  /// The running thread reads shared memory that nothing wrote.
  void read_undefined(const Location& where, std::string&& what);
  /// The sum over all runs (Schedule::strict).
  const std::vector<Remark>& undefined_reads() const { return undefined_reads_; }
  /// Ends the kernel with this fault at the next barrier or the end of the block, or in the place
  /// of a fault that may follow from it. A race found until then explains it and comes first.
  /// A schedule that keeps going notes it.
  void suspect(FaultKind kind, const Location& where, const std::string& what);

 private:
  /// Times that a thread may read the same place with nothing between, before others go on.
  static constexpr unsigned kPatience = 1024;

  enum class State : std::uint8_t { Unstarted, Ready, AtBarrier, AtWarp, AtSignal, Ended };
  /// Lanes of one warp that exchange values. It is preserved until each of them has continued.
  struct Meeting {
    unsigned warp = 0;
    std::uint32_t mask = 0, arrived = 0;
    int readers = 0;
    Location where;
    std::uint64_t words[kWarp] = {};
  };
  struct Thread {
    Fiber* fiber = nullptr;
    Meeting* meeting = nullptr;  ///< its last
    Location where;              ///< the awaited event, or the last one
    std::uint64_t steps = 0;
    std::uint64_t pause = 0;  ///< the number of steps at which more is to do
    std::uintptr_t last_read = 0;
    unsigned repeats = 0;      ///< of that
    unsigned polls = 0;        ///< of any place
    std::uint32_t polled = 0;  ///< the value that it saw
  };

  void drop_fibers();
  void work();
  void run_threads();
  /// Counts a step. True when it is the others' turn.
  bool tick(const Location& where) {
    if (!racing_.empty()) settle_stores(where);
    Thread& thread = threads_[thread_];
    thread.where = where;
    return ++thread.steps >= thread.pause && pause(thread, where);
  }
  bool pause(Thread& thread, const Location& where);
  /// Looks at racing stores of the running thread, which is not at `where`.
  void settle_stores(const Location& where);
  void read_again(const Location& where);
  void let_others_go_on(const Location& where);
  void take_turn(const Location& where);
  void come_to_barrier(const Location& where, bool of_grid);
  void wait_for_grid();
  bool all_at_barrier() const;
  void open_barrier();
  void suspend(State state, const Location& where);
  void hand_over();
  Fiber& next_fiber();
  Fiber& idle_fiber();
  void make_current(unsigned thread);
  unsigned next_ready() const;
  Fiber* random_fiber();
  void shuffle_threads();
  unsigned draw(unsigned limit);
  void make_ready(unsigned thread);
  Meeting& join(std::uint32_t mask, const Location& where);
  void leave_meeting(Thread& thread);
  void end_with(const KernelFault& fault);
  [[noreturn]] void end_here();
  std::string awaited() const;
  KernelFault deadlock() const;
  KernelFault fault_at(unsigned thread, FaultKind kind, const Location& where,
                       const std::string& what) const;

  const char* kernel_ = "";
  FunctionRef<void()> body_;
  BlockObserver* observer_ = nullptr;
  std::unique_ptr<std::byte[]> own_shared_;  ///< for runs that need any
  std::span<std::byte> shared_;
  std::string (*describe_)(std::uintptr_t address) = nullptr;

  unsigned count_ = 0, unstarted_ = 0, ready_ = 0, at_barrier_ = 0, at_signal_ = 0, ended_ = 0;
  unsigned thread_ = 0;
  std::uint64_t progress_ = 0;
  Schedule schedule_;
  std::uint64_t random_ = 0;
  bool others_first_ = false;  ///< the running thread waits for an action of any other
  bool warp_first_ = false;    ///< it lets the other lanes of its warp go on
  SkippedThreads skipped_;
  std::unique_ptr<AsyncUnits> units_;
  bool uses_units_ = false;

  std::vector<unsigned> order_;  ///< the start order of threads. Empty: ascending
  std::vector<State> states_;
  std::vector<Thread> threads_;  ///< those that have started in this run
  std::vector<Meeting*> gathering_, free_meetings_;
  std::vector<std::unique_ptr<Meeting>> meetings_;
  Location barrier_;  ///< where those that wait at it stand

  Fiber home_;  ///< of run()
  Fiber* running_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::unique_ptr<KernelFault> fault_, suspicion_;
  RacingStores racing_;
  NotedFaults noted_;
  std::vector<Remark> undefined_reads_;
  ResidentBlocks* resident_ = nullptr;  ///< with the other blocks of a cooperative launch
  bool waits_for_grid_ = false;         ///< at barrier_
};

/// The file of a place, from the root of the project where it is part of it.
std::string file_of(const Location& where);

/// Ends the kernel with FaultKind::OutOfBounds of element `index`.
[[noreturn]] void fail_out_of_bounds(std::int64_t index, std::int64_t size, const Location& where);

}  // namespace triptych::cuda::emulation
