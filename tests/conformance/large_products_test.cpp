// Products, convolutions and attention of the sizes that they are used in, by every kernel of every
// machine: where rings of tiles wrap, blocks take a second tile and sums are long. The float64
// reference checks a quick selection: some rows, columns, images or channels, as the same operator
// on those parts of the operands. On a GPU the sizes are whole, elsewhere an eighth. The CPU's
// simplest kernel and the steps of its ladder, which take most of the time, are for
// TRIPTYCH_ALL_CASES=1, as in the part `cases`.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <set>

#include "backends/all_backends.h"
#include "core/ops/attention.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/matmul.h"
#include "experiments/check/case_runner.h"

namespace triptych::conformance {
namespace {

/// Parts of an axis of an input that are parts of an axis of the output.
struct Cut {
  std::size_t input;
  std::int64_t input_axis, output_axis;
};

struct LargeCase {
  std::string name;
  OpPtr op;
  std::vector<Shape> inputs;
  std::vector<Cut> cuts;
  /// Axes that are whole on a GPU, and an eighth elsewhere: {input, axis}.
  std::vector<std::pair<std::size_t, std::int64_t>> shrunk;

  friend void PrintTo(const LargeCase& test, std::ostream* out) { *out << test.name; }
};

LargeCase product(std::string name, std::int64_t m, std::int64_t n, std::int64_t k,
                  bool transpose_a = false, bool transpose_b = false) {
  MatMul op;
  op.transpose_a = transpose_a;
  op.transpose_b = transpose_b;
  const std::int64_t row = transpose_a ? 1 : 0, column = transpose_b ? 0 : 1;
  return {std::move(name),
          make_op(op),
          {transpose_a ? Shape{k, m} : Shape{m, k}, transpose_b ? Shape{n, k} : Shape{k, n}},
          {{0, row, 0}, {1, column, 1}},
          {{0, 0}, {0, 1}, {1, 0}, {1, 1}}};
}

template <class Op>
Op padded() {
  Op op;
  op.kernel_shape = {3, 3};
  op.pads = {1, 1, 1, 1};
  return op;
}

/// A 3 x 3 convolution of `channels` to as many, and both of its gradients.
void add_convolutions(std::vector<LargeCase>& cases, std::int64_t batch, std::int64_t channels,
                      std::int64_t outputs, std::int64_t height, std::int64_t width) {
  const Shape x{batch, channels, height, width}, w{outputs, channels, 3, 3};
  const Shape dy{batch, outputs, height, width};
  const std::vector<std::pair<std::size_t, std::int64_t>> sides = {{0, 2}, {0, 3}};
  const auto name = fmt::format("{}x{}to{}x{}x{}", batch, channels, outputs, height, width);
  cases.push_back({name, make_op(padded<Conv>()), {x, w}, {{0, 0, 0}, {1, 0, 1}}, sides});
  cases.push_back({name, make_op(padded<ConvTranspose>()), {dy, w}, {{0, 0, 0}, {1, 1, 1}}, sides});
  cases.push_back({name,
                   make_op(padded<ConvWeightGradient>()),
                   {x, dy},
                   {{0, 1, 1}, {1, 1, 0}},
                   {{0, 2}, {0, 3}, {1, 2}, {1, 3}}});
}

std::vector<LargeCase> large_cases() {
  std::vector<LargeCase> cases = {product("n1024", 1024, 1024, 1024),
                                  product("t1024", 1024, 1024, 1024, true, true),
                                  product("k640", 512, 768, 640), product("odd", 1000, 1032, 1160),
                                  product("n4096", 4096, 4096, 4096)};
  add_convolutions(cases, 2, 64, 64, 256, 256);
  add_convolutions(cases, 8, 512, 512, 32, 32);
  add_convolutions(cases, 3, 72, 136, 40, 56);
  const Shape heads{2, 16, 1024, 128};
  cases.push_back({"h16x1024x128",
                   make_op(Attention()),
                   {heads, heads, heads},
                   {{0, 2, 2}},
                   {{0, 2}, {1, 2}, {2, 2}}});
  return cases;
}

OpCase shrunk_to(const LargeCase& test, bool whole) {
  OpCase result{test.name, test.op, {}};
  for (std::size_t i = 0; i < test.inputs.size(); ++i) {
    auto dims = test.inputs[i].dims();
    for (const auto& [input, axis] : test.shrunk) {
      if (input == i && !whole) dims[static_cast<std::size_t>(axis)] /= 8;
    }
    result.inputs.push_back(f32(Shape(dims)));
  }
  return result;
}

/// The first, the last, and some at no regular distance.
std::vector<std::int64_t> chosen_of(std::int64_t size) {
  const std::set<std::int64_t> chosen = {0, size / 3, size / 2, size - 1};
  return {chosen.begin(), chosen.end()};
}

/// The entries `chosen` of an axis.
Tensor taken(const Tensor& tensor, std::int64_t axis, const std::vector<std::int64_t>& chosen) {
  auto dims = tensor.shape().dims();
  const auto at = dims.begin() + axis;
  const auto outer = std::accumulate(dims.begin(), at, std::int64_t{1}, std::multiplies{});
  const auto inner = std::accumulate(at + 1, dims.end(), std::int64_t{1}, std::multiplies{});
  const auto size = *at;
  *at = static_cast<std::int64_t>(chosen.size());
  Tensor result(TensorSpec{DType::F32, Shape(dims)});
  auto target = result.as<float>().begin();
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const auto i : chosen) {
      target = std::copy_n(tensor.as<float>().begin() + (o * size + i) * inner, inner, target);
    }
  }
  return result;
}

/// Expected values of the output's chosen parts, and how far they may be from it.
struct Judge {
  std::vector<RefTensor> expected;
  std::vector<std::vector<double>> allowed;
};

Judge judge_of(const LargeCase& test, const std::vector<Tensor>& inputs, Contract contract) {
  std::vector<Tensor> parts;
  for (const auto& input : inputs) parts.push_back(input.clone());
  for (const auto& cut : test.cuts) {
    auto& part = parts[cut.input];
    part = taken(part, cut.input_axis, chosen_of(part.shape()[cut.input_axis]));
  }
  const auto references = to_references(parts);
  Judge judge;
  judge.expected = run_on_reference(*test.op, references, contract);
  judge.allowed = tolerances(*test.op, references, judge.expected, contract);
  return judge;
}

std::string difference(const LargeCase& test, Tensor output, const Judge& judge) {
  for (const auto& cut : test.cuts) {
    output = taken(output, cut.output_axis, chosen_of(output.shape()[cut.output_axis]));
  }
  return first_difference(output, judge.expected[0], judge.allowed[0]);
}

/// The CPU and GPUs of TRIPTYCH_TEST_BACKENDS. The emulation and arrays would take hours.
std::vector<const Backend*> subjects() {
  const char* asked = std::getenv("TRIPTYCH_TEST_BACKENDS");
  std::vector<const Backend*> list;
  for (const Backend* backend : all_backends()) {
    const std::string name(backend->name());
    if ((name == "cpu" || name == "cuda") && backend->availability().available &&
        (asked == nullptr ||
         fmt::format(",{},", asked).find("," + name + ",") != std::string::npos)) {
      list.push_back(backend);
    }
  }
  return list;
}

class LargeProducts : public testing::TestWithParam<LargeCase> {};
INSTANTIATE_TEST_SUITE_P(Ops, LargeProducts, testing::ValuesIn(large_cases()),
                         [](const testing::TestParamInfo<LargeCase>& tested) {
                           return fmt::format("{}_{}", tested.param.op->name(), tested.param.name);
                         });

/// The last of a table computes element by element. Its loops, and those of a ladder's steps, are
/// the same at any size: backend_test.cpp runs them on every small case.
bool is_left_out(const KernelEntry* kernel, const std::vector<const KernelEntry*>& accepting,
                 const std::string& backend) {
  if (std::getenv("TRIPTYCH_ALL_CASES") != nullptr || backend != "cpu") return false;
  return kernel->role == KernelRole::Lesson ||
         (kernel != accepting.front() && kernel == accepting.back());
}

/// Runs the case by each kernel that accepts it, or by its expansion where the device has no kernel
/// for it. Only a library may refuse then.
void expect_bound_by_every_kernel(const OpCase& test, const std::vector<Tensor>& inputs,
                                  const std::string& backend, Device& device, Contract contract,
                                  const std::function<std::string(Tensor)>& difference_of) {
  int runs = 0;
  const auto run_by = [&](std::string_view kernel) {
    SCOPED_TRACE(fmt::format("kernel {}, {}", kernel, to_string(contract)));
    const auto outputs = run_on_device(test, inputs, device, contract, nullptr, kernel);
    EXPECT_EQ(difference_of(outputs[0].clone()), "");
    ++runs;
  };
  const auto accepting = accepting_kernels(test, inputs, device, contract);
  for (const auto* kernel : accepting) {
    if (is_left_out(kernel, accepting, backend)) continue;
    try {
      run_by(kernel->name);
    } catch (const UnsupportedError& error) {
      EXPECT_EQ(kernel->role, KernelRole::Library) << error.what();
    }
  }
  if (runs == 0 && test.op->composite()) run_by("");
  EXPECT_GT(runs, 0) << "no kernel runs this under " << to_string(contract);
}

TEST_P(LargeProducts, are_within_the_bound_by_every_kernel) {
  const auto& test = GetParam();
  for (const Backend* backend : subjects()) {
    SCOPED_TRACE(backend->name());
    const std::string name(backend->name());
    const auto device = open_device(name, {.threads = 1});
    const auto sized = shrunk_to(test, name == "cuda");
    const auto inputs = make_inputs(sized);
    for (const auto contract : {Contract::F32, Contract::Bf16, Contract::Bf16Exact}) {
      const auto judge = judge_of(test, inputs, contract);
      expect_bound_by_every_kernel(sized, inputs, name, *device, contract, [&](Tensor output) {
        return difference(test, std::move(output), judge);
      });
    }
  }
}

}  // namespace
}  // namespace triptych::conformance
