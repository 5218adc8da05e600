// `triptych kernel`: a student's own CUDA kernels, compiled for the emulator and run on arrays.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "core/base/console.h"
#include "core/base/list_text.h"
#include "core/base/mapped.h"
#include "core/io/input_file.h"
#include "core/io/npy.h"
#include "core/io/output_ledger.h"
#include "core/io/strict_json.h"
#include "core/io/temporary_folder.h"
#include "experiments/app/confinement.h"
#include "experiments/app/kernel_command.h"
#include "experiments/app/kernel_costs.h"
#include "experiments/app/kernel_counters.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/options.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/parts.h"
#include "experiments/confine/layers.h"
#include "experiments/kernels/kernel_source.h"
#include "experiments/kernels/registers.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

namespace fs = std::filesystem;
using cuda::plain::KernelLibrary;
using kernels::KernelRun;

kernels::KernelSource source_of(const KernelCommand& options) {
  kernels::KernelSource source = {.file = options.file, .contract = !options.no_contraction};
  if (options.run.kernel.find('<') != std::string::npos) {
    source.instances.push_back(options.run.kernel);
  }
  source.options = compiler_options(options);
  source.debugs = options.debugs;
  return source;
}

page::Json parameters_json(const cuda::plain::KernelEntry& kernel) {
  page::Json list = page::Json::array();
  for (unsigned i = 0; i < kernel.count; ++i) list.push_back(kernel.parameters[i].type);
  return list;
}

void build(const KernelCommand& options, bool json) {
  if (options.module) return build_module(options, json);
  const TemporaryFolder folder("kernel");
  const auto library = folder.path() / "kernels.so";
  if (!options.library.empty()) require_writable(options.library);
  const auto begin = std::chrono::steady_clock::now();
  compile_kernel_file(options, library);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (!options.library.empty()) write_own_file(options.library, read_file(library));
  const KernelLibrary opened(library);
  page::Json results = page::Json::array();
  for (const auto& kernel : opened.kernels()) {
    if (!json) print_text("{}\n", kernels::signature(kernel));
    results.push_back(
        {{"file", options.file},
         {"kernel", kernel.name},
         {"parameters", parameters_json(kernel)},
         {"library", options.library.empty() ? page::Json() : page::Json(options.library)},
         {"time", page::time_json({taken.count(), TimeKind::Measured})}});
  }
  if (json) return print_document("kernel build", std::move(results));
  print_text("built in {} (measured){}\n", page::format_seconds(taken.count()),
             options.library.empty() ? "" : ": " + options.library);
}

/// The output that "c.npy" or "4=c.npy" is meant for, and the file.
std::pair<std::size_t, std::string> output_of(const std::string& text, std::size_t position,
                                              std::size_t given, const KernelRun& run,
                                              const char* option) {
  const auto& outputs = run.outputs;
  const auto [argument, file] = argument_and_file(text);
  if (file == text && given == outputs.size()) return {position, file};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (std::to_string(outputs[i].argument) == argument) return {i, file};
  }
  auto numbers = mapped<int>(outputs, [](const auto& output) { return output.argument; });
  throw InvalidArgument(
      fmt::format("the option {} {} leaves open which array is meant: {} may write to those of the "
                  "arguments {}; "
                  "give one option for each, or say {}={}",
                  option, text, run.kernel, fmt::join(numbers, ", "),
                  numbers.empty() ? 1 : numbers.front(), text));
}

/// Description of the first element outside the tolerance, and the number of such elements. Empty:
/// none.
std::string difference(const Tensor& got, const Tensor& expected, double tolerance) {
  if (got.spec() != expected.spec()) {
    return fmt::format("is {}, and {} was expected", to_string(got.spec()),
                       to_string(expected.spec()));
  }
  const auto a = to_doubles(got), b = to_doubles(expected);
  std::size_t first = a.size(), count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double allowed = is_floating(got.dtype()) ? tolerance * std::max(1.0, std::abs(b[i])) : 0;
    const bool same = std::abs(a[i] - b[i]) <= allowed || (std::isnan(a[i]) && std::isnan(b[i]));
    if (same || a[i] == b[i]) continue;
    first = std::min(first, i);
    ++count;
  }
  if (count == 0) return "";
  std::vector<std::int64_t> index;
  auto rest = static_cast<std::int64_t>(first);
  for (auto axis = got.shape().rank(); axis-- > 0; rest /= got.shape()[axis]) {
    index.insert(index.begin(), rest % got.shape()[axis]);
  }
  return fmt::format("{} of {} elements differ; the first is [{}]: {}, and {} was expected", count,
                     a.size(), fmt::join(index, ", "), a[first], b[first]);
}

struct Comparison {
  int argument = 0;
  std::string file, difference;
};

std::vector<Comparison> compare(const KernelCommand& options, const KernelRun& run) {
  std::vector<Comparison> result;
  for (std::size_t i = 0; i < options.expected.size(); ++i) {
    const auto [at, file] =
        output_of(options.expected[i], i, options.expected.size(), run, "expect");
    const auto& output = run.outputs[at];
    result.push_back(
        {output.argument, file, difference(output.tensor, load_npy(file), options.tolerance)});
  }
  return result;
}

void save(const KernelCommand& options, const KernelRun& run) {
  for (std::size_t i = 0; i < options.outputs.size(); ++i) {
    const auto [at, file] = output_of(options.outputs[i], i, options.outputs.size(), run, "out");
    write_own_file(file, encode_npy(run.outputs[at].tensor));
  }
}

page::Json run_json(const KernelCommand& options, const KernelRun& run,
                    const std::vector<Comparison>& comparisons) {
  page::Json findings = page::Json::array(), outputs = page::Json::array(),
             compared = page::Json::array();
  for (const auto& each : run.noted.list()) findings.push_back(fault_json(each));
  if (run.fault) findings.push_back(fault_json(*run.fault));
  for (const auto& output : run.outputs) {
    outputs.push_back({{"argument", output.argument}, {"spec", to_string(output.tensor.spec())}});
  }
  for (const auto& each : comparisons) {
    compared.push_back({{"argument", each.argument},
                        {"expected", each.file},
                        {"equal", each.difference.empty()},
                        {"difference", each.difference}});
  }
  page::Json counters;
  if (!run.fault) {
    counters = to_json({{run.kernel, run.counters}}, true).at(0);
    add_costs(counters, kernels::find_gpu(options.gpu), run.counters, run.costs);
  }
  page::Json json = {{"file", options.file},
                     {"kernel", run.kernel},
                     {"parameters", run.parameters},
                     {"arguments", options.run.arguments},
                     {"grid", options.run.grid},
                     {"block", options.run.block},
                     {"contraction", !options.no_contraction},
                     {"sample", options.run.sample},
                     {"findings", std::move(findings)},
                     {"warnings", run.warnings},
                     {"counters", std::move(counters)},
                     {"outputs", std::move(outputs)},
                     {"comparisons", std::move(compared)}};
  add_unlisted(json, run.noted);
  return json;
}

constexpr std::size_t kShown = 8;

/// The first numbers of each array that the kernel may write.
void print_outputs(const KernelRun& run) {
  for (const auto& output : run.outputs) {
    auto values = to_doubles(output.tensor);
    const bool more = values.size() > kShown;
    values.resize(std::min(values.size(), kShown));
    print_text("argument {}, {}: {:.6g}{}\n", output.argument, to_string(output.tensor.spec()),
               fmt::join(values, " "), more ? " ..." : "");
  }
}

void print_run(const KernelCommand& options, const KernelRun& run) {
  print_noted(run.noted);
  if (run.fault) {
    print_fault(*run.fault);
    if (run.fault->kind() == FaultKind::DivergentBarrier && !options.run.skip_ended) {
      print_text("  with --skip-ended barriers wait only for threads that have not ended\n");
    }
    return;
  }
  const auto name = fs::path(options.file).filename().string();
  const std::vector<CountedRun> runs = {{name, {{run.kernel, run.counters}}}};
  const CostTable costs = {{run.kernel, run.costs}};
  const auto& gpu = kernels::find_gpu(options.gpu);
  print_sample(options);
  print_counters(runs, gpu.capability);
  print_costs(gpu, runs[0].kernels, costs);
  if (!options.brief) {
    print_lines(runs);
    print_passes(runs);
    print_branches(name, costs);
  }
  print_text("\n");
  if (run.noted.empty()) {
    print_text("{}\n", run.warnings.empty() ? "nothing wrong was found" : "no fault was found");
  }
  for (const auto& warning : run.warnings) print_text("warning: {}\n", warning);
  print_outputs(run);
}

int exit_code(const KernelRun& run, const std::vector<Comparison>& comparisons) {
  if (run.fault || !run.noted.empty()) return kCheckFailed;
  const bool wrong = std::ranges::any_of(
      comparisons, [](const Comparison& each) { return !each.difference.empty(); });
  return wrong ? kNumeric : kDone;
}

void run(const KernelCommand& options, Context& context) {
  if (is_program(options)) return run_program(options, context);
  require_writable_outputs(options);
  const TemporaryFolder folder("kernel");
  auto registers = std::async(std::launch::async, [&] { return kernel_registers(options); });
  fs::path library = options.file;
  if (library.extension() != ".so") {
    library = folder.path() / "kernels.so";
    compile_kernel_file(options, library);
  }
  const KernelLibrary opened(library);
  auto request = options.run;
  request.gpu = &kernels::find_gpu(options.gpu);
  request.registers = registers.get();
  const auto result = kernels::run_kernel(opened, request);
  std::vector<Comparison> comparisons;
  if (!result.fault) {
    save(options, result);
    comparisons = compare(options, result);
  }
  context.exit_code = exit_code(result, comparisons);
  if (context.json) {
    return print_document("kernel run",
                          page::Json::array({run_json(options, result, comparisons)}));
  }
  print_run(options, result);
  for (const auto& each : comparisons) {
    print_text("argument {}, beside {}: {}\n", each.argument, each.file,
               each.difference.empty() ? "equal within the tolerance" : each.difference);
  }
}

void add_compiler_options(Command command, KernelCommand& options, bool needs_file) {
  auto file = command.add_option("file", options.file, "CUDA source, such as my.cu");
  if (needs_file) file.required();
  command.add_option("--define", options.defines, "define a macro, like -D of nvcc").repeated();
  command.add_option("--include", options.includes, "folder of headers, like -I of nvcc")
      .repeated();
  command
      .add_option("--pre-include", options.pre_includes,
                  "header in front of each source, such as unistd.h, like -include of nvcc")
      .value("HEADER")
      .repeated();
  command.add_flag("--no-contraction", options.no_contraction,
                   "round a * b + c twice, like nvcc -fmad=false");
  command
      .add_option("--gpu", options.gpu,
                  "GPU for the costs, for the questions of a whole program, or of a module")
      .check(one_of(gpu_names()));
}

Command add_build(Command& kernel, Context& context) {
  auto options = std::make_shared<KernelCommand>();
  auto command =
      kernel.add_subcommand("build", "Compile CUDA C++ for the emulator and list its kernels");
  add_compiler_options(command, *options, true);
  command.add_option("--kernel", options->run.kernel, "instance of a template, such as tiled<16>");
  command.add_option("--out", options->library, "library for kernel run, such as my.so")
      .output_file();
  command
      .add_flag("--module", options->module,
                "build a module for the driver API of a whole program, as nvcc -fatbin does")
      .only_with("--out");
  command.callback([options, &context] { build(*options, context.json); });
  return command;
}

Command add_run(Command& kernel, Context& context) {
  auto options = std::make_shared<KernelCommand>();
  auto command =
      kernel.add_subcommand("run", "Run a kernel on arrays and count and check its accesses");
  add_launch_options(command, *options, true);
  command
      .add_option("--out", options->outputs, "file for an output: c.npy, or 4=c.npy for argument 4")
      .repeated()
      .output_file();
  command
      .add_option("--expect", options->expected,
                  "file to compare an output with: ref.npy, or 4=ref.npy for argument 4")
      .repeated();
  command
      .add_option("--tolerance", options->tolerance,
                  "largest difference from --expect, times max(1, |expected|)")
      .check(number_from(0, 1e6))
      .only_with("--expect");
  command
      .add_option("--sample", options->run.sample,
                  "count and check every N-th block of a kernel's launches; the others only run")
      .value("N")
      .check(whole_from(1, std::int64_t{1} << 31));
  command.add_flag("--strict", options->strict,
                   "for a whole program: warnings about undefined values end it");
  command.add_flag("--keep-going", options->run.keeps_going,
                   "list races and reads of undefined memory or outside of arrays, and continue");
  command.add_flag("--last-first", options->run.last_first,
                   "run the threads of a block in descending order, which changes races");
  command.add_flag("--brief", options->brief, "omit the table by source line");
  add_confine_option(command, options->confine,
                     "compile and run it without access to anything except its arrays");
  command.callback([options, &context] {
    options->confine == Confinement::None ? run(*options, context)
                                          : run_confined(*options, context);
  });
  return command;
}

}  // namespace

void compile_kernel_file(const KernelCommand& options, const fs::path& library) {
  const auto warnings = kernels::compile_kernels(source_of(options), library);
  if (!warnings.empty()) say_always(warnings);
}

std::map<std::string, int> kernel_registers(const KernelCommand& options) {
  if (fs::path(options.file).extension() == ".so") return {};
  const auto source = source_of(options);
  return kernels::find_registers({.files = {source.file},
                                  .instances = source.instances,
                                  .options = source.options,
                                  .contract = source.contract,
                                  .architecture = kernels::find_gpu(options.gpu).architecture()});
}

void add_sizes(Command command, const std::string& name, std::vector<std::int64_t>& sizes,
               const std::string& help, std::int64_t least) {
  const auto take = [&sizes, least](const std::string& text) {
    const auto parts = split_list(text);
    sizes.clear();
    for (const auto& part : parts) {
      const auto size = read_number(part);
      if (parts.size() > 3 || !size || *size < static_cast<double>(least) ||
          *size != std::floor(*size) || *size > 1e10) {
        throw InvalidArgument(fmt::format(
            "one to three whole numbers from {} on, as in 16,16; not \"{}\"", least, text));
      }
      sizes.push_back(static_cast<std::int64_t>(*size));
    }
  };
  command.add_text(
      name, take, [&sizes] { return fmt::format("{}", fmt::join(sizes, ",")); }, help);
}

void add_launch_options(Command& command, KernelCommand& options, bool needs_file) {
  auto& request = options.run;
  add_compiler_options(command, options, needs_file);
  command.add_option(
      "arguments", request.arguments,
      "argument of each parameter: a.npy, a new array f32:64x64 or f32:64x64=0, null, "
      "or a number. For a whole program: arguments of main");
  command
      .add_option("--source", options.sources,
                  "another source file of a whole program, such as b.cu")
      .value("FILE")
      .repeated();
  command.add_option("--gpus", options.gpus, "number of GPUs of a whole program, all of this kind")
      .check(whole_from(1, 16));
  command.add_option("--kernel", request.kernel,
                     "kernel of a file with several, such as tiled<16>");
  add_sizes(command, "--grid", request.grid, "number of blocks, such as 4,4");
  add_sizes(command, "--block", request.block, "threads per block, such as 16,16");
  command.add_option("--shared", request.shared_bytes, "bytes of extern __shared__ memory")
      .check(whole_from(0, 227 * 1024));
  command
      .add_option("--constant", request.constants,
                  "value of a __constant__ or __device__ variable, such as mask=mask.npy")
      .repeated();
  add_run_option(command, "--seed", request.seed, "seed of arrays filled with =random");
  command.add_option("--threads", request.threads, "CPU threads. With 1 every run is the same")
      .check(whole_from(1, training::most_of("--threads")));
  command
      .add_option("--max-steps", request.most_steps,
                  "accesses and branches after which a thread counts as endless")
      .check(whole_from(1, std::int64_t{1} << 40));
  command.add_flag("--skip-ended", request.skip_ended,
                   "let barriers ignore threads that have ended, with a warning");
}

void describe_kernel(Command& command, Context& context) {
  command.require_subcommand();
  for (auto each :
       {add_build(command, context), add_run(command, context), add_debug(command, context)}) {
    each.add_flag("--json", context.json, "print JSON");
  }
}

}  // namespace triptych::app
