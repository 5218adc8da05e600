// The vector unit runs the operators that docs/reference/mmu.md lists, and no others.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "backends/systolic/systolic_backend.h"
#include "backends/systolic/systolic_device.h"
#include "core/conformance/op_case.h"
#include "experiments/check/case_runner.h"

namespace triptych::systolic {
namespace {

using Names = std::set<std::string>;

constexpr std::string_view kKernel = "vector";

/// Operators with a kernel that is not a host's.
Names operators_with_kernels(const mmu::MachineConfig& machine) {
  Names names;
  for (const KernelEntry& entry : kernel_table(machine))
    if (entry.name == kKernel) names.emplace(entry.op);
  return names;
}

/// Names in the first column of the manual's table.
Names operators_of_the_manual() {
  std::ifstream manual(TRIPTYCH_SOURCE_DIR "/docs/reference/mmu.md");
  Names names;
  std::string line;
  while (std::getline(manual, line) && line != "### Operators of the vector unit") {
  }
  const std::regex name("[A-Z][A-Za-z]+");
  while (std::getline(manual, line) && !line.starts_with("## ")) {
    if (!line.starts_with("| ")) continue;
    const std::string cell = line.substr(0, line.find('|', 2));
    for (std::sregex_iterator found(cell.begin(), cell.end(), name), end; found != end; ++found)
      names.insert(found->str());
  }
  return names;
}

TEST(VectorOperators, are_those_of_the_manual) {
  const mmu::MachineConfig machine = mmu::find_machine("mmu4-vector");
  EXPECT_EQ(operators_with_kernels(machine), operators_of_the_manual());
}

TEST(VectorOperators, each_accepts_a_case_of_the_conformance_suite) {
  SystolicDevice device({.extra = {{"machine", "mmu4-vector"}}});
  Names idle = operators_with_kernels(device.machine());
  for (const conformance::OpCase& test : conformance::all_cases()) {
    const std::string name(test.op->name());
    if (!idle.contains(name)) continue;
    const auto kernels = conformance::accepting_kernels(test, conformance::make_inputs(test),
                                                        device, Contract::Bf16Exact);
    if (std::ranges::any_of(kernels, [](const auto* entry) { return entry->name == kKernel; }))
      idle.erase(name);
  }
  EXPECT_THAT(idle, testing::IsEmpty());
}

TEST(VectorOperators, pool_windows_of_any_shape) {
  SystolicDevice device({.extra = {{"machine", "mmu4-vector"}}});
  const Names pools = {"MaxPool", "MaxPoolGradient", "AveragePool", "AveragePoolGradient"};
  for (const conformance::OpCase& test : conformance::all_cases()) {
    if (!pools.contains(std::string(test.op->name()))) continue;
    const std::vector<Tensor> inputs = conformance::make_inputs(test);
    if (inputs[0].spec().dtype != DType::F32) continue;
    const auto kernels = conformance::accepting_kernels(test, inputs, device, Contract::Bf16Exact);
    EXPECT_TRUE(std::ranges::any_of(kernels, [](const auto* k) { return k->name == kKernel; }))
        << test.op->name() << ' ' << test.name;
  }
}

}  // namespace
}  // namespace triptych::systolic
