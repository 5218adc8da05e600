// Which of cuBLASLt's implementations a numeric contract allows, by the flags that cuBLASLt itself
// gives each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <string>

#include "core/base/contract.h"

namespace triptych::cuda {

inline constexpr std::uint64_t kFloatSums = CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F;

/// Instructions of tensor cores under any name of a GPU (that header names those up to Ampere, and
/// nothing says that Hopper's count as HMMA), except those on integers and on doubles.
inline constexpr std::uint64_t kFloatTensorCores =
    CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK &
    ~std::uint64_t{CUBLASLT_NUMERICAL_IMPL_FLAGS_IMMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_DMMA};

/// Arithmetic that may be used: float32 fused multiply-adds on float32 operands under f32, tensor
/// cores too on bfloat16 operands under bf16, always with float32 sums. 0: nothing. The types of
/// operands and sums determine the result, not the instruction.
inline std::uint64_t allowed_implementations(Contract contract) {
  if (contract == Contract::F32) {
    return kFloatSums | CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F;
  }
  if (contract == Contract::Bf16) {
    return kFloatSums | CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | kFloatTensorCores |
           CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF;
  }
  return 0;
}

/// Why the contract forbids an implementation with these flags. Empty where it allows it.
inline std::string implementation_problem(std::uint64_t flags, Contract contract) {
  const auto forbidden = flags & ~allowed_implementations(contract);
  if ((forbidden & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) != 0) return "uses tensor cores";
  if ((forbidden & CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_TYPE_MASK) != 0) {
    return "does not sum in float32";
  }
  if ((forbidden & CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_INPUT_TYPE_MASK) != 0) {
    return "rounds its operands";
  }
  if ((forbidden & CUBLASLT_NUMERICAL_IMPL_FLAGS_GAUSSIAN) != 0) return "computes other products";
  return forbidden == 0 ? "" : "has flags that nobody knows";
}

}  // namespace triptych::cuda
