// `triptych doctor`: installed and missing parts, and the command that adds each.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "backends/all_backends.h"
#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/mapped.h"
#include "core/io/find_program.h"
#include "core/nn/training_graph.h"
#include "core/runtime/executor.h"
#include "experiments/app/commands.h"
#include "experiments/app/output.h"
#include "experiments/kernels/clang.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"
#include "systolic/sim/toolchain.h"

namespace triptych::app {
namespace {

enum class Status { Ok, Missing, Failed };

std::string_view to_string(Status status) {
  switch (status) {
    case Status::Ok:
      return "ok";
    case Status::Missing:
      return "missing";
    case Status::Failed:
      return "failed";
  }
  return "";
}

struct ToolFinding {
  std::string name;
  Status status = Status::Ok;
  bool required = false;
  std::string detail;
  std::string remedy;
};

/// A program on the PATH, for a part of the project that can be left out.
struct OptionalTool {
  const char* program;
  const char* purpose;
  const char* remedy;
};

constexpr OptionalTool kTools[] = {
    {"nvcc", "builds the CUDA kernels", "install the CUDA Toolkit 13 from NVIDIA's repository"},
    {"nvidia-smi", "the NVIDIA driver", "install NVIDIA's driver for this GPU"},
    {"mpirun", "runs ranks as processes", "apt-get install libopenmpi-dev openmpi-bin"},
    {"python3", "grades the labs and tests the claims", "apt-get install python3"},
    {"verilator", "simulates the systolic array's RTL", mmu::kToolsRemedy},
    {"clang++", "makes that simulation several times faster", "apt-get install clang"},
    {"yosys", "measures the area of the RTL", "apt-get install yosys"},
    {"gtkwave", "shows waveforms", "apt-get install gtkwave"},
    {"dot", "draws `explain --dot` graphs", "apt-get install graphviz"},
    {"clang-format", "checks the format of the source", "apt-get install clang-format"},
    {"clang-tidy", "checks names and sizes", "apt-get install clang-tidy"},
};

ToolFinding check_tool(const OptionalTool& tool) {
  if (const auto path = find_program(tool.program))
    return {tool.program, Status::Ok, false, path->string(), ""};
  return {tool.program, Status::Missing, false, fmt::format("optional: {}", tool.purpose),
          tool.remedy};
}

/// The versions of clang that compile programs with `main`.
ToolFinding check_program_compiler() {
  ToolFinding finding = {"clang of kernel run", Status::Ok, false, "", ""};
  try {
    finding.detail = kernels::find_clang("programs");
    if (const auto newer = kernels::newer_clang(finding.detail)) {
      finding.detail += fmt::format(", and {} for files that it refuses", *newer);
    }
  } catch (const DeviceError&) {
    finding.status = Status::Missing;
    finding.detail = "optional: compiles CUDA programs";
    finding.remedy = "apt-get install clang";
  }
  return finding;
}

ToolFinding check_backend(const Backend& backend) {
  ToolFinding finding = {fmt::format("backend {}", backend.name()), Status::Ok,
                         backend.name() == "cpu", "", ""};
  const auto availability = backend.availability();
  if (availability.available) {
    const auto devices = backend.devices();
    auto parts = mapped<std::string>(devices, [&](const auto& info) {
      return devices.size() > 1 ? info.name : fmt::format("{}: {}", info.name, info.description);
    });
    finding.detail = fmt::format("{}", fmt::join(parts, ", "));
    return finding;
  }
  finding.status = Status::Missing;
  finding.detail = availability.reason;
  finding.remedy = availability.remedy;
  return finding;
}

ToolFinding check_library(const BackendLibrary& library) {
  ToolFinding finding = {library.name, Status::Ok, false, library.version, ""};
  if (!library.version.empty()) return finding;
  finding.status = Status::Missing;
  finding.detail = fmt::format("optional, for {}: {}", library.purpose, library.reason);
  finding.remedy = library.remedy;
  return finding;
}

/// Trains a tiny network for a few steps on the CPU: the whole chain works, and the loss falls.
ToolFinding check_training() {
  ToolFinding finding = {"training self-test", Status::Ok, true, "", ""};
  ModelConfig model = model_preset("unet-s");
  model.base = 2;
  model.depth = 1;
  model.size = 8;
  const auto device = open_device("cpu");
  StateStore states(*device);
  auto training = build_training_graph(model, {.batch = 1});
  Executor executor(make_plan(std::move(training.graph), {device.get()}), states);
  Tensor x(TensorSpec{DType::F32, Shape{1, 1, 8, 8}});
  for (std::size_t i = 0; i < 64; ++i) x.as<float>()[i] = i % 8 < 4 ? 1.0F : -1.0F;
  Tensor target = x.clone();
  for (auto& value : target.as<float>()) value = value > 0 ? 1.0F : 0.0F;
  executor.set_input("x", x);
  executor.set_input("target", target);
  executor.set_input("learning_rate", scalar_tensor(0.05F));
  executor.run();
  const float first = executor.output("loss").as<float>()[0];
  for (int step = 0; step < 20; ++step) executor.run();
  const float last = executor.output("loss").as<float>()[0];
  finding.detail = fmt::format("20 steps of a tiny U-Net: loss {:.4f} -> {:.4f}", first, last);
  if (!(last < first)) finding.status = Status::Failed;
  return finding;
}

ToolFinding check_memory() {
  const auto pages = static_cast<double>(sysconf(_SC_AVPHYS_PAGES));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  ToolFinding finding = {"free memory", Status::Ok, false, page::format_bytes(pages * page), ""};
  if (pages * page < 512e6) {
    finding.status = Status::Failed;
    finding.remedy = "close other programs; unet-l training needs about 1 GiB";
  }
  return finding;
}

std::vector<ToolFinding> examine() {
  std::vector<ToolFinding> findings;
  for (const Backend* backend : all_backends()) {
    findings.push_back(check_backend(*backend));
    for (const auto& library : backend->libraries()) findings.push_back(check_library(library));
  }
  findings.push_back({"threads", Status::Ok, false,
                      fmt::format("{} hardware threads", std::thread::hardware_concurrency()), ""});
  findings.push_back(check_memory());
  try {
    findings.push_back(check_training());
  } catch (const std::exception& error) {
    findings.push_back({"training self-test", Status::Failed, true, error.what(), ""});
  }
  for (const auto& tool : kTools) findings.push_back(check_tool(tool));
  findings.push_back(check_program_compiler());
  return findings;
}

void print_finding(const ToolFinding& finding) {
  const std::string space(9, ' ');
  const auto text = page::wrapped(space + finding.name + ": " + finding.detail, space.size());
  const auto status = to_string(finding.status);
  const auto style = finding.status == Status::Ok ? Style::Green
                     : finding.required           ? Style::Red
                                                  : Style::Yellow;
  print_pieces({{status, style}, {std::string_view(text).substr(status.size())}});
  if (finding.remedy.empty()) return;
  print_text("{}", page::wrapped(space + "to add it: " + finding.remedy, space.size()));
}

void report(const std::vector<ToolFinding>& findings, Context& context) {
  page::Json results = page::Json::array();
  for (const auto& finding : findings) {
    if (finding.required && finding.status != Status::Ok) context.exit_code = kCheckFailed;
    results.push_back({{"name", finding.name},
                       {"status", to_string(finding.status)},
                       {"required", finding.required},
                       {"detail", finding.detail},
                       {"remedy", finding.remedy}});
  }
  if (context.json) {
    print_document("doctor", std::move(results));
  } else {
    for (const auto& finding : findings) print_finding(finding);
  }
}

}  // namespace

void describe_doctor(Command& command, Context& context) {
  command.add_flag("--json", context.json, "print JSON");
  command.callback([&context] { report(examine(), context); });
}

}  // namespace triptych::app
