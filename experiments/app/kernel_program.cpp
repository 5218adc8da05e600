// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/kernel_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "core/base/console.h"
#include "core/base/list_text.h"
#include "core/base/mapped.h"
#include "core/io/output_ledger.h"
#include "experiments/app/kernel_costs.h"
#include "experiments/app/kernel_counters.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/kernels/program_module.h"
#include "experiments/kernels/program_run.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

namespace fs = std::filesystem;
namespace program = cuda::program;

page::Json dim_json(const cuda::emulation::Dim3& d) { return {d.x, d.y, d.z}; }

page::Json findings_json(const program::ProgramReport& report) {
  page::Json list = page::Json::array();
  for (const auto& each : report.findings) {
    list.push_back({{"kind", "host"},
                    {"call", each.call},
                    {"message", each.message},
                    {"file", each.file},
                    {"line", each.line}});
  }
  for (const auto& each : report.noted.list()) {
    list.push_back(fault_json(each));
    list.back()["kernel"] = each.first.place().kernel;
  }
  if (report.fault) {
    list.push_back(fault_json(*report.fault));
    list.back()["kernel"] = report.fault->place().kernel;
  }
  return list;
}

page::Json kernels_json(const program::Gpu& gpu, const program::ProgramReport& report) {
  auto list = to_json(report.kernels, true);
  for (auto& json : list) {
    const auto name = json.at("kernel").get<std::string>();
    add_costs(json, gpu, report.kernels.at(name), report.costs.at(name));
  }
  return list;
}

page::Json launches_json(const program::Gpu& gpu, const program::ProgramReport& report) {
  page::Json list = page::Json::array();
  for (const auto& each : report.launches) {
    auto counters = to_json({{each.kernel, each.counters}}, false).at(0);
    add_costs(counters, gpu, each.counters, each.costs);
    counters.update({{"file", each.file},
                     {"line", each.line},
                     {"grid", dim_json(each.shape.grid)},
                     {"block", dim_json(each.shape.block)},
                     {"dynamic_shared_bytes", each.shape.shared_bytes}});
    list.push_back(std::move(counters));
  }
  return list;
}

page::Json report_json(const KernelCommand& options, const kernels::ProgramRun& run) {
  const auto& report = run.report;
  page::Json json = {{"file", options.file},
                     {"arguments", options.run.arguments},
                     {"gpu", run.gpu->name},
                     {"contraction", !options.no_contraction},
                     {"sample", options.run.sample},
                     {"status", report.status},
                     {"stopped", report.reason},
                     {"output", run.output},
                     {"findings", findings_json(report)},
                     {"warnings", report.warnings},
                     {"kernels", kernels_json(*run.gpu, report)},
                     {"launches", launches_json(*run.gpu, report)}};
  add_unlisted(json, report.noted);
  return json;
}

void print_place(const std::string& file, unsigned line) {
  const auto text = line_of_source(file, line);
  if (!text.empty()) print_text("  {} | {}\n", line, text);
}

void print_findings(const program::ProgramReport& report) {
  for (const auto& each : report.findings) {
    const auto place =
        each.line == 0 ? "an unknown place" : fmt::format("{}:{}", each.file, each.line);
    const auto error = each.error == program::cudaSuccess
                           ? ""
                           : fmt::format(" (error {})", static_cast<int>(each.error));
    print_text("{} at {}{}\n  {}\n", each.call.empty() ? "host code" : each.call, place, error,
               each.message);
    if (each.line != 0) print_place(each.file, each.line);
  }
  print_noted(report.noted);
  if (report.fault) print_fault(*report.fault);
}

void print_report(const KernelCommand& options, const kernels::ProgramRun& run) {
  const auto& report = run.report;
  const auto name = fs::path(options.file).filename().string();
  print_text("\n{}: {} of {} on an emulated {}\n", name,
             counted(std::ssize(report.launches), "launch"),
             counted(std::ssize(report.kernels), "kernel"), run.gpu->name);
  if (!report.kernels.empty()) {
    const std::vector<CountedRun> runs = {{name, report.kernels}};
    print_sample(options);
    print_counters(runs, run.gpu->capability);
    print_costs(*run.gpu, report.kernels, report.costs);
    if (!options.brief) {
      print_lines(runs);
      print_passes(runs);
      print_branches(name, report.costs);
    }
    print_text("\n");
  }
  for (const auto& warning : report.warnings) print_text("warning: {}\n", warning);
  print_findings(report);
  if (!report.reason.empty()) print_text("the program was stopped: {}\n", report.reason);
  if (report.status != 0) print_text("status of the program: {}\n", report.status);
  if (report.findings.empty() && report.noted.empty() && !report.fault && report.reason.empty()) {
    print_text("nothing wrong was found\n");
  }
}

}  // namespace

void print_sample(const KernelCommand& options) {
  if (options.run.sample == 1) return;
  print_text(
      "counted and checked: blocks 0, {0}, {1}, ... of each kernel, numbered through all of its "
      "launches (--sample {0}); all counters and times are theirs\n",
      options.run.sample, 2 * options.run.sample);
}

void print_fault(const KernelFault& fault) {
  const auto& place = fault.place();
  print_text("{} at {}:{}, block {}, thread {} of {}\n  {}\n", to_string(fault.kind()), place.file,
             place.line, to_string(place.block), to_string(place.thread), place.kernel,
             fault.reason());
  const auto text = line_of_source(place.file, place.line);
  if (!text.empty()) print_text("  {} | {}\n", place.line, text);
}

void print_noted(const kernels::NotedFaults& noted) {
  if (noted.empty()) return;
  auto faults = noted.unlisted();
  for (const auto& each : noted.list()) {
    print_fault(each.first);
    if (each.count > 1) print_text("  {} times at these lines\n", each.count);
    faults += each.count;
  }
  if (noted.unlisted() > 0) {
    print_text("{} more at places that are not listed\n", noted.unlisted());
  }
  print_text("{} (--keep-going)\n",
             faults == 1 ? "1 fault was found, and the run continued"
                         : fmt::format("{} faults were found, and the run continued", faults));
}

void add_unlisted(page::Json& result, const kernels::NotedFaults& noted) {
  result["unlisted_faults"] = noted.unlisted();
}

page::Json fault_json(const cuda::emulation::NotedFault& noted) {
  auto json = fault_json(noted.first);
  json["count"] = noted.count;
  json["other_line"] = noted.other_line == 0 ? page::Json() : page::Json(noted.other_line);
  return json;
}

page::Json fault_json(const KernelFault& fault) {
  page::Json json = {{"kind", to_string(fault.kind())}, {"message", fault.reason()}};
  json.update(place_json(fault.place()));
  return json;
}

std::vector<std::string> gpu_names() {
  return mapped<std::string>(program::gpus(), [](const auto& gpu) { return gpu.key; });
}

std::vector<std::string> compiler_options(const KernelCommand& options) {
  auto words =
      mapped<std::string>(options.defines, [](const auto& define) { return "-D" + define; });
  for (const auto& folder : options.includes) words.push_back("-I" + folder);
  for (const auto& header : options.pre_includes) {
    words.insert(words.end(), {"-include", header});
  }
  return words;
}

bool is_unlaunched_program(const KernelCommand& options) {
  const std::vector<std::int64_t> one = {1};
  const auto& request = options.run;
  const bool describes_launch = request.grid != one || request.block != one ||
                                request.shared_bytes != 0 || !request.constants.empty();
  return !describes_launch && fs::path(options.file).extension() != ".so" &&
         fs::is_regular_file(options.file) && kernels::is_whole_program(options.file);
}

bool is_program(const KernelCommand& options) {
  return options.run.kernel.empty() && options.outputs.empty() && options.expected.empty() &&
         is_unlaunched_program(options);
}

kernels::ProgramRequest program_request(const KernelCommand& options) {
  kernels::ProgramRequest request;
  request.source.files = {options.file};
  request.source.files.insert(request.source.files.end(), options.sources.begin(),
                              options.sources.end());
  request.source.contract = !options.no_contraction;
  request.source.debugs = options.debugs;
  request.source.options = compiler_options(options);
  request.words = options.run.arguments;
  request.gpu = options.gpu;
  request.options.gpus = options.gpus;
  request.options.threads = options.run.threads;
  request.options.most_steps = static_cast<std::uint64_t>(options.run.most_steps);
  request.options.barriers_skip_ended = options.run.skip_ended;
  request.options.strict = options.strict;
  request.options.keeps_going = options.run.keeps_going;
  request.options.last_first = options.run.last_first;
  request.options.sample = static_cast<std::uint64_t>(options.run.sample);
  return request;
}

void build_module(const KernelCommand& options, bool json) {
  require_writable(options.library);
  const auto begin = std::chrono::steady_clock::now();
  const auto module =
      kernels::compile_module({.files = {options.file},
                               .contract = !options.no_contraction,
                               .options = compiler_options(options),
                               .architecture = 10 * kernels::find_gpu(options.gpu).architecture()});
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (!module.compiler_warnings.empty()) say_always(module.compiler_warnings);
  write_own_file(options.library, module.image);
  if (!json) {
    return print_text("module built in {} (measured): {}\n", page::format_seconds(taken.count()),
                      options.library);
  }
  print_document(
      "kernel build",
      page::Json::array({{{"file", options.file},
                          {"kernel", page::Json()},
                          {"parameters", page::Json::array()},
                          {"library", options.library},
                          {"time", page::time_json({taken.count(), TimeKind::Measured})}}}));
}

void run_program(const KernelCommand& options, Context& context) {
  auto request = program_request(options);
  request.takes_output = context.json;
  const auto run = kernels::run_program(request);
  if (!run.compiler_warnings.empty()) say_always(run.compiler_warnings);
  const auto& report = run.report;
  const bool wrong =
      report.fault || !report.noted.empty() || !report.findings.empty() || report.status != 0;
  context.exit_code = wrong ? kCheckFailed : kDone;
  if (context.json) {
    return print_document("kernel run", page::Json::array({report_json(options, run)}));
  }
  print_report(options, run);
}

}  // namespace triptych::app
