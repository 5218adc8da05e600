// SPDX-License-Identifier: Apache-2.0
#include "core/conformance/op_case.h"

namespace triptych::conformance {

InputRule f32(Shape shape, double low, double high) {
  return of(DType::F32, std::move(shape), low, high);
}

InputRule of(DType dtype, Shape shape, double low, double high) {
  return {.spec = {dtype, std::move(shape)}, .low = low, .high = high};
}

InputRule exactly(DType dtype, Shape shape, std::vector<double> values) {
  return {.spec = {dtype, std::move(shape)}, .values = std::move(values)};
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases;
  add_matmul_cases(cases);
  add_conv_cases(cases);
  add_conv_transpose_cases(cases);
  add_quantize_cases(cases);
  add_pool_cases(cases);
  add_normalization_cases(cases);
  add_unary_cases(cases);
  add_collective_cases(cases);
  add_binary_cases(cases);
  add_reduce_cases(cases);
  add_softmax_cases(cases);
  add_attention_cases(cases);
  add_fused_elementwise_cases(cases);
  add_movement_cases(cases);
  add_resize_cases(cases);
  add_loss_cases(cases);
  add_optimizer_cases(cases);
  return cases;
}

}  // namespace triptych::conformance
