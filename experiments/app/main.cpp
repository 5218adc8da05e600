// The program `triptych`: reads the command line, runs one command, maps failures to exit codes.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <system_error>

#include "core/base/error.h"
#include "core/base/file_text.h"
#include "core/base/interrupt.h"
#include "core/base/speech.h"
#include "core/io/own_files.h"
#include "core/io/temporaries.h"
#include "experiments/app/commands.h"
#include "experiments/app/message.h"
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

/// A reader that has gone is an error of writing, not the end of the program. A handler, unlike
/// SIG_IGN, is not inherited by programs that this one starts.
void survive_gone_readers() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGPIPE, &action, nullptr);
}

/// Throws IoError when not all output arrived: a full disk behind a redirection, for example.
void flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  const std::string reason = errno == 0 ? "an earlier part was not written" : std::strerror(errno);
  throw IoError(fmt::format("cannot write to standard output: {}", reason));
}

void say_resources(std::chrono::duration<double> spent) {
  say_detail(fmt::format("triptych {} ({}): {} and {:.0f} MiB of memory at most", kVersion, kCommit,
                         page::format_seconds(spent.count()), measure::peak_memory_mib()));
}

int run(int argc, char** argv) {
  app::Context context;
  app::CommandLine program(
      "triptych",
      "One deep-learning computation on CPU, GPU and a simulated systolic array, side by side.");
  program.require_subcommand();
  program.set_version(fmt::format("triptych {} ({})", kVersion, kCommit));
  app::add_commands(program, context);
  keep_places(training::run_that_needs);
  const auto began = std::chrono::steady_clock::now();
  try {
    if (!program.run(argc, argv)) return app::kUsage;
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0)
      throw IoError(fmt::format("cannot write to standard output: {}", error.code().message()));
    throw;
  }
  flush_output();
  say_resources(std::chrono::steady_clock::now() - began);
  parallel::MpiSession::finish_process();
  return context.exit_code;
}

/// The rank whose death or silence is the error; -1: none's.
int lost_rank_of(const std::exception& error) {
  using enum parallel::Cause;
  const auto* fault = dynamic_cast<const parallel::FaultError*>(&error);
  if (fault == nullptr) return -1;
  const auto cause = fault->fault().cause;
  return cause == Died || cause == Stalled ? fault->fault().culprit : -1;
}

int fail(int exit_code, const std::string& message, int lost_rank = -1) {
  OrderlyStop::wait_if_stopping();
  const auto what = app::with_dashes(message);
  erase_bar();
  put_error(fmt::format("{} {}\n", styled(stderr, Style::Red, "triptych:"),
                        without_control_characters(what)));
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
  parallel::announce_process();
  mmu::observe_temporaries({.made = remember_temporary, .gone = forget_temporary});
  const OrderlyStop orderly_stop(clean_up);
  parallel::MpiSession::tell_when_stuck([](const std::string& what) { fail(1, what); });
  try {
    const int exit_code = run(argc, argv);
    parallel::leave_last_words(exit_code, "");
    return exit_code;
  } catch (const std::bad_alloc&) {
    return fail(app::kNoDevice,
                "out of memory; use a smaller --batch or --size, or --memory-limit");
  } catch (const Interrupted&) {
    return fail(app::kStopped, "stopped by a signal");
  } catch (const std::exception& error) {
    return fail(exit_code_of(error), error.what(), lost_rank_of(error));
  }
}
