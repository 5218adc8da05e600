// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/value_names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "backends/all_backends.h"
#include "core/base/contract.h"
#include "core/nn/models.h"
#include "experiments/machines/published_machines.h"
#include "systolic/isa/shipped_machines.h"

namespace triptych::app {
namespace {

struct ValueName {
  std::string_view option;
  std::string_view value;
};

constexpr auto kValueNames = std::to_array<ValueName>({
    {"--algorithm", "NAMES"},
    {"--at-block", "X[,Y[,Z]]"},
    {"--bind", "NAME=N"},
    {"--block", "X[,Y[,Z]]"},
    {"--bytes", "SIZES"},
    {"--calibration", "FILE"},
    {"--claims", "CLAIMS"},
    {"--constant", "NAME=VALUE"},
    {"--cycles", "FIRST..LAST"},
    {"--define", "NAME[=VALUE]"},
    {"--device", "DEVICE"},
    {"--dot", "FILE"},
    {"--dram", "[NAME=]FILE"},
    {"--energy", "TABLE"},
    {"--epoch-seconds", "SECONDS"},
    {"--evaluation", "DIR"},
    {"--expect", "N=FILE"},
    {"--figures", "FILES"},
    {"--fixed-seconds", "SECONDS"},
    {"--grid", "X[,Y[,Z]]"},
    {"--include", "DIR"},
    {"--instances-of", "CLASS"},
    {"--launch", "SECONDS"},
    {"--layer", "MODEL:NODE"},
    {"--lengths", "SIZES"},
    {"--link", "LINK"},
    {"--name", "NAME"},
    {"--names", "FILE"},
    {"--node", "NODE"},
    {"--op", "OPERATOR"},
    {"--operands", "FILE,FILE"},
    {"--per-pe", "FILE"},
    {"--percentile", "PERCENT"},
    {"--plot", "FILE"},
    {"--plusarg", "NAME=VALUE"},
    {"--program", "FILE"},
    {"--recorded", "FILES"},
    {"--regions", "CLASS"},
    {"--results", "FILE"},
    {"--rtl", "DIR"},
    {"--runs", "DIR"},
    {"--save", "PARTS"},
    {"--scales", "X,WEIGHTS,RESULTS"},
    {"--shape", "IN,OUT,HEIGHT,WIDTH"},
    {"--sizes", "SIZES"},
    {"--split", "NAME"},
    {"--strategies", "STRATEGIES"},
    {"--variant", "NAME=VALUE"},
    {"--waves", "FILE"},
    {"arguments", "ARGUMENT"},
    {"command", "COMMAND"},
    {"file", "FILE"},
    {"files", "FILE"},
    {"folder", "DIR"},
    {"machine", "MACHINE"},
    {"model", "FILE"},
    {"modules", "MODULE"},
    {"program", "FILE"},
    {"programs", "FILE"},
    {"run", "RUN"},
});

template <class Range, class Name>
std::vector<std::string> names_of_all(const Range& range, Name name) {
  std::vector<std::string> names;
  names.reserve(std::size(range));
  for (const auto& one : range) names.emplace_back(name(one));
  return names;
}

std::vector<std::string> backends() {
  return names_of_all(all_backends(), [](const Backend* one) { return one->name(); });
}

}  // namespace

std::string_view value_name(std::string_view option) {
  const auto row = std::ranges::find(kValueNames, option, &ValueName::option);
  return row == kValueNames.end() ? std::string_view() : row->value;
}

std::string upper_case(std::string name) {
  for (char& letter : name)
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return name;
}

std::vector<std::string> values_named(std::string_view name) {
  using enum Contract;
  if (name == "BACKEND" || name == "BACKENDS") return backends();
  if (name == "MODEL")
    return names_of_all(model_presets(), [](const auto& one) { return one.name; });
  if (name == "MACHINE")
    return names_of_all(mmu::shipped_machines(), [](const auto& one) { return one.name; });
  if (name == "DEVICE")
    return names_of_all(machines::published_files(), [](const auto& one) { return one.name; });
  if (name == "TABLE")
    return names_of_all(machines::energy_files(), [](const auto& one) { return one.name; });
  if (name == "CONTRACT")
    return names_of_all(std::to_array({F32, Bf16, Bf16Exact, Int8}),
                        [](Contract one) { return to_string(one); });
  return {};
}

}  // namespace triptych::app
