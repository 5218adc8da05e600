// One MatMul of matrices by a kernel of an emulated device, independent of its conditions: its
// bits, and those of the emulation's order of sums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cuda/emulation/emulated_device.h"
#include "core/base/float16.h"
#include "core/ops/matmul.h"

namespace triptych::cuda {

struct MatMulRun {
  std::int64_t m, n, k, batch = 1;
  std::vector<float> a = filled(batch * m * k, 1), b = filled(batch * k * n, 2);

  /// y by this kernel under bf16.
  std::vector<float> by(const KernelEntry& entry, emulation::EmulatedDevice& device) const {
    const MatMul op;
    const TensorSpec specs[] = {{DType::F32, {batch, m, k}}, {DType::F32, {batch, k, n}}};
    const std::vector<Operand> inputs = {Operand::dense(specs[0]), Operand::dense(specs[1])};
    const std::vector<Operand> outputs = {Operand::dense(op.infer(specs)[0])};
    const std::vector<const Tensor*> constants(2);
    const auto kernel = entry.prepare({op, inputs, outputs, Contract::Bf16, constants}, device);
    const auto left = device.allocate(specs[0].bytes()), right = device.allocate(specs[1].bytes());
    const auto y = device.allocate(outputs[0].spec.bytes());
    const auto scratch = device.allocate(kernel->scratch_bytes());
    std::memcpy(left->data(), a.data(), specs[0].bytes());
    std::memcpy(right->data(), b.data(), specs[1].bytes());
    const std::byte* in[] = {left->data(), right->data()};
    std::byte* out[] = {y->data()};
    device.submit(0, [&](Stream* stream) { kernel->run({in, out, scratch->data(), stream}); });
    std::vector<float> values(static_cast<std::size_t>(batch * m * n));
    std::memcpy(values.data(), y->data(), values.size() * sizeof(float));
    return values;
  }

  /// Each element one chain of fused multiply-adds in ascending k.
  std::vector<float> expected() const {
    std::vector<float> y(static_cast<std::size_t>(batch * m * n), 0.0F);
    for (std::int64_t row = 0; row < batch * m; ++row) {
      for (std::int64_t l = 0; l < k; ++l) {
        const float factor = round_to_bf16(a[static_cast<std::size_t>(row * k + l)]);
        const auto* of_b = &b[static_cast<std::size_t>((row / m * k + l) * n)];
        auto* sums = &y[static_cast<std::size_t>(row * n)];
        for (std::int64_t j = 0; j < n; ++j) {
          sums[j] = std::fma(factor, round_to_bf16(of_b[j]), sums[j]);
        }
      }
    }
    return y;
  }

 private:
  static std::vector<float> filled(std::int64_t count, std::uint64_t seed) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((i * 2654435761U + seed * 40503U) % 1021) / 510.5F - 1.0F;
    }
    return values;
  }
};

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace triptych::cuda
