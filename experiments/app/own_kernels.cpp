// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/own_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/console.h"
#include "core/io/temporary_folder.h"
#include "experiments/app/kernel_command.h"
#include "experiments/app/kernel_costs.h"
#include "experiments/app/kernel_counters.h"
#include "experiments/kernels/kernel_source.h"
#include "experiments/kernels/program_run.h"
#include "experiments/web/kernel_record.h"
#include "experiments/web/pages.h"

namespace triptych::app {

struct OwnKernels {
  KernelCommand command;
  std::vector<std::string> beside;
};

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostWatched = 8;  ///< kernels of a program
constexpr std::uintmax_t kMostSourceBytes = std::uintmax_t{1} << 20;

std::string text_of(const KernelFault& fault) {
  const auto& place = fault.place();
  return fmt::format("{} at {}:{}, block {}, thread {}: {}", to_string(fault.kind()), place.file,
                     place.line, to_string(place.block), to_string(place.thread), fault.reason());
}

/// Collects the versions of a page.
class Record {
 public:
  Record(std::string file, const kernels::Gpu& gpu) : file_(std::move(file)), gpu_(gpu) {}

  void add(const std::string& name, const KernelCounters& counters,
           const kernels::KernelCosts& costs, page::Json warps) {
    auto json = to_json({{name, counters}}, true).at(0);
    add_costs(json, gpu_, counters, costs);
    add_version(name, "", std::move(json), std::move(warps));
  }
  void add_fault(const std::string& name, const KernelFault& fault, page::Json warps) {
    add_version(name, text_of(fault), {}, std::move(warps));
  }

  std::string page() const {
    auto sources = page::Json::object();
    for (const auto& file : files_) sources[file] = source_of(file);
    return web::kernel_page({{"file", fs::path(file_).filename().string()},
                             {"gpu", gpu_.name},
                             {"versions", versions_},
                             {"sources", std::move(sources)}});
  }

 private:
  void add_version(const std::string& name, const std::string& finding, page::Json counters,
                   page::Json warps) {
    for (const auto& warp : warps) {
      for (const auto& step : warp["steps"]) files_.insert(step["file"].get<std::string>());
    }
    if (counters.contains("branches")) {
      for (const auto& branch : counters["branches"]) {
        files_.insert(branch["file"].get<std::string>());
      }
    }
    versions_.push_back({{"name", name},
                         {"finding", finding},
                         {"counters", std::move(counters)},
                         {"warps", std::move(warps)}});
  }
  /// Empty where the file cannot be shown.
  static std::string source_of(const std::string& file) {
    std::error_code failed;
    const auto bytes = fs::file_size(file, failed);
    if (failed || bytes > kMostSourceBytes) return {};
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }

  std::string file_;
  const kernels::Gpu& gpu_;
  page::Json versions_ = page::Json::array();
  std::set<std::string> files_;
};

/// A launch of one kernel for each version.
void record_launches(const OwnKernels& own, const kernels::Gpu& gpu, Record& record) {
  auto versions = std::vector<std::pair<std::string, std::string>>{
      {own.command.file, own.command.run.kernel}};  // file and kernel
  for (const auto& each : own.beside) {
    const bool is_file = fs::path(each).extension() == ".cu";
    versions.emplace_back(is_file ? each : own.command.file,
                          is_file ? own.command.run.kernel : each);
  }
  const bool has_files = std::ranges::any_of(
      versions, [&](const auto& version) { return version.first != own.command.file; });
  const TemporaryFolder folder("kernel");
  for (std::size_t i = 0; i < versions.size(); ++i) {
    auto command = own.command;
    std::tie(command.file, command.run.kernel) = versions[i];
    const auto library = folder.path() / fmt::format("kernels-{}.so", i);
    compile_kernel_file(command, library);
    const cuda::plain::KernelLibrary opened(library);
    std::unique_ptr<web::WarpLog> log;
    command.run.gpu = &gpu;
    command.run.registers = kernel_registers(command);
    command.run.watch = [&](const cuda::plain::KernelLibrary&, const cuda::plain::Launch& launch) {
      log = std::make_unique<web::WarpLog>(launch);
      return log.get();
    };
    const auto run = kernels::run_kernel(opened, command.run);
    const auto name =
        has_files ? fmt::format("{} ({})", run.kernel, fs::path(command.file).filename().string())
                  : run.kernel;
    if (run.fault) {
      record.add_fault(name, *run.fault, log->warps());
    } else {
      record.add(name, run.counters, run.costs, log->warps());
    }
  }
}

/// The first launch of each kernel of a whole program.
void record_program(const OwnKernels& own, Record& record) {
  std::set<std::string> chosen(own.beside.begin(), own.beside.end());
  if (!own.command.run.kernel.empty()) chosen.insert(own.command.run.kernel);
  std::map<std::string, std::unique_ptr<web::WarpLog>> logs;
  auto request = program_request(own.command);
  request.takes_output = true;
  request.options.watch = [&](const cuda::plain::KernelLibrary&,
                              const cuda::plain::Launch& launch) -> web::WarpLog* {
    const bool is_chosen = chosen.empty() || chosen.contains(launch.kernel) ||
                           chosen.contains(launch.kernel.substr(0, launch.kernel.find('<')));
    if (!is_chosen || logs.size() == kMostWatched) return nullptr;
    const auto [found, is_new] = logs.try_emplace(launch.kernel);
    if (!is_new) return nullptr;
    found->second = std::make_unique<web::WarpLog>(launch);
    return found->second.get();
  };
  const auto run = kernels::run_program(request);
  if (!run.compiler_warnings.empty()) say_always(run.compiler_warnings);
  const auto& report = run.report;
  for (const auto& [name, log] : logs) {
    const auto counted = report.kernels.find(name);
    if (counted != report.kernels.end()) {
      record.add(name, counted->second, report.costs.at(name), log->warps());
    } else if (report.fault) {
      record.add_fault(name, *report.fault, log->warps());
    }
  }
  if (logs.empty()) {
    throw InvalidArgument(fmt::format(
        "{} launched {}; triptych kernel run {} shows its output and mistakes", own.command.file,
        report.kernels.empty() ? "no kernel"
                               : fmt::format("none of the chosen kernels, but {}",
                                             fmt::join(std::views::keys(report.kernels), ", ")),
        own.command.file));
  }
}

}  // namespace

std::shared_ptr<OwnKernels> make_own_kernels() { return std::make_shared<OwnKernels>(); }

void add_own_kernels(Command& command, OwnKernels& own) {
  add_launch_options(command, own.command);
  command
      .add_option("--beside", own.beside,
                  "second kernel of the file, or second .cu file, to compare with")
      .value("NAME")
      .repeated();
}

bool has_file(const OwnKernels& own) { return !own.command.file.empty(); }

std::string own_kernel_page(const OwnKernels& own) {
  const auto& gpu = kernels::find_gpu(own.command.gpu);
  Record record(own.command.file, gpu);
  if (is_unlaunched_program(own.command)) {
    record_program(own, record);
  } else {
    record_launches(own, gpu, record);
  }
  return record.page();
}

}  // namespace triptych::app
