// SPDX-License-Identifier: Apache-2.0
#include "backends/host/thread_team.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "backends/host/flush_subnormals.h"
#include "backends/host/parallel.h"
#include "core/base/error.h"

namespace triptych {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kAwake = std::chrono::microseconds(300);  // without work, until a thread sleeps
constexpr int kPauses = 64;                              // between two looks at the clock
constexpr std::int64_t kMostUnits = std::int64_t{1} << 30;
constexpr std::size_t kLine = 64;  // bytes that processors pass to each other

/// How long the caller keeps its processor while it waits. Then a helper may need it.
constexpr auto kPatience = std::chrono::microseconds(30);

/// Waiting for another thread: first with the processor kept, then with it offered to others.
class Polling {
 public:
  explicit Polling(Clock::duration patience) : patience_(patience) {}
  void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    if (++pauses_ % kPauses != 0) return;
    const auto now = Clock::now();
    if (pauses_ == kPauses) begin_ = now;
    waited_ = now - begin_;
    if (waited_ >= patience_) std::this_thread::yield();
  }
  Clock::duration waited() const { return waited_; }

 private:
  Clock::duration patience_;
  std::int64_t pauses_ = 0;
  Clock::time_point begin_;
  Clock::duration waited_{};
};

/// Where a helper sleeps.
class Bed {
 public:
  bool occupied() const { return occupied_; }
  /// Sleeps until wake(), unless stay_awake() is true once others see the bed occupied.
  template <class Condition>
  void sleep(const Condition& stay_awake) {
    std::unique_lock lock(mutex_);
    occupied_ = true;
    if (stay_awake()) occupied_ = false;
    woken_.wait(lock, [this] { return !occupied_; });
  }
  void wake() {
    const std::lock_guard lock(mutex_);
    occupied_ = false;
    woken_.notify_one();
  }

 private:
  std::atomic<bool> occupied_{false};
  std::mutex mutex_;
  std::condition_variable woken_;
};

}  // namespace

/// The threads, and the one loop that they work on at a time.
///
/// A loop is cut into units of at least `grain` elements, and the units into one share per thread.
/// A thread takes units from its own share, so that it finds its part of the previous loop's output
/// in its cache, then from the shares of others.
///
/// `state_` holds the number of the loop, the places that are left in it, and the helpers at work.
/// A helper takes a place before it reads the loop. The thread that runs the loop closes the places
/// and waits for the helpers at work before it returns. So a helper that is late, or asleep, delays
/// nobody.
class TeamLoop {
 public:
  explicit TeamLoop(int threads)
      : crowded_(threads > usable_processors()),
        shares_(static_cast<std::size_t>(threads)),
        beds_(shares_.size() - 1) {}

  int threads() const { return static_cast<int>(shares_.size()); }
  /// Runs a loop of so many units on its team. False where another thread runs one. Rethrows the
  /// first exception of a body.
  static bool run(const std::shared_ptr<TeamLoop>& team, const internal::Loop& loop,
                  std::int64_t units);
  /// Ends the helpers.
  void dismiss();

 private:
  /// Units [first, end): `end` in the upper half.
  struct alignas(kLine) Share {
    std::atomic<std::uint64_t> units{0};
  };
  static constexpr std::uint64_t kHelper = 1, kHelpers = 0xFFFF, kPlace = 0x10000,
                                 kPlaces = 0xFFFF0000, kNumber = std::uint64_t{1} << 32;

  static void start(const std::shared_ptr<TeamLoop>& team);
  void publish(const internal::Loop& loop, std::int64_t units);
  void finish();
  void help(int index);
  static bool has_place(std::uint64_t state, std::uint64_t last) {
    return (state & kPlaces) != 0 && state / kNumber != last;
  }
  /// This thread keeps the caller of the last loop from its processor, though there are others.
  bool beside_caller() const {
    return !crowded_ && sched_getcpu() == processor_.load(std::memory_order_relaxed);
  }
  bool join(std::uint64_t& last);
  void work(int index);
  bool work_on(Share& share);
  std::int64_t first_of(std::uint64_t unit) const;
  void fail();

  alignas(kLine) std::atomic<std::uint64_t> state_{0};
  std::atomic<bool> dismissed_{false};
  alignas(kLine) internal::Loop loop_{};
  std::int64_t units_ = 0;
  std::size_t used_shares_ = 0;
  std::atomic<int> processor_{-1};  ///< of the thread that began the loop
  const bool crowded_;              ///< more threads than processors
  std::vector<Share> shares_;
  std::vector<Bed> beds_;  ///< of the helpers, from index 1
  bool started_ = false;
  alignas(kLine) std::atomic<bool> taken_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

namespace {

/// The team of this thread. Loops of a helper run on it alone.
struct Membership {
  const std::shared_ptr<TeamLoop>* team = nullptr;  ///< nullptr: a helper, or no member
  int threads = 0;
  int index = 0;
};
thread_local constinit Membership membership;

class Member {
 public:
  explicit Member(const Membership& its) : previous_(std::exchange(membership, its)) {}
  ~Member() { membership = previous_; }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

 private:
  const FlushSubnormals flush_;
  Membership previous_;
};

}  // namespace

bool TeamLoop::run(const std::shared_ptr<TeamLoop>& team, const internal::Loop& loop,
                   std::int64_t units) {
  auto& its = *team;
  if (its.taken_.exchange(true, std::memory_order_acquire)) return false;
  if (!its.started_) start(team);
  its.publish(loop, units);
  for (std::size_t i = 0; i + 1 < its.used_shares_; ++i) {
    if (its.beds_[i].occupied()) its.beds_[i].wake();
  }
  its.work(0);
  its.finish();
  return true;
}

void TeamLoop::dismiss() {
  dismissed_ = true;
  if (!started_) return;
  for (auto& bed : beds_) bed.wake();
}

void TeamLoop::start(const std::shared_ptr<TeamLoop>& team) {
  try {
    // Detached: a process that was forked has none of them to join.
    for (int index = 1; index < team->threads(); ++index) {
      std::thread([team, index] { team->help(index); }).detach();
    }
  } catch (const std::system_error& error) {
    team->taken_.store(false, std::memory_order_release);
    throw DeviceError(fmt::format("cannot start {} threads ({}); use fewer by the option threads",
                                  team->threads(), error.what()));
  }
  team->started_ = true;
}

void TeamLoop::publish(const internal::Loop& loop, std::int64_t units) {
  loop_ = loop;
  units_ = units;
  if (const int processor = sched_getcpu(); processor != processor_) processor_ = processor;
  used_shares_ = static_cast<std::size_t>(std::min<std::int64_t>(units, threads()));
  for (std::size_t i = 0; i < used_shares_; ++i) {
    const auto bound = [&](std::size_t share) {
      return static_cast<std::uint64_t>(units) * share / used_shares_;
    };
    shares_[i].units.store(bound(i + 1) << 32 | bound(i), std::memory_order_relaxed);
  }
  const auto number = (state_.load(std::memory_order_relaxed) / kNumber + 1) * kNumber;
  state_ = number | (used_shares_ - 1) * kPlace;  // before it looks for occupied beds
}

void TeamLoop::finish() {
  state_.fetch_and(~kPlaces, std::memory_order_relaxed);
  Polling polling(kPatience);
  while ((state_.load(std::memory_order_acquire) & kHelpers) != 0) polling.pause();
  std::exception_ptr failure;
  if (failed_.exchange(false, std::memory_order_relaxed)) std::swap(failure, failure_);
  taken_.store(false, std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

/// A helper's life.
void TeamLoop::help(int index) {
  const Member member({.threads = threads(), .index = index});
  std::uint64_t last = 0;
  const Polling fresh(crowded_ ? Clock::duration() : kAwake);
  auto polling = fresh;
  while (!dismissed_.load(std::memory_order_relaxed)) {
    const bool beside = beside_caller();
    if (!beside && join(last)) {
      work(index);
      state_.fetch_sub(kHelper, std::memory_order_release);
      polling = fresh;
    } else if (polling.waited() < kAwake) {
      polling.pause();
      if (beside) std::this_thread::yield();
    } else {
      beds_[static_cast<std::size_t>(index - 1)].sleep(
          [&] { return dismissed_ || has_place(state_, last); });
      polling = fresh;
    }
  }
}

/// Takes a place in a loop other than `last`, which it then is.
bool TeamLoop::join(std::uint64_t& last) {
  auto state = state_.load(std::memory_order_relaxed);
  if (!has_place(state, last)) return false;
  if (!state_.compare_exchange_strong(state, state - kPlace + kHelper, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
    return false;
  }
  last = state / kNumber;
  return true;
}

void TeamLoop::work(int index) {
  for (std::size_t i = 0; i < used_shares_; ++i) {
    auto& share = shares_[(static_cast<std::size_t>(index) + i) % used_shares_];
    while (work_on(share)) {
    }
  }
}

/// Runs a quarter of the units that a share has left. False where none are.
bool TeamLoop::work_on(Share& share) {
  auto units = share.units.load(std::memory_order_relaxed);
  std::uint64_t first = 0, end = 0;
  do {
    first = units & 0xFFFFFFFF;
    const auto last = units >> 32;
    if (first >= last) return false;
    end = first + (last - first + 3) / 4;
  } while (
      !share.units.compare_exchange_weak(units, units - first + end, std::memory_order_relaxed));
  try {
    loop_.call(loop_.body, first_of(first), first_of(end));
  } catch (...) {
    fail();
  }
  return true;
}

std::int64_t TeamLoop::first_of(std::uint64_t unit) const {
  const auto at = static_cast<std::int64_t>(unit);
  return at * (loop_.count / units_) + std::min(at, loop_.count % units_);
}

/// Stores the exception that is being handled, if it is the first, and drops the remaining units.
void TeamLoop::fail() {
  if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
  for (std::size_t i = 0; i < used_shares_; ++i) {
    shares_[i].units.store(0, std::memory_order_relaxed);
  }
}

ThreadTeam::ThreadTeam(int threads) : loop_(std::make_shared<TeamLoop>(threads)) {}
ThreadTeam::~ThreadTeam() { loop_->dismiss(); }

void ThreadTeam::run(const void* work, void (*call)(const void* work)) {
  const Member member({.team = &loop_, .threads = loop_->threads()});
  call(work);
}

int max_threads() { return membership.threads > 0 ? membership.threads : usable_processors(); }

int thread_index() { return membership.index; }

void internal::run_on_team(const Loop& loop) {
  if (membership.threads == 0) {
    static auto& all = *new ThreadTeam(usable_processors());  // lives as long as the process
    all.execute([&] { run_on_team(loop); });
    return;
  }
  const auto units = std::min(loop.count / std::max<std::int64_t>(loop.grain, 1), kMostUnits);
  const bool shared =
      units >= 2 && membership.team != nullptr && TeamLoop::run(*membership.team, loop, units);
  if (!shared) loop.call(loop.body, 0, loop.count);
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace triptych
