// The program `triptych`: reads the command line, runs one command, maps failures to exit codes.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "core/base/error.h"
#include "experiments/cli/commands.h"
#include "triptych_version.h"

namespace {

using namespace triptych;

int exit_code_of(const std::exception& error) {
  if (dynamic_cast<const DeviceError*>(&error) != nullptr) return cli::kNoDevice;
  if (dynamic_cast<const UnsupportedError*>(&error) != nullptr) return cli::kUnsupported;
  if (dynamic_cast<const NumericError*>(&error) != nullptr) return cli::kNumeric;
  if (dynamic_cast<const InvalidArgument*>(&error) != nullptr) return cli::kUsage;
  if (dynamic_cast<const IoError*>(&error) != nullptr) return cli::kUsage;
  return cli::kCheckFailed;
}

void add_commands(CLI::App& app, cli::Context& context) {
  cli::add_devices_command(app, context);
  cli::add_doctor_command(app, context);
  cli::add_train_command(app, context);
  cli::add_run_command(app, context);
  cli::add_bench_command(app, context);
  cli::add_explain_command(app, context);
  cli::add_synthesize_command(app, context);
}

}  // namespace

int main(int argc, char** argv) {
  cli::Context context;
  CLI::App app(
      "One deep-learning computation on CPU, GPU and a simulated systolic array, side by side.",
      "triptych");
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("triptych {} ({})", kVersion, kCommit));
  try {
    add_commands(app, context);
    app.parse(argc, argv);
    return context.exit_code;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cli::kDone : cli::kUsage;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr,
               "triptych: out of memory; use a smaller --batch or --size, or --memory-limit\n");
    return cli::kNoDevice;
  } catch (const std::exception& error) {
    fmt::print(stderr, "triptych: {}\n", error.what());
    return exit_code_of(error);
  }
}
