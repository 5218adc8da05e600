// Operands with gaps, which no plan of a single node lays out: every conformance case again, by
// every kernel that accepts them, against the same kernel on dense operands. A kernel that forgets
// to refuse a gap, or takes the stride of another operand, gives other bits or writes into a gap.
// TRIPTYCH_ALL_CASES=1, as in the part `cases`, also checks each access of the emulated GPU.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <utility>

#include "backends/all_backends.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/quantize.h"
#include "core/ops/reshape.h"
#include "experiments/check/case_runner.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::conformance {
namespace {

std::vector<OpCase> single_node_cases() {
  auto cases = all_cases();
  // Enough channels that no two blocks of threads of a GPU share one.
  const auto x = f32({18, 1030}), channels = f32({1030});
  cases.push_back({"many_channels",
                   make_op(BatchNormalizationGradient{}),
                   {x, x, channels, channels, channels}});
  std::erase_if(cases, [](const OpCase& test) { return test.op->collective(); });
  return cases;
}

/// Elements between the images of each operand, inputs first.
using Gaps = std::vector<std::int64_t>;

std::vector<TensorSpec> operand_specs(const Op& op, const std::vector<Tensor>& inputs) {
  std::vector<TensorSpec> specs;
  for (const auto& input : inputs) specs.push_back(input.spec());
  const auto outputs = op.infer(specs);
  specs.insert(specs.end(), outputs.begin(), outputs.end());
  return specs;
}

/// Gaps behind the images of the operands from `first` to before `last`, from `gap` on, each longer
/// by `step`. Operands of fewer axes, or of one image, have none in any plan.
Gaps gaps_of(const std::vector<TensorSpec>& specs, std::size_t first, std::size_t last,
             std::int64_t gap, std::int64_t step = 1) {
  Gaps gaps(specs.size(), 0);
  for (auto i = first; i < last; ++i) {
    if (specs[i].shape.rank() >= 2 && specs[i].shape[0] > 1)
      gaps[i] = std::exchange(gap, gap + step);
  }
  return gaps;
}

bool accepts(const KernelEntry& entry, const OpCase& test, const std::vector<TensorSpec>& specs,
             const Gaps& gaps, Contract contract) {
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    operands.push_back(Operand::dense(specs[i]));
    operands.back().outer_stride += gaps[i];
  }
  const std::vector<const Tensor*> constants(test.inputs.size(), nullptr);
  const std::span all(operands);
  return entry
      .accepts({*test.op, all.first(test.inputs.size()), all.subspan(test.inputs.size()), contract,
                constants})
      .accepted;
}

/// One case for one kernel and contract.
struct Trial {
  Device& device;
  const KernelEntry& entry;
  const OpCase& test;
  Contract contract;
  std::vector<Tensor> inputs = make_inputs(test);
  std::vector<TensorSpec> specs = operand_specs(*test.op, inputs);
  mutable std::vector<Tensor> outputs_of_dense = {};

  bool accepts(const Gaps& gaps) const {
    return conformance::accepts(entry, test, specs, gaps, contract);
  }
  std::vector<Tensor> run(const Gaps& gaps) const {
    return cpu::run_kernel_on(device, *test.op, inputs,
                              {.gaps = gaps, .contract = contract, .kernel = entry.name});
  }
  void expect_bits_of_dense(const Gaps& gaps) const {
    SCOPED_TRACE(fmt::format("{} {} by {}, {}, gaps {}", entry.op, test.name, entry.name,
                             to_string(contract), fmt::join(gaps, " ")));
    if (outputs_of_dense.empty()) outputs_of_dense = run({});
    cpu::expect_same_bits(run(gaps), outputs_of_dense);
  }
};

/// All operands with gaps, first such that leave no unit wider than an element, then wider ones of
/// some operands and of all. When the kernel refuses that, each operand alone that it accepts. True
/// when it took all gaps.
bool try_gaps(const Trial& trial) {
  const auto count = trial.specs.size();
  const auto all = gaps_of(trial.specs, 0, count, 5);
  if (std::ranges::count(all, 0) == std::ssize(all)) return false;
  if (trial.accepts(all)) {
    trial.expect_bits_of_dense(all);
    trial.expect_bits_of_dense(gaps_of(trial.specs, 0, count, 16));
    trial.expect_bits_of_dense(gaps_of(trial.specs, 0, count, 16, 4));
    return true;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto one = gaps_of(trial.specs, i, i + 1, 5);
    if (one[i] > 0 && trial.accepts(one)) trial.expect_bits_of_dense(one);
  }
  return false;
}

/// Cases that differ from others in the window or the size alone, on which no stride depends.
bool is_variant(const OpCase& test) {
  return test.name.starts_with("near_") || test.name.starts_with("tile") ||
         test.name.starts_with("large_");
}

enum class Cases { All, NoVariants };

/// Tries every kernel on every case. Returns the operators with a kernel that took gaps in all
/// operands.
std::set<std::string> try_all(Device& device, Contract contract, Cases cases = Cases::All) {
  std::set<std::string> took_gaps;
  for (const auto& test : single_node_cases()) {
    if (cases == Cases::NoVariants && is_variant(test)) continue;
    for (const auto& entry : device.kernels()) {
      if (entry.op != test.op->name()) continue;
      const Trial trial{device, entry, test, contract};
      if (!trial.accepts(Gaps(trial.specs.size(), 0))) continue;
      if (try_gaps(trial)) took_gaps.insert(std::string(entry.op));
    }
  }
  return took_gaps;
}

/// Operators that a plan lays out with gaps as parts of a Concat (core/runtime/memory_plan.h).
const auto kTakeGaps = testing::IsSupersetOf(
    {"AveragePool", "AveragePoolGradient", "BatchNormalization", "BatchNormalizationGradient",
     "Concat", "DequantizeLinear", "Expand", "Identity", "MaxPool", "MaxPoolGradient", "Pad",
     "QuantizeLinear", "Slice", "SliceGradient", "Transpose"});

TEST(StridedOperands, give_the_bits_of_dense_ones_on_the_cpu) {
  const auto device = open_device("cpu", {.threads = 2});
  EXPECT_THAT(try_all(*device, Contract::F32), kTakeGaps);
  try_all(*device, Contract::Bf16Exact);
}

TEST(StridedOperands, give_the_bits_of_dense_ones_on_an_emulated_gpu) {
  const char* mode = std::getenv("TRIPTYCH_ALL_CASES") != nullptr ? "checked" : "plain";
  const auto device = open_device("cuda-emulated", {.threads = 2, .extra = {{"emulation", mode}}});
  const auto took_gaps = try_all(*device, Contract::F32, Cases::NoVariants);  // for the time
  EXPECT_THAT(took_gaps, kTakeGaps);
  EXPECT_THAT(took_gaps, testing::IsSupersetOf({"PadGradient", "Resize", "ResizeGradient"}));
}

/// With one element per image a gap is the stride of all elements.
TEST(StridedOperands, may_be_columns_with_a_gap_in_one_of_them) {
  const auto scale = exactly(DType::F32, {}, {0.5});
  const std::vector<OpCase> columns = {
      {"column", make_op(QuantizeLinear{}), {f32({6, 1}, -9, 9), scale}},
      {"column", make_op(DequantizeLinear{}), {of(DType::I8, {6, 1}, -9, 9), scale}},
      {"column", make_op(Identity{}), {f32({6, 1})}}};
  for (const auto* name : {"cpu", "cuda-emulated"}) {
    const auto device = open_device(name, {.threads = 2});
    int tried = 0;
    for (const auto& test : columns) {
      for (const auto& entry : device->kernels()) {
        if (entry.op != test.op->name()) continue;
        const Trial trial{*device, entry, test, Contract::F32};
        for (const auto i : {std::size_t{0}, trial.specs.size() - 1}) {
          const auto gaps = gaps_of(trial.specs, i, i + 1, 5);
          if (!trial.accepts(gaps)) continue;
          trial.expect_bits_of_dense(gaps);
          ++tried;
        }
      }
    }
    EXPECT_GE(tried, 4) << name;
  }
}

TEST(StridedOperands, give_the_bits_of_dense_ones_on_an_array) {
  for (const char* machine : {"mmu4", "mmu16-int8"}) {
    const auto device = open_device("systolic", {.extra = {{"machine", machine}}});
    try_all(*device, Contract::Bf16Exact);
  }
}

}  // namespace
}  // namespace triptych::conformance
