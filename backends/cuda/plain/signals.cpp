// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/signals.h"

#include <fmt/core.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "backends/cuda/emulation/block.h"

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

void handle(int signal, siginfo_t* info, void* context) {
  if (watched_library() == nullptr || stacks == nullptr) return give_back(signal);
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
#else
  give_back(signal);
#endif
}

}  // namespace

SignalGuard::SignalGuard() {
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before[i]);
}

SignalGuard::~SignalGuard() {
  for (const int signal : kSignals) give_back(signal);
}

void expect_signals() {
  if (stacks != nullptr) return;
  thread_local const std::unique_ptr<Stacks> kept = std::make_unique<Stacks>();
  stacks = kept.get();
}

}  // namespace triptych::cuda::plain
