// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/block.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "backends/cuda/emulation/async_units.h"
#include "backends/cuda/emulation/resident_blocks.h"
#include "backends/cuda/emulation/thread_order.h"
#include "backends/host/flush_subnormals.h"

namespace triptych::cuda::emulation {
namespace {

/// Enough for kernels, which hold their tiles in a few kilobytes of local arrays.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStackBytes = 256 * 1024;
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif

/// Bytes at the end of a stack that no thread should reach: a stack without a closed page has only
/// these to show an overflow.
constexpr std::size_t kReserve = 512;

bool has_overflowed(const std::unique_ptr<Fiber>& fiber) {
  return std::ranges::any_of(fiber->stack().first(kReserve),
                             [](std::byte each) { return each != std::byte{0}; });
}

/// Times that a thread may read the same place with nothing between.
constexpr unsigned kMostRepeats = 1U << 20;
/// Times that a thread that nobody observes may see the same value, before others go on.
constexpr unsigned kPolls = 64;

/// The next number in descending order with the state `wanted`: from `from` down to `first`, from
/// `last` on down to `from`, then all others.
template <class States, class State>
unsigned last_of(const States& states, State wanted, unsigned from, unsigned first, unsigned last) {
  const auto size = static_cast<unsigned>(states.size());
  for (auto [begin, end] : {std::pair(first, from), std::pair(from, last), std::pair(last, size),
                            std::pair(0U, first)}) {
    while (end > begin && states[end - 1] != wanted) --end;
    if (end > begin) return end - 1;
  }
  return size;
}

}  // namespace

constinit thread_local bool runs_kernel = false;
constinit thread_local Block* current_block = nullptr;

void barrier(const Location& where) {
  const OutsideKernel outside;
  current_block->barrier(where);
}

bool exchange(std::uint32_t mask, std::uint64_t value, const Location& where, WarpWork work) {
  const OutsideKernel outside;
  return current_block->exchange(mask, value, where, work);
}

std::uint64_t exchanged(std::uint32_t mask, unsigned lane, const Location& where) {
  const OutsideKernel outside;
  return current_block->exchanged(mask, lane, where);
}

std::string file_of(const Location& where) {
  const std::string name = where.file_name();
  const auto root = name.rfind("backends/cuda/");
  return root == std::string::npos ? name : name.substr(root);
}

unsigned lane_index() { return current_block->lane(); }

void fail_out_of_bounds(std::int64_t index, std::int64_t size, const Location& where) {
  current_block->fail(FaultKind::OutOfBounds, where,
                      fmt::format("element {} of an array of {}", index, size));
}

Block::Block() = default;
Block::~Block() = default;

void Block::run(const char* kernel, const Dim3& grid, const Dim3& threads, const Dim3& index,
                std::size_t shared_bytes, FunctionRef<void()> body, BlockObserver* observer) {
  kernel_ = kernel;
  body_ = body;
  observer_ = observer;
  if (own_shared_ == nullptr && shared_bytes > 0)
    own_shared_ = std::make_unique<std::byte[]>(kMaxSharedBytes);
  shared_ = {own_shared_.get(), shared_bytes};
  describe_ = nullptr;
  count_ = static_cast<unsigned>(threads.count());
  unstarted_ = ready_ = at_barrier_ = at_signal_ = ended_ = 0;
  states_.assign(count_, State::Unstarted);
  if (threads_.size() < count_) threads_.resize(count_);
  uses_units_ = false;
  gridDim = grid;
  blockDim = threads;
  blockIdx = index;
  shuffle_threads();
  current_block = this;
  if (observer_ != nullptr) observer_->begin_block(count_);
  const SubnormalMode mode(!schedule_.keeps_subnormals);  // new fibers begin with it
  (running_ = &idle_fiber())->resume(home_);
  runs_kernel = false;  // also when a fault has left a kernel in its middle
  if (fault_ == nullptr) fault_ = std::move(suspicion_);
  if (fault_ == nullptr && resident_ != nullptr && std::ranges::any_of(fibers_, has_overflowed)) {
    fault_ = std::make_unique<KernelFault>(fault_at(
        thread_, FaultKind::StackOverflow, threads_[thread_].where,
        fmt::format("local arrays and calls of a thread of the block take more than {} KiB",
                    kStackBytes / 1024)));
  }
  if (fault_ != nullptr) {
    if (observer_ != nullptr) observer_->failed();
    // The other threads stand somewhere in the kernel for ever.
    drop_fibers();
    gathering_.clear();
    free_meetings_.clear();
    meetings_.clear();
    racing_.clear();
    throw KernelFault(*std::exchange(fault_, nullptr));
  }
  if (observer_ != nullptr) observer_->end_block();
}

std::string Block::describe(std::uintptr_t address, const std::string& otherwise) const {
  const auto known = describe_ == nullptr ? std::string() : describe_(address);
  return known.empty() ? otherwise : known;
}

AsyncUnits& Block::units() {
  if (units_ == nullptr) units_ = std::make_unique<AsyncUnits>(*this);
  if (!uses_units_) {
    units_->begin_block(count_, schedule_.operands, observer_ != nullptr && observer_->checks());
  }
  uses_units_ = true;
  return *units_;
}

Fiber& Block::idle_fiber() {
  if (idle_.empty()) {
    const auto entry = [](void* block) { static_cast<Block*>(block)->work(); };
    fibers_.push_back(std::make_unique<Fiber>(kStackBytes, entry, this));
    idle_.push_back(fibers_.back().get());
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return *fiber;
}

/// A fiber keeps the mode of subnormals in which it began.
void Block::drop_fibers() {
  fibers_.clear();
  idle_.clear();
}

void Block::work() {
  for (;;) {
    run_threads();
    idle_.push_back(running_);
    hand_over();
  }
}

/// Starts threads, one after the other: a thread that never waits is followed by the next on the
/// same stack.
void Block::run_threads() {
  while (unstarted_ < count_) {
    const auto place = unstarted_++;
    const auto thread = order_.empty() ? place : order_[place];
    threads_[thread] = {.fiber = running_};
    make_current(thread);
    runs_kernel = observer_ != nullptr && observer_->counts();
    body_();
    runs_kernel = false;
    if (!racing_.empty()) settle_stores({});
    if (uses_units_) units_->thread_ended(ended_ + 1 == count_);
    leave_meeting(threads_[thread]);
    states_[thread] = State::Ended;
    ++ended_;
    ++progress_;
    if (observer_ != nullptr) observer_->thread_ended(thread);
    if (schedule_.barriers_skip_ended && at_barrier_ > 0 && all_at_barrier()) open_barrier();
  }
}

void Block::make_current(unsigned thread) {
  thread_ = thread;
  threadIdx = index_in(blockDim, thread);
}

/// The running thread waits until somebody makes it ready.
void Block::suspend(State state, const Location& where) {
  const auto self = thread_;
  states_[self] = state;
  threads_[self].where = where;
  hand_over();
  make_current(self);
}

void Block::hand_over() {
  Fiber& self = *running_;
  Fiber& next = next_fiber();
  if (&next == &self) return;
  running_ = &next;
  next.resume(self);
}

/// The start order of threads.
void Block::shuffle_threads() {
  order_.clear();
  if (schedule_.seed == kAscending) return;
  if (schedule_.seed == kDescending) {
    for (unsigned thread = count_; thread-- > 0;) order_.push_back(thread);
    return;
  }
  // Each block has an order of its own.
  random_ = schedule_.seed * 0x9E3779B97F4A7C15U + blockIdx.x + 1;
  for (unsigned thread = 0; thread < count_; ++thread) order_.push_back(thread);
  for (unsigned left = count_; left > 1; --left) std::swap(order_[left - 1], order_[draw(left)]);
}

/// Below `limit` (splitmix64).
unsigned Block::draw(unsigned limit) {
  random_ += 0x9E3779B97F4A7C15U;
  auto word = random_;
  word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9U;
  word = (word ^ word >> 27) * 0x94D049BB133111EBU;
  return static_cast<unsigned>((word ^ word >> 31) % limit);
}

/// Any that is ready, or that was not started. None where nobody can go on.
Fiber* Block::random_fiber() {
  const auto choices = ready_ + (unstarted_ < count_ ? 1 : 0);
  if (choices == 0) return nullptr;
  auto choice = draw(choices);
  if (choice == ready_) return &idle_fiber();
  for (unsigned thread = 0;; ++thread) {
    if (states_[thread] != State::Ready) continue;
    if (choice-- > 0) continue;
    --ready_;
    return threads_[thread].fiber;
  }
}

/// The next to run: a lane of this warp, then a thread that has not started, then any other.
Fiber& Block::next_fiber() {
  if (fault_ != nullptr || ended_ == count_) return home_;
  if (std::exchange(others_first_, false)) {
    if (unstarted_ < count_) return idle_fiber();
    auto next = (thread_ + 1) % count_;
    while (states_[next] != State::Ready) next = (next + 1) % count_;
    --ready_;
    return *threads_[next].fiber;
  }
  if (std::exchange(warp_first_, false)) {
    --ready_;
    return *threads_[next_ready()].fiber;
  }
  if (schedule_.seed != kAscending && schedule_.seed != kDescending) {
    if (Fiber* fiber = random_fiber(); fiber != nullptr) return *fiber;
    end_with(deadlock());
    return home_;
  }
  const auto ready = ready_ > 0 ? next_ready() : count_;
  const bool neighbour = ready < count_ && ready / kWarp == thread_ / kWarp;
  if (unstarted_ < count_ && !neighbour) return idle_fiber();
  if (ready < count_) {
    --ready_;
    return *threads_[ready].fiber;
  }
  end_with(deadlock());
  return home_;
}

/// In the order of their numbers, from the running one on. Lanes of its own warp first.
unsigned Block::next_ready() const {
  if (schedule_.seed == kDescending) {
    return last_of(states_, State::Ready, thread_, thread_ / kWarp * kWarp,
                   std::min(count_, (thread_ / kWarp + 1) * kWarp));
  }
  const auto first = states_.begin() + thread_ / kWarp * kWarp;
  const auto last = states_.begin() + std::min(count_, (thread_ / kWarp + 1) * kWarp);
  const auto after = states_.begin() + thread_ + 1;
  const auto number = [&](auto at) { return static_cast<unsigned>(at - states_.begin()); };
  if (const auto at = std::find(after, last, State::Ready); at != last) return number(at);
  if (const auto at = std::find(first, after, State::Ready); at != after) return number(at);
  if (const auto at = std::find(last, states_.end(), State::Ready); at != states_.end()) {
    return number(at);
  }
  return number(std::find(states_.begin(), first, State::Ready));
}

void Block::make_ready(unsigned thread) {
  states_[thread] = State::Ready;
  ++ready_;
}

/// The thread has come to the number of steps that was set. True when it is the others' turn.
bool Block::pause(Thread& thread, const Location& where) {
  if (thread.steps > schedule_.most_steps) {
    fail(FaultKind::Endless, where,
         fmt::format("the thread has not ended after {} accesses, branches and waits; the last are "
                     "here",
                     schedule_.most_steps));
  }
  const auto turn = schedule_.turn;
  thread.pause = schedule_.most_steps + 1;
  if (turn == 0) return false;
  thread.pause = std::min(thread.pause, (thread.steps / turn + 1) * turn);
  return thread.steps % turn == 0;
}

void Block::let_others_go_on(const Location& where) {
  make_ready(thread_);
  others_first_ = true;
  suspend(State::Ready, where);
}

void Block::take_turn(const Location& where) {
  if (threads_[thread_].steps <= schedule_.last_turn) return let_others_go_on(where);
  if (ready_ == 0 || next_ready() == thread_ || next_ready() / kWarp != thread_ / kWarp) return;
  make_ready(thread_);
  warp_first_ = true;
  suspend(State::Ready, where);
}

/// Perhaps another thread writes the value that this one polls.
void Block::read_again(const Location& where) {
  if (threads_[thread_].repeats >= kMostRepeats) {
    fail(FaultKind::Endless, where,
         fmt::format("reads the same place {} times and does nothing else; no thread that can run "
                     "changes it, another block may come after this one, and the host continues "
                     "after the launch",
                     kMostRepeats));
  }
  let_others_go_on(where);
}

void Block::poll(const void* address) {
  Thread& thread = threads_[thread_];
  // The aligned word is on the same page.
  const auto at = reinterpret_cast<std::uintptr_t>(address) & ~std::uintptr_t{3};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that the kernel reads next
  const auto value = *reinterpret_cast<const volatile std::uint32_t*>(at);
  const bool is_same = at == thread.last_read && value == thread.polled;
  thread.last_read = at;
  thread.polled = value;
  thread.repeats = is_same ? thread.repeats + 1 : 0;
  const bool waits = thread.repeats >= kPolls;
  if (waits) thread.repeats = 0;
  if (waits || ++thread.polls % kPatience == 0) let_others_go_on(thread.where);
}

void Block::barrier(const Location& where) { come_to_barrier(where, false); }

void Block::grid_barrier(const Location& where) {
  if (resident_ == nullptr) {
    fail(FaultKind::DivergentBarrier, where,
         "waits for the whole grid, whose blocks need not run at the same time; launch the kernel "
         "with cudaLaunchCooperativeKernel");
  }
  come_to_barrier(where, true);
}

void Block::come_to_barrier(const Location& where, bool of_grid) {
  step(where);
  if (at_barrier_ > 0 && where != barrier_) {
    fail(FaultKind::DivergentBarrier, where,
         fmt::format("other threads of the block wait at the barrier of line {}", barrier_.line()));
  }
  barrier_ = where;
  waits_for_grid_ = of_grid;
  ++at_barrier_;
  if (!all_at_barrier()) {
    suspend(State::AtBarrier, where);
    return;
  }
  open_barrier();
  if (schedule_.seed != kDescending) return;
  const auto self = thread_;  // came last, and waits for its turn
  make_ready(self);
  threads_[self].where = where;
  thread_ = 0;
  hand_over();
  make_current(self);
}

bool Block::all_at_barrier() const {
  return at_barrier_ + (schedule_.barriers_skip_ended ? ended_ : 0) == count_;
}

/// All that the barrier waits for have come.
void Block::open_barrier() {
  if (suspicion_ != nullptr) end_here();
  if (waits_for_grid_) wait_for_grid();
  if (ended_ > 0 && skipped_.barriers++ == 0) {
    skipped_.where = barrier_;
    skipped_.ended = ended_;
  }
  at_barrier_ = 0;
  ++progress_;
  for (unsigned thread = 0; thread < count_; ++thread) {
    if (states_[thread] == State::AtBarrier) make_ready(thread);
  }
  if (uses_units_) units_->block_met();
  if (observer_ != nullptr) observer_->barrier_passed(barrier_);
}

void Block::wait_for_grid() {
  const auto absent = resident_->wait_for_all();
  if (!absent) return;
  fail(FaultKind::DivergentBarrier, barrier_,
       fmt::format("waits for block {} of the grid, which has ended", *absent));
}

void Block::wait_for_signal(const Location& where) {
  ++at_signal_;
  suspend(State::AtSignal, where);
}

void Block::signal() {
  for (unsigned thread = 0; at_signal_ > 0; ++thread) {
    if (states_[thread] != State::AtSignal) continue;
    make_ready(thread);
    --at_signal_;
  }
}

bool Block::exchange(std::uint32_t mask, std::uint64_t value, const Location& where,
                     WarpWork work) {
  if ((mask >> lane() & 1U) == 0) {
    fail(FaultKind::MissingLane, where,
         fmt::format("lane {} calls with the mask {:#010x}, which leaves it out", lane(), mask));
  }
  step(where);
  leave_meeting(threads_[thread_]);
  Meeting& meeting = join(mask, where);
  threads_[thread_].meeting = &meeting;
  ++meeting.readers;
  meeting.words[lane()] = value;
  meeting.arrived |= 1U << lane();
  if (meeting.arrived != mask) {
    suspend(State::AtWarp, where);
    return false;
  }
  std::erase(gathering_, &meeting);
  ++progress_;
  for (std::uint32_t rest = mask & ~(1U << lane()); rest != 0; rest &= rest - 1) {
    make_ready(meeting.warp * kWarp + static_cast<unsigned>(std::countr_zero(rest)));
  }
  if (uses_units_ && work == WarpWork::Synchronise) units_->warp_met(meeting.warp, mask);
  if (observer_ != nullptr) observer_->warp_met(meeting.warp, mask, work);
  return true;
}

std::uint64_t Block::exchanged(std::uint32_t mask, unsigned lane, const Location& where) {
  if (lane >= kWarp || (mask >> lane & 1U) == 0) {
    fail(FaultKind::MissingLane, where,
         fmt::format("asks for the value of lane {}, which does not take part (mask {:#010x})",
                     lane, mask));
  }
  return threads_[thread_].meeting->words[lane];
}

/// The gathering of these lanes at this place.
Block::Meeting& Block::join(std::uint32_t mask, const Location& where) {
  const auto warp = thread_ / kWarp;
  for (Meeting* meeting : gathering_) {
    if (meeting->warp == warp && meeting->mask == mask && meeting->where == where) {
      return *meeting;
    }
  }
  if (free_meetings_.empty()) {
    meetings_.push_back(std::make_unique<Meeting>());
    free_meetings_.push_back(meetings_.back().get());
  }
  Meeting* meeting = free_meetings_.back();
  free_meetings_.pop_back();
  meeting->warp = warp;
  meeting->mask = mask;
  meeting->arrived = 0;
  meeting->readers = 0;
  meeting->where = where;
  gathering_.push_back(meeting);
  return *meeting;
}

void Block::leave_meeting(Thread& thread) {
  if (thread.meeting == nullptr) return;
  if (--thread.meeting->readers == 0) free_meetings_.push_back(thread.meeting);
  thread.meeting = nullptr;
}

}  // namespace triptych::cuda::emulation
