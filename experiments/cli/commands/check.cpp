// `triptych check`: GPU kernels run by the emulator with every access checked, on the cases by
// which the test suite judges their operators.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "backends/all_backends.h"
#include "core/runtime/kernel_fault.h"
#include "experiments/cli/commands.h"
#include "experiments/cli/output.h"
#include "experiments/cli/usage.h"
#include "tests/conformance/case_runner.h"

namespace triptych::cli {
namespace {

using conformance::OpCase;

struct CheckOptions {
  std::string backend = "cuda-emulated";
  std::string kernels;
  std::string op;
  std::string contract = "f32";
  int threads = 0;
};

/// What is wrong at one place, or with one result; the cases in which it is are counted.
struct Finding {
  std::string kind;
  std::string case_name;  ///< the first
  std::string message;
  std::optional<FaultPlace> place;
  int cases = 1;
};

/// The outcome for one kernel.
struct Checked {
  std::string op, kernel;
  int cases = 0;    ///< that ran
  int refused = 0;  ///< that it does not accept
  std::string refusal;
  std::vector<Finding> findings;
};

constexpr std::string_view kLesson = "lesson-";

std::unique_ptr<Device> open_checked(const CheckOptions& options, bool lessons) {
  if (find_backend(options.backend).emulates().empty()) {
    throw InvalidArgument(
        fmt::format("{} cannot look into its kernels; leave out --backend, or use cuda-emulated",
                    options.backend));
  }
  return open_device(options.backend, {.threads = options.threads,
                                       .extra = {{"emulation", lessons ? "lessons" : "checked"}}});
}

/// What is wrong with the outputs, by the operator's float64 reference.
std::string wrong_value(const OpCase& test, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& outputs, Contract contract) {
  const auto references = conformance::to_references(inputs);
  const auto expected = conformance::run_on_reference(*test.op, references, contract);
  const auto allowed = conformance::tolerances(*test.op, references, expected, contract);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto difference = conformance::first_difference(outputs[i], expected[i], allowed[i]);
    if (!difference.empty()) return fmt::format("output {}, {}", i, difference);
  }
  return "";
}

bool same_place(const Finding& a, const Finding& b) {
  if (a.kind != b.kind || a.place.has_value() != b.place.has_value()) return false;
  return !a.place || (a.place->file == b.place->file && a.place->line == b.place->line);
}

void add_finding(Checked& checked, Finding finding) {
  const auto same = std::ranges::find_if(
      checked.findings, [&](const Finding& other) { return same_place(other, finding); });
  if (same == checked.findings.end()) {
    checked.findings.push_back(std::move(finding));
  } else {
    ++same->cases;
  }
}

/// What the executor reports of a node, as it came from the kernel.
std::optional<KernelFault> fault_behind(const DeviceError& error) {
  try {
    std::rethrow_if_nested(error);
  } catch (const KernelFault& fault) {
    return fault;
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return std::nullopt;
}

void check_case(const OpCase& test, Device& device, Contract contract, Checked& checked) {
  const auto inputs = conformance::make_inputs(test);
  try {
    const auto outputs =
        conformance::run_on_device(test, inputs, device, contract, nullptr, checked.kernel);
    const auto wrong = wrong_value(test, inputs, outputs, contract);
    if (!wrong.empty()) add_finding(checked, {"wrong value", test.name, wrong, std::nullopt});
  } catch (const UnsupportedError& error) {
    ++checked.refused;
    checked.refusal = error.what();
    return;
  } catch (const DeviceError& error) {
    const auto fault = fault_behind(error);
    if (!fault) throw;
    add_finding(checked, {to_string(fault->kind()), test.name, fault->reason(), fault->place()});
  }
  ++checked.cases;
}

bool is_asked(const KernelEntry& entry, const CheckOptions& options,
              const std::vector<std::string>& names) {
  if (!options.op.empty() && entry.op != options.op) return false;
  return names.empty() || std::ranges::count(names, entry.name) > 0;
}

/// Throws InvalidArgument with the names that are known.
void check_names(const std::vector<KernelEntry>& entries, const CheckOptions& options,
                 const std::vector<std::string>& names) {
  std::vector<std::string> ops, kernels;
  for (const auto& entry : entries) {
    ops.emplace_back(entry.op);
    if (options.op.empty() || entry.op == options.op) kernels.emplace_back(entry.name);
  }
  const auto refuse = [&](const char* what, const std::string& word, const auto& known) {
    const auto meant = nearest_name(word, known);
    throw InvalidArgument(fmt::format(
        "{} has no {} \"{}\"{}", options.backend, what, word,
        meant.empty() ? std::string("; it has ") + fmt::format("{}", fmt::join(known, ", "))
                      : fmt::format("; did you mean \"{}\"?", meant)));
  };
  if (!options.op.empty() && kernels.empty()) refuse("kernel for", options.op, ops);
  for (const auto& name : names) {
    if (std::ranges::count(kernels, name) == 0) refuse("kernel", name, kernels);
  }
}

std::vector<Checked> check(const CheckOptions& options) {
  const auto contract = contract_from_string(options.contract);
  const auto names = split_list(options.kernels);
  const std::vector<std::string> asked =
      options.kernels.empty() ? std::vector<std::string>{} : names;
  const auto own = open_checked(options, false), lessons = open_checked(options, true);
  std::vector<KernelEntry> entries(own->kernels().begin(), own->kernels().end());
  entries.insert(entries.end(), lessons->kernels().begin(), lessons->kernels().end());
  check_names(entries, options, asked);
  const auto cases = conformance::all_cases();
  std::vector<Checked> results;
  for (const auto& entry : entries) {
    const bool lesson = entry.name.starts_with(kLesson);
    if (!is_asked(entry, options, asked) || (lesson && asked.empty())) continue;
    Checked checked = {.op = std::string(entry.op), .kernel = std::string(entry.name)};
    for (const auto& test : cases) {
      if (test.op->name() == entry.op) {
        check_case(test, lesson ? *lessons : *own, contract, checked);
      }
    }
    if (checked.cases == 0 && !asked.empty()) {
      throw UnsupportedError(
          fmt::format("{} {}: no case of the suite suits this kernel{}{}", entry.op, entry.name,
                      checked.refusal.empty() ? "" : "; of the last one: ", checked.refusal));
    }
    results.push_back(std::move(checked));
  }
  return results;
}

Json index_json(const FaultPlace::Index& index) { return {index.x, index.y, index.z}; }

Json to_json(const std::vector<Checked>& results, const CheckOptions& options) {
  Json list = Json::array();
  for (const auto& checked : results) {
    Json findings = Json::array();
    for (const auto& finding : checked.findings) {
      Json json = {{"kind", finding.kind},
                   {"case", finding.case_name},
                   {"cases", finding.cases},
                   {"message", finding.message}};
      if (finding.place) {
        json["launch"] = finding.place->kernel;
        json["file"] = finding.place->file;
        json["line"] = finding.place->line;
        json["block"] = index_json(finding.place->block);
        json["thread"] = index_json(finding.place->thread);
      }
      findings.push_back(std::move(json));
    }
    list.push_back({{"backend", options.backend},
                    {"contract", options.contract},
                    {"op", checked.op},
                    {"kernel", checked.kernel},
                    {"cases", checked.cases},
                    {"refused", checked.refused},
                    {"findings", std::move(findings)}});
  }
  return list;
}

void print_finding(const Finding& finding) {
  if (finding.place) {
    const auto& place = *finding.place;
    fmt::print("  {} at {}:{}, block {}, thread {} of {}\n", finding.kind, place.file, place.line,
               to_string(place.block), to_string(place.thread), place.kernel);
  } else {
    fmt::print("  {}\n", finding.kind);
  }
  fmt::print("    {}\n    in case {}{}\n", finding.message, finding.case_name,
             finding.cases > 1 ? fmt::format(" and {} more", finding.cases - 1) : "");
}

void print(const std::vector<Checked>& results) {
  for (const auto& checked : results) {
    fmt::print("{} {}: {} cases{}: {}\n", checked.op, checked.kernel, checked.cases,
               checked.refused > 0 ? fmt::format(" ({} are not for it)", checked.refused) : "",
               checked.findings.empty() ? "nothing wrong"
                                        : fmt::format("{} wrong", checked.findings.size()));
    for (const auto& finding : checked.findings) print_finding(finding);
  }
}

}  // namespace

void add_check_command(Command& app, Context& context) {
  auto options = std::make_shared<CheckOptions>();
  auto command =
      app.add_subcommand("check", "Look for races, bounds and other faults in GPU kernels");
  command.add_option("--kernel", options->kernels, "kernels: naive,tiled; without it all of them");
  command.add_option("--op", options->op, "kernels of this operator only: MatMul");
  command.add_option("--backend", options->backend, "the machine that looks into its kernels")
      .capture_default_str();
  command.add_option("--contract", options->contract, "f32, bf16, bf16-exact or int8")
      .capture_default_str();
  command.add_option("--threads", options->threads, "CPU threads; 0: as many as there are")
      .check(whole_from(0, kMaxThreads))
      .capture_default_str();
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] {
    const auto results = check(*options);
    const bool wrong = std::ranges::any_of(
        results, [](const Checked& checked) { return !checked.findings.empty(); });
    if (wrong) context.exit_code = kCheckFailed;
    if (context.json) {
      print_document("check", to_json(results, *options));
    } else {
      print(results);
    }
  });
}

}  // namespace triptych::cli
