// `triptych kernel debug`: the lines and variables of one warp, step by step.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/base/console.h"
#include "core/io/temporary_folder.h"
#include "experiments/app/kernel_command.h"
#include "experiments/app/output.h"

namespace triptych::app {
namespace {

using cuda::plain::KernelLibrary;
using cuda::plain::LineTrace;

struct DebugOptions {
  KernelCommand kernel;
  std::vector<std::int64_t> block = {0};
  std::int64_t warp = 0, launch = 1;
  DebugScript script;
};

/// A warp that was watched.
struct Watched {
  std::unique_ptr<LineTrace> trace;
  std::int64_t launches = 0;  ///< until now
  std::optional<KernelFault> fault;
};

cuda::plain::WatchLaunch watch_of(const DebugOptions& options, Watched& watched) {
  const auto at = [&](std::size_t axis) {
    constexpr std::int64_t most = 0xFFFFFFFF;  // more than a grid has
    return axis < options.block.size() ? static_cast<unsigned>(std::min(options.block[axis], most))
                                       : 0U;
  };
  const cuda::plain::WarpChoice choice = {{at(0), at(1), at(2)},
                                          static_cast<unsigned>(options.warp)};
  const auto& kernel = options.kernel.run.kernel;
  return [&watched, choice, kernel, number = options.launch](const KernelLibrary& library,
                                                             const cuda::plain::Launch& launch) {
    const bool is_chosen = kernel.empty() || launch.kernel == kernel ||
                           launch.kernel.substr(0, launch.kernel.find('<')) == kernel;
    if (!is_chosen || ++watched.launches != number) return static_cast<LineTrace*>(nullptr);
    watched.trace = std::make_unique<LineTrace>(library, launch, choice);
    return watched.trace.get();
  };
}

void check_choice(const DebugOptions& options, const Watched& watched) {
  if (!watched.trace) {
    throw InvalidArgument(fmt::format(
        "there is no launch {}: {} {} such launches", options.launch, options.kernel.file,
        watched.launches == 0 ? "has no" : fmt::format("has {}", watched.launches)));
  }
  const auto& trace = *watched.trace;
  const auto &block = trace.choice().block, &grid = trace.grid_dim();
  if (block.x >= grid.x || block.y >= grid.y || block.z >= grid.z) {
    throw InvalidArgument(
        fmt::format("the launch has {} x {} x {} blocks, so there is no block "
                    "({}, {}, {})",
                    grid.x, grid.y, grid.z, block.x, block.y, block.z));
  }
  if (trace.lanes() == 0) {
    throw InvalidArgument(fmt::format("a block of {} threads has no warp {}",
                                      trace.block_dim().count(), trace.choice().warp));
  }
}

void report(const DebugOptions& options, Watched& watched, Context& context) {
  check_choice(options, watched);
  watched.trace->finish();
  const auto session = run_debug_session(*watched.trace, options.script, context.json);
  if (watched.fault) context.exit_code = kCheckFailed;
  if (!context.json) {
    if (watched.fault) print_fault(*watched.fault);
    return;
  }
  const auto& choice = watched.trace->choice();
  page::Json result = {{"file", options.kernel.file},
                       {"kernel", watched.trace->kernel()},
                       {"block", {choice.block.x, choice.block.y, choice.block.z}},
                       {"warp", choice.warp},
                       {"findings", page::Json::array()}};
  if (watched.fault) result["findings"].push_back(fault_json(*watched.fault));
  result.update(session);
  print_document("kernel debug", page::Json::array({std::move(result)}));
}

void debug_program(DebugOptions& options, Context& context) {
  Watched watched;
  auto request = program_request(options.kernel);
  request.takes_output = context.json;
  request.options.watch = watch_of(options, watched);
  auto run = kernels::run_program(request);
  if (!run.compiler_warnings.empty()) say_always(run.compiler_warnings);
  watched.fault = run.report.fault;
  report(options, watched, context);
}

void debug(DebugOptions& options, Context& context) {
  auto& kernel = options.kernel;
  kernel.debugs = true;
  if (std::filesystem::path(kernel.file).extension() == ".so") {
    throw InvalidArgument("a library knows no variables; give the source, such as my.cu");
  }
  if (kernel.run.threads != 1) {
    throw InvalidArgument("the debugger runs the blocks in order: it needs --threads 1");
  }
  if (is_unlaunched_program(kernel)) return debug_program(options, context);
  const TemporaryFolder folder("kernel");
  const auto library = folder.path() / "kernels.so";
  compile_kernel_file(kernel, library);
  const KernelLibrary opened(library);
  Watched watched;
  kernel.run.watch = watch_of(options, watched);
  watched.fault = kernels::run_kernel(opened, kernel.run).fault;
  report(options, watched, context);
}

}  // namespace

Command add_debug(Command& kernel, Context& context) {
  auto options = std::make_shared<DebugOptions>();
  auto command = kernel.add_subcommand(
      "debug", "Step through the lines of a warp and show its lanes and variables");
  add_launch_options(command, options->kernel, true);
  command
      .add_option("--break", options->script.breakpoints,
                  "line to stop at first, such as 12 or my.cu:12. Default: the first one")
      .value("LINE")
      .repeated();
  add_sizes(command, "--at-block", options->block, "blockIdx of the warp, such as 1,0,0", 0);
  command.add_option("--warp", options->warp, "number of the warp in its block")
      .check(whole_from(0, 31));
  command.add_option("--launch", options->launch, "number of the launch of a whole program")
      .value("N")
      .check(whole_from(1, std::int64_t{1} << 40));
  command.add_option("--step", options->script.lines, "lines to show behind the first stop")
      .check(whole_from(0, 1000000));
  command
      .add_option("--do", options->script.commands,
                  "command of the debugger, such as step, lanes or 'print tile[3]'")
      .value("COMMAND")
      .repeated();
  command.callback([options, &context] { debug(*options, context); });
  return command;
}

}  // namespace triptych::app
