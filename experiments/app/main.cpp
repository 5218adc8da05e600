// The program `triptych`: reads the command line, runs one command, maps failures to exit codes.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/file_text.h"
#include "core/base/interrupt.h"
#include "core/base/memory_budget.h"
#include "core/io/find_program.h"
#include "core/io/output_ledger.h"
#include "core/io/temporaries.h"
#include "experiments/app/commands.h"
#include "experiments/app/message.h"
#include "experiments/app/output.h"
#include "experiments/measure/statistics.h"
#include "experiments/page/text_table.h"
#include "experiments/training/run_folder.h"
#include "parallel/comm/fault.h"
#include "parallel/comm/mpi_session.h"
#include "parallel/launch/launcher.h"
#include "parallel/launch/process_tree.h"
#include "systolic/sim/machine_builder.h"
#include "triptych_version.h"

namespace {

using namespace triptych;

int exit_code_of(const std::exception& error) {
  if (dynamic_cast<const DeviceError*>(&error) != nullptr) return app::kNoDevice;
  if (dynamic_cast<const UnsupportedError*>(&error) != nullptr) return app::kUnsupported;
  if (dynamic_cast<const NumericError*>(&error) != nullptr) return app::kNumeric;
  if (dynamic_cast<const InvalidArgument*>(&error) != nullptr) return app::kUsage;
  if (dynamic_cast<const IoError*>(&error) != nullptr) return app::kUsage;
  if (dynamic_cast<const std::system_error*>(&error) != nullptr) return app::kUsage;
  return app::kCheckFailed;
}

/// Opens the standard streams that are closed, so that no file of a run gets their numbers. Writing
/// to such an output fails, as it did.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) open("/dev/null", O_RDONLY);
  }
}

/// True when the process was started to ignore a closing terminal (nohup). UCX, which MPI loads on
/// some systems, puts its debugger behind SIGHUP before main(), but after this.
bool ignored_hangup = false;

void note_hangup() {
  // The call of the kernel: a sanitizer's sigaction() is not ready. The handler comes first.
  std::array<std::uintptr_t, 16> action = {};
  syscall(SYS_rt_sigaction, SIGHUP, nullptr, action.data(), 8);
  ignored_hangup = action[0] == reinterpret_cast<std::uintptr_t>(SIG_IGN);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const note_hangup_first)() = note_hangup;

/// A reader that has gone is an error of writing, not the end of the program. A handler, unlike
/// SIG_IGN, is not inherited by programs that this one starts.
void survive_gone_readers() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGPIPE, &action, nullptr);
}

void say_resources(std::chrono::duration<double> spent) {
  say_detail(fmt::format("triptych {} ({}): {} and {:.0f} MiB of memory at most", kVersion, kCommit,
                         page::format_seconds(spent.count()), measure::peak_memory_mib()));
}

/// Raises a small limit of stacks, which threads take from their process when it starts. A limit
/// that cannot be raised is an error instead of a fault in the middle of the work.
void require_stack() {
  constexpr rlim_t wanted = rlim_t{8} << 20, least = rlim_t{1} << 20;
  rlimit limit = {};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_STACK, &limit);
  if (limit.rlim_cur < least) {
    throw UnsupportedError(
        fmt::format("the limit of stacks is {} KiB, and at least {} KiB are needed: ulimit -s {}",
                    limit.rlim_cur >> 10, least >> 10, wanted >> 10));
  }
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setstacksize(&attributes, limit.rlim_cur);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

/// The command line of this process.
struct Call {
  bool json = false;    ///< has --json: a failure is a document, too
  std::string command;  ///< "bench conv"
};

void print_failure(const Call& call, int exit_code, const std::string& message) {
  if (call.json && parallel::leads_processes() && !parallel::has_launcher())
    app::print_error_document(call.command, exit_code, message);
}

// Its frame alone may be larger than the stack that require_stack() replaces.
[[gnu::noinline]] int run(int argc, char** argv, Call& call) {
  drop_relative_path_elements();
  app::Context context;
  app::CommandLine program(
      "triptych",
      "Train the same network on a CPU, on CUDA kernels and on a simulated systolic array, and "
      "compare the results");
  program.require_subcommand();
  program.set_version(fmt::format("triptych {} ({})", kVersion, kCommit));
  app::add_commands(program, context);
  keep_places(training::run_that_needs);
  const auto began = std::chrono::steady_clock::now();
  try {
    const bool right = program.run(argc, argv);
    call.command = program.chosen().path();
    if (!right) {
      say_always(program.message());
      print_failure(call, app::kUsage, program.problem());
      return app::kUsage;
    }
  } catch (const std::system_error& error) {
    call.command = program.chosen().path();
    if (std::ferror(stdout) != 0)
      throw IoError(fmt::format("cannot write to standard output: {}", error.code().message()));
    throw;
  } catch (...) {
    call.command = program.chosen().path();
    throw;
  }
  flush_output();
  say_resources(std::chrono::steady_clock::now() - began);
  parallel::MpiSession::finish_process();
  return context.exit_code;
}

/// The rank that died or stopped answering. -1: none.
int lost_rank_of(const std::exception& error) {
  using enum parallel::Cause;
  const auto* fault = dynamic_cast<const parallel::FaultError*>(&error);
  if (fault == nullptr) return -1;
  const auto cause = fault->fault().cause;
  return cause == Died || cause == Stalled ? fault->fault().culprit : -1;
}

int fail(const Call& call, int exit_code, const std::string& message, int lost_rank = -1) {
  OrderlyStop::wait_if_stopping();
  const auto what = app::with_dashes(message);
  say_error(what);
  print_failure(call, exit_code, what);
  parallel::leave_last_words(exit_code, what, lost_rank);
  return exit_code;
}

/// Ends children and removes temporary files after a signal that no command answers.
void clean_up() {
  parallel::end_descendants();
  remove_temporaries_of_process();
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  survive_gone_readers();
  std::signal(SIGHUP, ignored_hangup ? SIG_IGN : SIG_DFL);
  parallel::announce_process();
  mmu::observe_temporaries({.made = remember_temporary, .gone = forget_temporary});
  const OrderlyStop orderly_stop(clean_up);
  Call call = {.json = std::ranges::count(std::span(argv, static_cast<std::size_t>(argc)),
                                          std::string_view("--json")) > 0,
               .command = {}};
  parallel::MpiSession::tell_when_stuck([&](const std::string& what) { fail(call, 1, what); });
  try {
    require_stack();
    const int exit_code = run(argc, argv, call);
    parallel::leave_last_words(exit_code, "");
    return exit_code;
  } catch (const MemoryLimitReached& error) {
    return fail(call, app::kUsage, error.what());
  } catch (const std::bad_alloc&) {
    if (memory_budget().has_refused())
      return fail(call, app::kUsage, memory_budget().refusal(1, "a library"));
    return fail(call, app::kNoDevice,
                "out of memory; use a smaller --batch or --size, or --memory-limit");
  } catch (const Interrupted&) {
    return fail(call, app::kStopped, "stopped by a signal");
  } catch (const std::exception& error) {
    return fail(call, exit_code_of(error), error.what(), lost_rank_of(error));
  }
}
