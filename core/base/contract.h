// The numeric contracts define "identical" (docs/concepts/numeric-contracts.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace triptych {

enum class Contract {
  F32,        ///< float32 products and sums in any order
  Bf16,       ///< operands of matmul and convolution rounded to bfloat16, sums float32, any order
  Bf16Exact,  ///< as Bf16, one ascending-k chain of fused multiply-adds per output: the same bits
              ///< on every backend
  Int8,       ///< int8 operands, int32 sums: the same bits on every backend
};

/// "f32", "bf16", "bf16-exact" or "int8".
std::string_view to_string(Contract contract);

/// The contract of that name. Throws InvalidArgument listing the names.
Contract contract_from_string(std::string_view name);

}  // namespace triptych
