// The data-movement kernels alone, without plan or device: every conformance case against its
// reference, at several thread counts, and on operands with an outer stride.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "backends/cpu/cpu_backend.h"
#include "backends/host/thread_team.h"
#include "core/base/random.h"
#include "core/conformance/op_case.h"
#include "core/ops/concat.h"
#include "core/ops/gather.h"
#include "core/ops/pad.h"
#include "core/ops/reshape.h"
#include "core/ops/resize.h"
#include "core/ops/slice.h"
#include "core/ops/transpose.h"
#include "core/runtime/device.h"

namespace triptych::cpu {
namespace {

using conformance::f32;
using conformance::InputRule;
using conformance::OpCase;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// These kernels ask nothing of their device.
class NoDevice : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  KernelTable own_kernels() const override { return {}; }
  std::unique_ptr<DeviceBuffer> allocate(std::size_t) override { return nullptr; }
  void upload(std::byte*, const std::byte*, std::size_t) override {}
  void download(std::byte*, const std::byte*, std::size_t) override {}
  void submit(int, const std::function<void(Stream*)>&) override {}
  void synchronize() override {}
  Duration elapsed() override { return {}; }

 private:
  DeviceInfo info_;
};

Tensor filled(const InputRule& rule, std::uint64_t stream) {
  if (!rule.values.empty()) return from_doubles(rule.spec, rule.values);
  RandomStream random(1, stream);
  std::vector<double> values(static_cast<std::size_t>(rule.spec.shape.elements()));
  for (auto& value : values) {
    value = rule.low + (rule.high - rule.low) * static_cast<double>(random.uniform());
    if (!is_floating(rule.spec.dtype)) value = std::floor(value);
  }
  return from_doubles(rule.spec, values);
}

std::vector<Tensor> filled(const OpCase& test) {
  std::vector<Tensor> inputs;
  for (const auto& rule : test.inputs) inputs.push_back(filled(rule, inputs.size()));
  return inputs;
}

RefTensor reference(const OpCase& test, const std::vector<Tensor>& inputs) {
  std::vector<RefTensor> x;
  std::vector<TensorSpec> specs;
  for (const auto& input : inputs) {
    specs.push_back(input.spec());
    x.push_back({input.spec(), to_doubles(input)});
  }
  RefTensor y{test.op->infer(specs).front(), {}};
  y.values.resize(static_cast<std::size_t>(y.spec.shape.elements()));
  test.op->reference(x, {&y, 1});
  return y;
}

/// Memory of an operand with an outer stride `gap` elements longer than dense.
struct Laid {
  Operand operand;
  std::vector<std::byte> memory;

  Laid(const TensorSpec& spec, std::int64_t gap) : operand(Operand::dense(spec)) {
    if (spec.shape.rank() > 0) operand.outer_stride += gap;
    memory.assign(spec.bytes() + rows() * gap_bytes() + 8, kUntouched);
  }
  std::size_t rows() const {
    const auto& shape = operand.spec.shape;
    return shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape[0]);
  }
  std::size_t row_bytes() const { return rows() == 0 ? 0 : operand.spec.bytes() / rows(); }
  std::size_t gap_bytes() const {
    const auto dense = Operand::dense(operand.spec).outer_stride;
    return static_cast<std::size_t>(operand.outer_stride - dense) * dtype_size(operand.spec.dtype);
  }
  void load(const Tensor& tensor) {
    for (std::size_t r = 0; r < rows() && row_bytes() > 0; ++r) {
      std::memcpy(memory.data() + r * (row_bytes() + gap_bytes()),
                  tensor.bytes().data() + r * row_bytes(), row_bytes());
    }
  }
  Tensor store() const {
    Tensor tensor(operand.spec);
    for (std::size_t r = 0; r < rows() && row_bytes() > 0; ++r) {
      const auto* row = memory.data() + r * (row_bytes() + gap_bytes());
      std::memcpy(tensor.bytes().data() + r * row_bytes(), row, row_bytes());
      for (std::size_t i = 0; i < gap_bytes(); ++i) EXPECT_EQ(row[row_bytes() + i], kUntouched);
    }
    return tensor;
  }

  static constexpr std::byte kUntouched{0xCD};
};

struct Run {
  std::int64_t gap = 0;
  int threads = 1;
};

/// The output of the first kernel that accepts. The reasons of those that do not come first.
std::vector<Tensor> run(const OpCase& test, const std::vector<Tensor>& inputs, Run how,
                        std::string* reasons = nullptr) {
  std::vector<Laid> x;
  std::vector<Operand> operands;
  std::vector<TensorSpec> specs;
  std::vector<const Tensor*> constants;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    x.emplace_back(inputs[i].spec(), how.gap).load(inputs[i]);
    operands.push_back(x.back().operand);
    specs.push_back(inputs[i].spec());
    constants.push_back(test.inputs[i].constant ? &inputs[i] : nullptr);
  }
  Laid y(test.op->infer(specs).front(), how.gap);
  const KernelQuery query{*test.op, operands, {&y.operand, 1}, Contract::F32, constants};
  for (const auto& entry : kernel_table()) {
    if (entry.op != test.op->name()) continue;
    const auto verdict = entry.accepts(query);
    if (!verdict.accepted) {
      if (reasons != nullptr) *reasons += verdict.reason + "; ";
      continue;
    }
    NoDevice device;
    const auto kernel = entry.prepare(query, device);
    std::vector<const std::byte*> in;
    in.reserve(x.size());
    for (const auto& laid : x) in.push_back(laid.memory.data());
    std::byte* out = y.memory.data();
    ThreadTeam(how.threads).execute([&] { kernel->run({.inputs = in, .outputs = {&out, 1}}); });
    std::vector<Tensor> result;
    result.push_back(y.store());
    return result;
  }
  return {};
}

void expect_near(const Tensor& actual, const RefTensor& expected) {
  ASSERT_EQ(actual.spec(), expected.spec);
  const auto values = to_doubles(actual);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double want = expected.values[i];
    ASSERT_NEAR(values[i], want, 1e-5 * std::fabs(want) + 1e-6) << "element " << i;
  }
}

std::vector<OpCase> movement_cases() {
  static const std::set<std::string_view> moves = {
      "Reshape", "Flatten",        "Squeeze",       "Unsqueeze",     "Identity",    "Transpose",
      "Concat",  "Slice",          "SliceGradient", "Pad",           "PadGradient", "Expand",
      "Gather",  "GatherGradient", "Resize",        "ResizeGradient"};
  auto cases = conformance::all_cases();
  std::erase_if(cases, [](const OpCase& test) { return !moves.contains(test.op->name()); });
  return cases;
}

class MovementKernel : public testing::TestWithParam<OpCase> {};
INSTANTIATE_TEST_SUITE_P(Ops, MovementKernel, testing::ValuesIn(movement_cases()),
                         [](const testing::TestParamInfo<OpCase>& tested) {
                           return std::string(tested.param.op->name()) + "_" + tested.param.name;
                         });

TEST_P(MovementKernel, agrees_with_its_reference_at_any_thread_count) {
  const auto inputs = filled(GetParam());
  const auto expected = reference(GetParam(), inputs);
  for (const int threads : {1, 3}) {
    const auto y = run(GetParam(), inputs, {.threads = threads});
    ASSERT_EQ(y.size(), 1U) << "no kernel accepts";
    expect_near(y.front(), expected);
  }
}

TEST_P(MovementKernel, takes_strided_operands_or_says_that_it_does_not) {
  const auto inputs = filled(GetParam());
  std::string reasons;
  const auto y = run(GetParam(), inputs, {.gap = 5, .threads = 2}, &reasons);
  if (y.empty()) {
    EXPECT_THAT(reasons, HasSubstr("dense operand"));
  } else {
    expect_near(y.front(), reference(GetParam(), inputs));
  }
}

OpPtr concat_channels() {
  Concat op;
  op.axis = 1;
  return make_op(op);
}

OpPtr channels(std::int64_t first, std::int64_t last) {
  Slice op;
  op.starts = {first};
  op.ends = {last};
  op.axes = {1};
  return make_op(op);
}

TEST(MovementKernels, of_skip_connections_take_strided_operands) {
  const OpCase cases[] = {
      {"concat", concat_channels(), {f32({3, 2, 8, 8}), f32({3, 4, 8, 8})}},
      {"slice", channels(1, 3), {f32({3, 4, 8, 8})}},
      {"identity", make_op(Identity{}), {f32({3, 4, 8, 8})}},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    const auto inputs = filled(test);
    const auto y = run(test, inputs, {.gap = 64});
    ASSERT_EQ(y.size(), 1U);
    expect_near(y.front(), reference(test, inputs));
  }
}

TEST(MovementKernels, of_large_tensors_give_the_same_bits_at_any_thread_count) {
  Resize up;
  up.scales = {1, 1, 1.5F, 2.5F};
  up.mode = "linear";
  ResizeGradient down;
  down.input_shape = {2, 4, 64, 64};
  down.scales = up.scales;
  down.mode = up.mode;
  GatherGradient scatter;
  scatter.axis = 1;
  scatter.input_shape = {3, 50, 300};
  Transpose transpose;
  transpose.perm = {0, 2, 3, 1};
  const OpCase cases[] = {
      {"resize", make_op(up), {f32({2, 4, 64, 64})}},
      {"resize_gradient", make_op(down), {f32({2, 4, 96, 160})}},
      {"gather_gradient",
       make_op(scatter),
       {f32({3, 700, 300}), conformance::of(DType::I64, {700}, -50, 50)}},
      {"concat", concat_channels(), {f32({2, 30, 64, 64}), f32({2, 7, 64, 64})}},
      {"transpose", make_op(transpose), {f32({2, 70, 63, 65})}},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    const auto inputs = filled(test);
    const auto alone = run(test, inputs, {.threads = 1});
    ASSERT_EQ(alone.size(), 1U);
    for (const int threads : {2, 5}) {
      const auto together = run(test, inputs, {.threads = threads});
      EXPECT_TRUE(std::ranges::equal(alone.front().bytes(), together.front().bytes()));
    }
  }
}

TEST(MovementKernels, refuse_constant_indices_out_of_range) {
  auto wrong = conformance::exactly(DType::I64, {2}, {0, 7});
  wrong.constant = true;
  const OpCase test{"", make_op(Gather{}), {f32({5, 2}), wrong}};
  EXPECT_THAT([&] { run(test, filled(test), {}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("index 7 at position 1")));
}

TEST(MovementCases, have_names_of_their_own) {
  std::set<std::string> names;
  for (const auto& test : movement_cases()) {
    EXPECT_TRUE(names.insert(std::string(test.op->name()) + "_" + test.name).second) << test.name;
  }
}

}  // namespace
}  // namespace triptych::cpu
