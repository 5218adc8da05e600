// SPDX-License-Identifier: Apache-2.0
#include "experiments/check/kernel_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <string_view>

#include "backends/all_backends.h"
#include "core/base/list_text.h"
#include "core/base/nearest_name.h"
#include "experiments/check/case_runner.h"

namespace triptych::check {
namespace {

using conformance::OpCase;

constexpr std::string_view kLesson = "lesson-";

/// True for a backend that checks each access of its kernels. Of others the results are checked.
bool observes(const CheckRequest& request) {
  return !find_backend(request.backend).emulates().empty();
}

std::unique_ptr<Device> open_checked(const CheckRequest& request, bool lessons) {
  DeviceOptions options = {.threads = request.threads};
  if (observes(request)) options.extra["emulation"] = lessons ? "lessons" : "checked";
  return open_device(request.backend, options);
}

/// Errors of the outputs, by the operator's float64 reference.
std::string wrong_value(const OpCase& test, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& outputs, Contract contract, Accuracy accuracy) {
  const auto references = conformance::to_references(inputs);
  const auto expected = conformance::run_on_reference(*test.op, references, contract);
  const auto allowed = conformance::tolerances(*test.op, references, expected, contract, accuracy);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto difference = conformance::first_difference(outputs[i], expected[i], allowed[i]);
    if (!difference.empty()) return fmt::format("output {}, {}", i, difference);
  }
  return "";
}

Accuracy accuracy_of(std::string_view kernel, const Op& op, const Device& device) {
  for (const auto& entry : device.kernels()) {
    if (entry.op == op.name() && entry.name == kernel) return entry.accuracy;
  }
  return Accuracy::PlainSum;
}

bool same_place(const KernelFinding& a, const KernelFinding& b) {
  if (a.kind != b.kind || a.place.has_value() != b.place.has_value()) return false;
  return !a.place || (a.place->file == b.place->file && a.place->line == b.place->line);
}

void add_finding(Checked& checked, KernelFinding finding) {
  const auto same = std::ranges::find_if(
      checked.findings, [&](const KernelFinding& other) { return same_place(other, finding); });
  if (same == checked.findings.end()) {
    checked.findings.push_back(std::move(finding));
  } else {
    ++same->cases;
  }
}

/// Error that the executor reports of a node, as it came from the kernel.
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
    const auto wrong =
        wrong_value(test, inputs, outputs, contract, accuracy_of(checked.kernel, *test.op, device));
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

bool is_asked(const KernelEntry& entry, const CheckRequest& request,
              const std::vector<std::string>& names) {
  if (!request.op.empty() && entry.op != request.op) return false;
  return names.empty() || std::ranges::count(names, entry.name) > 0;
}

/// Throws InvalidArgument with the names that are known.
void check_names(const std::vector<KernelEntry>& entries, const CheckRequest& request,
                 const std::vector<std::string>& names) {
  std::vector<std::string> ops, kernels;
  for (const auto& entry : entries) {
    ops.emplace_back(entry.op);
    if (request.op.empty() || entry.op == request.op) kernels.emplace_back(entry.name);
  }
  const auto refuse = [&](const char* what, const std::string& word,
                          std::vector<std::string> known) {
    std::ranges::sort(known);  // several entries share a name
    known.erase(std::unique(known.begin(), known.end()), known.end());
    const auto meant = nearest_name(word, known);
    throw InvalidArgument(fmt::format(
        "{} has no {} \"{}\"{}", request.backend, what, word,
        meant.empty() ? std::string("; it has ") + fmt::format("{}", fmt::join(known, ", "))
                      : fmt::format("; did you mean \"{}\"?", meant)));
  };
  if (!request.op.empty() && kernels.empty()) refuse("kernel for", request.op, ops);
  for (const auto& name : names) {
    if (std::ranges::count(kernels, name) == 0) refuse("kernel", name, kernels);
  }
}

}  // namespace

std::vector<Checked> check_kernels(const CheckRequest& request) {
  const auto contract = request.contract;
  const auto names = split_list(request.kernels);
  const std::vector<std::string> asked =
      request.kernels.empty() ? std::vector<std::string>{} : names;
  const auto own = open_checked(request, false);
  const auto lessons = observes(request) ? open_checked(request, true) : nullptr;
  std::vector<KernelEntry> entries(own->kernels().begin(), own->kernels().end());
  if (lessons) entries.insert(entries.end(), lessons->kernels().begin(), lessons->kernels().end());
  check_names(entries, request, asked);
  const auto cases = conformance::all_cases();
  std::vector<Checked> results;
  for (const auto& entry : entries) {
    const bool lesson = entry.name.starts_with(kLesson);
    if (!is_asked(entry, request, asked) || (lesson && asked.empty())) continue;
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

}  // namespace triptych::check
