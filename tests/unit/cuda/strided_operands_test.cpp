// Kernels of the GPU that take them on operands with gaps, which no plan of a single node lays out:
// every conformance case again, each access checked, against the same kernels on dense operands.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "backends/cuda/emulation/emulated_device.h"
#include "core/ops/batch_normalization.h"
#include "experiments/check/case_runner.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cuda {
namespace {

using conformance::OpCase;

std::vector<OpCase> strided_cases() {
  static const std::set<std::string_view> takes_gaps = {"Concat",
                                                        "DequantizeLinear",
                                                        "Expand",
                                                        "Identity",
                                                        "Pad",
                                                        "PadGradient",
                                                        "Resize",
                                                        "QuantizeLinear",
                                                        "Slice",
                                                        "ResizeGradient",
                                                        "SliceGradient",
                                                        "Transpose",
                                                        "AveragePool",
                                                        "AveragePoolGradient",
                                                        "MaxPool",
                                                        "MaxPoolGradient",
                                                        "Relu",
                                                        "Add",
                                                        "FusedElementwise",
                                                        "BatchNormalization",
                                                        "BatchNormalizationGradient"};
  auto cases = conformance::all_cases();
  // So many channels that no two blocks of threads share one.
  const auto x = conformance::f32({18, 1030}), channels = conformance::f32({1030});
  cases.push_back({"many_channels",
                   make_op(BatchNormalizationGradient{}),
                   {x, x, channels, channels, channels}});
  std::erase_if(cases, [](const OpCase& test) { return !takes_gaps.contains(test.op->name()); });
  return cases;
}

class StridedOperands : public testing::TestWithParam<OpCase> {};
INSTANTIATE_TEST_SUITE_P(Ops, StridedOperands, testing::ValuesIn(strided_cases()),
                         [](const testing::TestParamInfo<OpCase>& tested) {
                           return std::string(tested.param.op->name()) + "_" + tested.param.name;
                         });

TEST_P(StridedOperands, give_the_bits_of_dense_ones_and_keep_the_gaps) {
  emulation::EmulatedDevice device({.threads = 2, .extra = {{"emulation", "checked"}}});
  const auto& op = *GetParam().op;
  const auto inputs = conformance::make_inputs(GetParam());
  const auto dense = cpu::run_kernel_on(device, op, inputs, {});
  // Operands that a kernel knows by channel stay dense.
  const bool by_channel = op.name().starts_with("BatchNormalization");
  // The first leaves no unit wider than an element, the second lets some operands have one, the
  // third lets all.
  for (const auto& [gap, step] : {std::pair{5, 1}, {16, 1}, {16, 4}}) {
    const auto strided = cpu::run_kernel_on(
        device, op, inputs, {.gap = gap, .gap_step = step, .gap_rank = by_channel ? 2 : 1});
    cpu::expect_same_bits(strided, dense);
  }
}

}  // namespace
}  // namespace triptych::cuda
