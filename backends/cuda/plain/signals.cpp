// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/signals.h"

#include <fmt/core.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "backends/cuda/emulation/block.h"
#include "backends/cuda/emulation/recorder.h"

namespace triptych::cuda::plain {
namespace {

using emulation::Block;

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr std::size_t kStackBytes = 64 * 1024;

/// Stacks of a thread of the processor: for the handler, and for the code after it.
struct Stacks {
  alignas(64) std::array<std::byte, kStackBytes> handler, after;

  Stacks() {
    stack_t stack = {};
    stack.ss_sp = handler.data();
    stack.ss_size = kStackBytes;
    sigaltstack(&stack, nullptr);
  }
  ~Stacks() {
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
};

/// A signal that was caught.
struct Caught {
  int signal = 0;
  std::uintptr_t pc = 0, stack = 0, address = 0;
};

thread_local Stacks* stacks = nullptr;
thread_local Caught caught;
std::array<struct sigaction, kSignals.size()> before;

/// The signal of a timer of a thread's processor time.
constexpr int kTickSignal = SIGVTALRM;
/// Ticks without progress that end a thread.
constexpr int kMostTicks = 8;
constexpr std::chrono::microseconds kLeastTime{100'000};
std::atomic<int> guards = 0;

/// A timer of the calling thread of the processor.
struct Clock {
  timer_t timer{};
  bool is_made = false, runs = false;
  std::chrono::microseconds most{};
  std::uint64_t seen = 0;  ///< progress at the last tick
  int ticks = 0;           ///< since then

  ~Clock() {
    if (is_made) timer_delete(timer);
  }
  void set(std::chrono::microseconds tick) {
    const auto parts = std::chrono::duration_cast<std::chrono::seconds>(tick);
    const auto rest = std::chrono::nanoseconds(tick - parts).count();
    const timespec time = {parts.count(), rest};
    const itimerspec times = {time, time};
    timer_settime(timer, 0, &times, nullptr);
    runs = tick.count() > 0;
  }
};
thread_local Clock own_clock;

/// True when the thread's calls, or an array of its own in one step, left its stack.
bool beyond_stack() {
  const auto bottom = reinterpret_cast<std::uintptr_t>(Block::current().stack().data());
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return caught.stack < bottom || (caught.address < bottom && bottom - caught.address <= page);
}

/// The continuation of the thread after the handler: on a stack of its own, outside of the handler,
/// so that it may do everything that a thread may.
[[noreturn]] void go_on() {
  const auto* library = watched_library();
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a register's value
  auto where = library->place(reinterpret_cast<const void*>(caught.pc + 1));
  Block& block = Block::current();
  if (where.line() == 0) where = block.last_place();
  if (caught.signal == kTickSignal) fail_as_endless(where);
  if (caught.signal == SIGFPE) {
    block.fail(FaultKind::Division, where,
               "an integer is divided by zero (a GPU would go on with some number)");
  }
  if (caught.signal == SIGILL) block.fail(FaultKind::Assertion, where, "the kernel traps");
  if (beyond_stack()) {
    block.fail(FaultKind::StackOverflow, where,
               fmt::format("local arrays and calls of the thread take more than {} KiB",
                           block.stack().size() / 1024));
  }
  block.fail(FaultKind::OutOfBounds, where,
             fmt::format("touches address {:#x}, where no memory is", caught.address));
}

void give_back(int signal) {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] == signal) sigaction(signal, &before[i], nullptr);
  }
}

/// The thread continues in go_on().
void divert(int signal, const siginfo_t* info, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
  const auto top = reinterpret_cast<std::uintptr_t>(stacks->after.data()) + kStackBytes;
  caught.signal = signal;
  caught.address = reinterpret_cast<std::uintptr_t>(info->si_addr);
#if defined(__x86_64__)
  caught.pc = static_cast<std::uintptr_t>(registers.gregs[REG_RIP]);
  caught.stack = static_cast<std::uintptr_t>(registers.gregs[REG_RSP]);
  registers.gregs[REG_RIP] = reinterpret_cast<greg_t>(&go_on);
  registers.gregs[REG_RSP] = static_cast<greg_t>(top - 8);  // as after a call
#elif defined(__aarch64__)
  caught.pc = registers.pc;
  caught.stack = registers.sp;
  registers.pc = reinterpret_cast<std::uintptr_t>(&go_on);
  registers.sp = top;
#endif
}

void handle(int signal, siginfo_t* info, void* context) {
  if (watched_library() == nullptr || stacks == nullptr) return give_back(signal);
#if defined(__x86_64__) || defined(__aarch64__)
  divert(signal, info, context);
#else
  give_back(signal);
#endif
}

/// Code of the user, where a thread may stop. The emulator's own may hold locks.
bool is_in_kernel([[maybe_unused]] void* context) {
#if defined(__x86_64__)
  const auto pc = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a register's value
  return watched_library()->place(reinterpret_cast<const void*>(pc + 1)).line() != 0;
#else
  return false;
#endif
}

void handle_tick(int signal, siginfo_t* info, void* context) {
  auto& clock = own_clock;
  if (guards == 0 || !clock.runs || emulation::current_recorder != nullptr) return;
  const auto progress = Block::current().progress();
  if (progress != std::exchange(clock.seen, progress)) clock.ticks = 0;
  if (++clock.ticks > kMostTicks && is_in_kernel(context)) divert(signal, info, context);
}

}  // namespace

SignalGuard::SignalGuard() {
  ++guards;
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before[i]);
}

SignalGuard::~SignalGuard() {
  if (own_clock.runs) own_clock.set({});
  --guards;
  for (const int signal : kSignals) give_back(signal);
}

void expect_signals() {
  if (stacks != nullptr) return;
  thread_local const std::unique_ptr<Stacks> kept = std::make_unique<Stacks>();
  stacks = kept.get();
}

void limit_time(std::chrono::microseconds most) {
  auto& clock = own_clock;
  if (clock.runs) return;
  if (!clock.is_made) {
    struct sigaction action = {};
    action.sa_sigaction = handle_tick;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(kTickSignal, &action, nullptr);
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kTickSignal;
    event._sigev_un._tid = gettid();
    clock.is_made = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &clock.timer) == 0;
    if (!clock.is_made) return;
  }
  clock.most = std::max(most, kLeastTime);
  clock.ticks = 0;
  clock.set(clock.most / kMostTicks);
}

void fail_as_endless(const emulation::Location& where) {
  Block::current().fail(
      FaultKind::Endless, where,
      fmt::format("the thread has not ended, nor come to a barrier, after {:.1f} seconds of the "
                  "processor's time; it was here",
                  std::chrono::duration<double>(own_clock.most).count()));
}

bool is_time_over() { return own_clock.runs && own_clock.ticks > kMostTicks; }

}  // namespace triptych::cuda::plain
