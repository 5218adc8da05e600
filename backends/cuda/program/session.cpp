// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/program/session.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backends/cuda/program/driver.h"

namespace triptych::cuda::program {
namespace {

constexpr std::size_t kMostFindings = 100;
constexpr std::size_t kStackBytes = std::size_t{256} << 10;

/// A fault of the host's code, as its signal told it.
struct HostFault {
  int signal = 0;
  std::uintptr_t address = 0;
  std::array<const void*, 3> callers{};  ///< places that may be in the user's code
};

HostFault host_fault;
alignas(64) std::array<std::byte, kStackBytes> handler_stack, report_stack;

std::string explain(const HostFault& fault) {
  if (fault.signal == SIGFPE) return "the host's code divides an integer by zero";
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that was used
  const auto* allocation = Session::current().heap.find(reinterpret_cast<void*>(fault.address));
  if (allocation == nullptr) {
    const auto* heap = Session::current().device_heap.get();
    if (heap != nullptr && heap->contains(fault.address)) {
      return "the host's code uses memory that a kernel allocated; only kernels can use it";
    }
    return fault.address < 4096 ? "the host's code uses a null pointer"
                                : fmt::format(
                                      "the host's code uses address {:#x}, where no memory "
                                      "is",
                                      fault.address);
  }
  const auto byte = fault.address - reinterpret_cast<std::uintptr_t>(allocation->data());
  if (!allocation->gone.empty()) {
    return fmt::format("the host's code uses byte {} of {}, which {}", byte, allocation->name,
                       allocation->gone);
  }
  if (allocation->kind == MemoryKind::Device) {
    return fmt::format(
        "the host's code uses byte {} of {}: this is memory of the GPU; copy it with cudaMemcpy",
        byte, allocation->name);
  }
  return fmt::format(
      "the host's code uses byte {} of {}, which {} may still be writing; call "
      "cudaDeviceSynchronize first",
      byte, allocation->name, allocation->writer);
}

/// Continues the thread after the handler, on a stack of its own.
[[noreturn]] void report_fault() {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  emulation::Location where;
  for (const auto* caller : host_fault.callers) {
    if (caller != nullptr && where.line() == 0) where = session.location(caller);
  }
  session.report.findings.push_back(
      {"", explain(host_fault), where.file_name(), where.line(), cudaSuccess});
  session.end(128 + host_fault.signal, "a fault of the host's code");
}

#if defined(__x86_64__)
/// True for an instruction with the prefix lock, and for xchg, which is atomic without it.
bool is_atomic(const unsigned char* instruction) {
  for (;; ++instruction) {
    if (*instruction == 0xF0) return true;
    const bool is_prefix = *instruction == 0x66 || *instruction == 0xF2 || *instruction == 0xF3 ||
                           (*instruction & 0xF0) == 0x40;
    if (!is_prefix) return *instruction == 0x86 || *instruction == 0x87;
  }
}

/// The host's atomic operations may meet those of a kernel in managed memory
/// (concurrentManagedAccess): the first one opens it.
bool open_for_atomics(const void* address, const void* instruction) {
  if (!is_atomic(static_cast<const unsigned char*>(instruction))) return false;
  auto* allocation = Session::current().heap.find(address);
  if (allocation == nullptr || allocation->kind != MemoryKind::Managed ||
      !allocation->gone.empty() || !allocation->is_closed) {
    return false;
  }
  allocation->open();
  return true;
}
#endif

void handle(int signal, siginfo_t* info, void* context) {
  host_fault = {signal, reinterpret_cast<std::uintptr_t>(info->si_addr), {}};
#if defined(__x86_64__)
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (signal == SIGSEGV &&
      open_for_atomics(info->si_addr, reinterpret_cast<const void*>(registers[REG_RIP]))) {
    return;
  }
  // The code itself, or the call of a function without a frame, such as memcpy, or of one with it.
  // NOLINTBEGIN(performance-no-int-to-ptr): registers hold addresses.
  const auto* stack = reinterpret_cast<const void* const*>(registers[REG_RSP]);
  const auto* frame = reinterpret_cast<const void* const*>(registers[REG_RBP]);
  const auto is_near =
      reinterpret_cast<std::uintptr_t>(frame) - reinterpret_cast<std::uintptr_t>(stack) <
      (std::uintptr_t{1} << 20);
  host_fault.callers = {reinterpret_cast<const void*>(registers[REG_RIP] + 1), stack[0],
                        is_near ? frame[1] : nullptr};
  // NOLINTEND(performance-no-int-to-ptr)
  registers[REG_RIP] = reinterpret_cast<greg_t>(&report_fault);
  registers[REG_RSP] = reinterpret_cast<greg_t>(report_stack.data() + report_stack.size() - 8);
#else
  (void)context;
  _exit(128 + signal);
#endif
}

}  // namespace

Session& Session::current() {
  // Never destroyed: destructors of the user's program run when this process ends.
  static auto* const session = new Session;
  return *session;
}

bool Session::is_variable(const void* address, std::size_t bytes) const {
  return library->is_variable(address, bytes) ||
         std::ranges::any_of(modules,
                             [&](const auto& each) { return each->is_variable(address, bytes); });
}

emulation::Location Session::location(Place place) {
  Dl_info info = {};
  if (dladdr(place, &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string_view name = info.dli_fname;
  if (!name.ends_with("/host.so")) return {};
  auto found = places_.find(info.dli_fbase);
  if (found == places_.end()) {
    found = places_
                .emplace(info.dli_fbase,
                         plain::CodePlaces(plain::ObjectFile(info.dli_fname),
                                           reinterpret_cast<std::uintptr_t>(info.dli_fbase)))
                .first;
  }
  return found->second.place(place);
}

std::string Session::text_of(Place place) {
  const auto where = location(place);
  return where.line() == 0 ? "an unknown place"
                           : fmt::format("{}:{}", where.file_name(), where.line());
}

cudaError_t Session::mistake(cudaError_t error, const char* call, Place place,
                             std::string message) {
  last_error = error;
  note(error, call, place, std::move(message));
  return error;
}

void Session::note(cudaError_t error, const char* call, Place place, std::string message) {
  const auto where = location(place);
  if (driver_call != nullptr) {
    call = driver_call;
    error = static_cast<cudaError_t>(calls::result_of(error));
  }
  if (report.findings.size() < kMostFindings) {
    report.findings.push_back({call, std::move(message), where.file_name(), where.line(), error});
  }
}

void Session::end(int status, std::string reason) {
  {
    const std::lock_guard lock(end_mutex_);
    if (!is_ended_) {
      report.status = status;
      report.reason = std::move(reason);
    }
    is_ended_ = true;
  }
  ended_.notify_all();
  for (;;) pause();
}

void Session::wait_for_end() {
  std::unique_lock lock(end_mutex_);
  ended_.wait(lock, [&] { return is_ended_; });
}

void watch_host_signals() {
  stack_t stack = {};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE}) sigaction(signal, &action, nullptr);
}

}  // namespace triptych::cuda::program
