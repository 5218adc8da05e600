// Runs one operator through a device's kernel table, without graph or plan: operands can be laid
// out as no plan would, and thread counts compared.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "core/base/random.h"
#include "core/runtime/device.h"

namespace triptych::cpu {

struct RunOptions {
  int threads = 2;
  std::int64_t gap = 0;                     ///< elements between images, one more for each operand
  int gap_rank = 3;                         ///< least rank of an image
  std::span<const std::int64_t> gaps = {};  ///< instead: of each operand, inputs first
  bool in_place = false;                    ///< output 0 overwrites input 0
  bool constant = false;  ///< the inputs are known when the kernel is prepared, without gaps
  Contract contract = Contract::F32;
  std::string_view kernel = {};  ///< empty: the first that accepts and is worth it
};

/// Memory for one operand. Everything outside its elements holds 0xAB and must keep it.
class LaidOut {
 public:
  LaidOut(const TensorSpec& spec, std::int64_t gap) : operand_(Operand::dense(spec)) {
    const auto element = dtype_size(spec.dtype);
    rows_ = gap > 0 ? static_cast<std::size_t>(spec.shape[0]) : 1;
    row_bytes_ = rows_ == 0 ? 0 : spec.bytes() / rows_;
    operand_.outer_stride += gap;
    stride_bytes_ = row_bytes_ + static_cast<std::size_t>(gap) * element;
    memory_ = allocate_aligned(rows_ * stride_bytes_);
    std::fill_n(data(), rows_ * stride_bytes_, kUntouched);
  }

  const Operand& operand() const { return operand_; }
  std::byte* data() { return memory_.get(); }
  void load(const Tensor& tensor) {
    for (std::size_t r = 0; r < rows_ && row_bytes_ > 0; ++r) {
      std::memcpy(data() + r * stride_bytes_, tensor.bytes().data() + r * row_bytes_, row_bytes_);
    }
  }
  Tensor store() const {
    Tensor tensor(operand_.spec);
    for (std::size_t r = 0; r < rows_; ++r) {
      const auto* row = memory_.get() + r * stride_bytes_;
      if (row_bytes_ > 0) std::memcpy(tensor.bytes().data() + r * row_bytes_, row, row_bytes_);
      for (auto i = row_bytes_; i < stride_bytes_; ++i) EXPECT_EQ(row[i], kUntouched);
    }
    return tensor;
  }

 private:
  static constexpr std::byte kUntouched{0xAB};
  Operand operand_;
  std::size_t rows_ = 1, row_bytes_ = 0, stride_bytes_ = 0;
  AlignedBytes memory_;
};

/// The first kernel of the table that accepts and is worth it, none being a test failure, or the
/// one of that name. Throws UnsupportedError when that one refuses.
inline std::unique_ptr<Kernel> prepare_kernel(const KernelQuery& query, Device& device,
                                              std::string_view name) {
  for (const auto& entry : device.kernels()) {
    if (entry.op != query.op.name() || (!name.empty() && entry.name != name)) continue;
    auto verdict = entry.accepts(query);
    if (!name.empty() && !verdict.accepted) throw UnsupportedError(verdict.reason);
    if (name.empty() && entry.worth != nullptr && verdict.accepted) verdict = entry.worth(query);
    if (verdict.accepted) return entry.prepare(query, device);
  }
  ADD_FAILURE() << "no kernel accepts " << to_string(query.op);
  return nullptr;
}

/// The outputs of `op` for these inputs on a device that works in the host's memory.
inline std::vector<Tensor> run_kernel_on(Device& device, const Op& op,
                                         const std::vector<Tensor>& inputs,
                                         const RunOptions& options) {
  std::vector<TensorSpec> specs;
  for (const auto& input : inputs) specs.push_back(input.spec());
  std::vector<LaidOut> in, out;
  std::vector<Operand> in_operands, out_operands;
  // Gaps differ, so that no kernel gets away with the stride of another operand.
  auto gap = options.gap;
  std::size_t operand_count = 0;
  const auto next_gap = [&](const TensorSpec& spec) {
    if (!options.gaps.empty()) return options.gaps[operand_count++];
    return gap == 0 || spec.shape.rank() < options.gap_rank ? 0 : gap++;
  };
  for (const auto& input : inputs) {
    in_operands.push_back(in.emplace_back(input.spec(), next_gap(input.spec())).operand());
    in.back().load(input);
  }
  for (const auto& spec : op.infer(specs)) {
    out_operands.push_back(out.emplace_back(spec, next_gap(spec)).operand());
  }
  std::vector<const Tensor*> constants;
  for (const auto& input : inputs) constants.push_back(options.constant ? &input : nullptr);
  const auto kernel = prepare_kernel({op, in_operands, out_operands, options.contract, constants},
                                     device, options.kernel);
  if (!kernel) return {};
  const auto scratch = allocate_aligned(kernel->scratch_bytes());
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> targets;
  for (auto& operand : in) sources.push_back(operand.data());
  for (auto& operand : out) targets.push_back(operand.data());
  if (options.in_place) targets[0] = in[0].data();
  device.submit(0, [&](Stream* stream) { kernel->run({sources, targets, scratch.get(), stream}); });
  device.synchronize();
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < out.size(); ++i) {
    results.push_back(i == 0 && options.in_place ? in[0].store() : out[i].store());
  }
  return results;
}

/// The same on the CPU.
inline std::vector<Tensor> run_kernel(const Op& op, const std::vector<Tensor>& inputs,
                                      const RunOptions& options = {}) {
  const auto device = backend().open({.threads = options.threads});
  return run_kernel_on(*device, op, inputs, options);
}

/// Uniform in [low, high).
inline Tensor random_tensor(Shape shape, std::uint64_t stream = 0, float low = -1, float high = 1) {
  RandomStream random(5, stream);
  Tensor tensor(TensorSpec{DType::F32, std::move(shape)});
  for (auto& value : tensor.as<float>()) value = random.uniform(low, high);
  return tensor;
}

inline RefTensor reference_of(const Tensor& tensor) {
  const auto values = tensor.as<float>();
  return {tensor.spec(), {values.begin(), values.end()}};
}

/// Root mean square of the distance to the float64 reference over that of the reference.
inline double rms_error(const Op& op, const std::vector<Tensor>& inputs, const Tensor& y) {
  std::vector<RefTensor> references;
  for (const auto& input : inputs) references.push_back(reference_of(input));
  RefTensor expected = {y.spec(), std::vector<double>(y.as<float>().size())};
  op.reference(references, std::span(&expected, 1));
  double distance = 0, size = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    distance += std::pow(y.as<float>()[i] - expected.values[i], 2);
    size += std::pow(expected.values[i], 2);
  }
  return std::sqrt(distance / size);
}

/// True when all outputs are equal in every bit.
inline void expect_same_bits(const std::vector<Tensor>& actual,
                             const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].bytes().size(), expected[i].bytes().size());
    const auto bytes = actual[i].bytes().size();
    EXPECT_EQ(std::memcmp(actual[i].bytes().data(), expected[i].bytes().data(), bytes), 0)
        << "output " << i;
  }
}

}  // namespace triptych::cpu
