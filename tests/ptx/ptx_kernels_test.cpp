// Every kernel of the CUDA backend as nvcc compiled it, on every case of its operator and under
// every contract that it honours: the bits of its source in the emulation.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "backends/all_backends.h"
#include "core/runtime/kernel.h"
#include "experiments/check/case_runner.h"
#include "tests/ptx/more_cases.h"

namespace triptych::conformance {
namespace {

/// The interpreter's: this program is linked with its CUDA runtime.
Device& compiled() {
  static const auto device = open_device("cuda", {});
  return *device;
}

Device& emulated() {
  static const auto device = open_device("cuda-emulated", {.threads = 1});
  return *device;
}

/// Nothing when the kernel does not take the case.
std::optional<std::vector<Tensor>> outputs_of(const OpCase& test, const std::vector<Tensor>& inputs,
                                              Device& device, Contract contract,
                                              std::string_view kernel) {
  try {
    return run_on_device(test, inputs, device, contract, nullptr, kernel);
  } catch (const UnsupportedError&) {
    return std::nullopt;
  }
}

std::string case_name(const testing::TestParamInfo<OpCase>& info) {
  return fmt::format("{}_{}", info.param.op->name(), info.param.name);
}

std::vector<OpCase> cases() {
  auto list = all_cases();
  add_more_cases(list);
  return list;
}

/// Where two tensors of one spec differ first, and how. Empty when they do not.
std::string first_other_bits(const Tensor& actual, const Tensor& expected) {
  const auto a = actual.bytes(), b = expected.bytes();
  const auto size = dtype_size(actual.spec().dtype);
  for (std::size_t i = 0; i < a.size(); i += size) {
    std::uint64_t left = 0, right = 0;
    std::memcpy(&left, a.data() + i, size);
    std::memcpy(&right, b.data() + i, size);
    if (left == right) continue;
    return fmt::format("element {}: {:#x}, emulated {:#x}", i / size, left, right);
  }
  return {};
}

class CompiledKernels : public testing::TestWithParam<OpCase> {};
INSTANTIATE_TEST_SUITE_P(Ops, CompiledKernels, testing::ValuesIn(cases()), case_name);

constexpr Contract kContracts[] = {Contract::F32, Contract::Bf16, Contract::Bf16Exact,
                                   Contract::Int8};

/// f(kernel, contract) for all of the operator's.
template <class F>
void for_each_kernel(const Op& op, F f) {
  for (const auto& kernel : compiled().kernels()) {
    if (kernel.op != op.name()) continue;
    for (const auto contract : kContracts) {
      SCOPED_TRACE(fmt::format("kernel {}, {}", kernel.name, to_string(contract)));
      f(kernel.name, contract);
    }
  }
}

void expect_bits_of_emulation(const OpCase& test, const std::vector<Tensor>& inputs) {
  for_each_kernel(*test.op, [&](std::string_view kernel, Contract contract) {
    const auto actual = outputs_of(test, inputs, compiled(), contract, kernel);
    const auto expected = outputs_of(test, inputs, emulated(), contract, kernel);
    ASSERT_EQ(actual.has_value(), expected.has_value());
    for (std::size_t i = 0; actual && i < actual->size(); ++i) {
      EXPECT_EQ(first_other_bits((*actual)[i], (*expected)[i]), "") << "output " << i;
    }
  });
}

TEST_P(CompiledKernels, have_the_bits_of_the_emulation) {
  const auto& test = GetParam();
  expect_bits_of_emulation(test, make_inputs(test));
}

/// Values that arithmetic treats in a way of its own: both signs of zero, of the extremes around
/// the least normal number and of infinity, and NaNs that no operator computes.
constexpr std::uint32_t kSpecial[] = {0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x80800001,
                                      0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x7FC00000, 0xFFC12345,
                                      0x7F812345, 0x7FFFFFFF, 0x00000000};

/// Every third float of every operand is a special one.
std::vector<Tensor> with_special_values(std::vector<Tensor> inputs) {
  std::size_t next = 0;
  for (auto& input : inputs) {
    if (input.spec().dtype != DType::F32) continue;
    const auto values = input.as<float>();
    for (std::size_t i = 0; i < values.size(); i += 3) {
      values[i] = std::bit_cast<float>(kSpecial[next++ % std::size(kSpecial)]);
    }
  }
  return inputs;
}

TEST_P(CompiledKernels, have_the_bits_of_the_emulation_for_special_values) {
  const auto& test = GetParam();
  expect_bits_of_emulation(test, with_special_values(make_inputs(test)));
}

/// The images of an operand as a slice of a concatenation has them, one channel behind its start
/// and with gaps between them. Padding is 0xAB. Gaps differ, so that no kernel gets away with the
/// stride of another operand.
struct Apart {
  Operand operand;
  std::size_t images, row, stride, first;  ///< bytes of an image, to the next, before the first
  std::vector<std::byte> bytes;
  std::unique_ptr<DeviceBuffer> buffer;

  Apart(const TensorSpec& spec, std::int64_t gap) : operand(Operand::dense(spec)) {
    images = spec.shape.rank() > 0 ? static_cast<std::size_t>(spec.shape[0]) : 1;
    const bool has_gaps = images > 1;
    row = images == 0 ? 0 : spec.bytes() / images;
    if (has_gaps) operand.outer_stride += gap;
    stride = row + (has_gaps ? static_cast<std::size_t>(gap) * dtype_size(spec.dtype) : 0);
    first = spec.shape.rank() > 1 ? dtype_size(spec.dtype) : 0;
    for (int axis = 2; axis < spec.shape.rank(); ++axis) {
      first *= static_cast<std::size_t>(spec.shape[axis]);
    }
    bytes.assign(first + images * stride, std::byte{0xAB});
  }
  void load(const Tensor& tensor) {
    for (std::size_t i = 0; i < images; ++i) {
      std::copy_n(tensor.bytes().data() + i * row, row, bytes.data() + first + i * stride);
    }
  }
  std::byte* upload(Device& device) {
    buffer = device.allocate(bytes.size());
    device.upload(buffer->data(), bytes.data(), bytes.size());
    return buffer->data() + first;
  }
  std::vector<std::byte> download(Device& device) {
    device.download(bytes.data(), buffer->data(), bytes.size());
    return bytes;
  }
};

/// All bytes of the outputs, gaps too. Nothing when the kernel takes no gaps.
std::vector<std::vector<std::byte>> outputs_apart(const OpCase& test,
                                                  const std::vector<Tensor>& inputs, Device& device,
                                                  Contract contract, std::string_view kernel) {
  std::vector<Apart> in, out;
  std::vector<TensorSpec> specs;
  std::vector<Operand> in_operands, out_operands;
  std::int64_t gap = 5;
  for (const auto& input : inputs) {
    in.emplace_back(input.spec(), gap++).load(input);
    in_operands.push_back(in.back().operand);
    specs.push_back(input.spec());
  }
  for (const auto& spec : test.op->infer(specs)) {
    out_operands.push_back(out.emplace_back(spec, gap++).operand);
  }
  const std::vector<const Tensor*> constants(inputs.size());
  const KernelQuery query = {*test.op, in_operands, out_operands, contract, constants};
  const auto table = device.kernels();
  const auto entry = std::ranges::find_if(table, [&](const KernelEntry& one) {
    return one.op == test.op->name() && one.name == kernel;
  });
  if (!entry->accepts(query).accepted) return {};
  const auto prepared = entry->prepare(query, device);
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> targets;
  for (auto& one : in) sources.push_back(one.upload(device));
  for (auto& one : out) targets.push_back(one.upload(device));
  const auto scratch = device.allocate(prepared->scratch_bytes());
  static int segment = 1 << 20;  // in addition to those of plans
  device.submit(++segment, [&](Stream* s) {
    prepared->run({sources, targets, scratch->data(), s});
  });
  std::vector<std::vector<std::byte>> results;
  for (auto& one : out) results.push_back(one.download(device));
  return results;
}

TEST_P(CompiledKernels, have_the_bits_of_the_emulation_with_gaps_between_images) {
  const auto& test = GetParam();
  const auto inputs = make_inputs(test);
  if (test.op->composite()) return;
  for_each_kernel(*test.op, [&](std::string_view kernel, Contract contract) {
    EXPECT_EQ(outputs_apart(test, inputs, compiled(), contract, kernel),
              outputs_apart(test, inputs, emulated(), contract, kernel));
  });
}

}  // namespace
}  // namespace triptych::conformance
