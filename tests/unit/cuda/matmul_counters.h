// Counts of one kernel for one MatMul.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backends/cuda/emulation/emulated_device.h"
#include "core/ops/matmul.h"

namespace triptych::cuda {

/// By the kernel of that name, of matrices of these shapes.
inline KernelCounters matmul_counters(const std::string& kernel, const MatMul& op,
                                      const Shape& a_shape, const Shape& b_shape,
                                      Contract contract = Contract::F32) {
  emulation::EmulatedDevice device({.threads = 2, .extra = {{"emulation", "counted"}}});
  const TensorSpec specs[] = {{DType::F32, a_shape}, {DType::F32, b_shape}};
  const std::vector<Operand> inputs = {Operand::dense(specs[0]), Operand::dense(specs[1])};
  const std::vector<Operand> outputs = {Operand::dense(op.infer(specs)[0])};
  const std::vector<const Tensor*> constants(2);
  const KernelQuery query = {op, inputs, outputs, contract, constants};
  const auto table = device.kernels();
  const auto entry = std::ranges::find_if(
      table, [&](const KernelEntry& e) { return e.op == MatMul::kName && e.name == kernel; });
  if (entry == table.end()) throw InvalidArgument("no kernel " + kernel);
  const auto prepared = entry->prepare(query, device);
  const auto a = device.allocate(specs[0].bytes()), b = device.allocate(specs[1].bytes());
  const auto y = device.allocate(outputs[0].spec.bytes());
  const auto scratch = device.allocate(prepared->scratch_bytes());
  const std::byte* in[] = {a->data(), b->data()};
  std::byte* out[] = {y->data()};
  device.submit(0, [&](Stream* stream) { prepared->run({in, out, scratch->data(), stream}); });
  return device.kernel_counters().at(kernel);
}

}  // namespace triptych::cuda
