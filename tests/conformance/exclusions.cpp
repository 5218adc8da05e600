// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/exclusions.h"

#include <array>

namespace triptych::conformance {

std::span<const Exclusion> unsupported() {
  static constexpr std::string_view kBfloat = "the array multiplies bfloat16 operands only";
  static constexpr std::string_view kIntegers = "the array multiplies int8 operands only";
  static constexpr std::array list = {
      Exclusion{"systolic", "Conv", "", Contract::F32, kBfloat},
      Exclusion{"systolic", "ConvTranspose", "", Contract::F32, kBfloat},
      Exclusion{"systolic", "ConvWeightGradient", "", Contract::F32, kBfloat},
      Exclusion{"systolic", "MatMul", "", Contract::F32, kBfloat},
      Exclusion{"systolic", "Gemm", "", Contract::F32, kBfloat},
      Exclusion{"systolic", "Attention", "", Contract::F32, kBfloat},
      Exclusion{"systolic", "AttentionWithSums", "", Contract::F32, kBfloat},
      Exclusion{"systolic", "AttentionGradient", "", Contract::F32, kBfloat},
      Exclusion{"systolic", "Recurrent", "", Contract::F32, kBfloat},
      Exclusion{"systolic", "QuantizedConv", "", std::nullopt, kBfloat},
      Exclusion{"systolic", "QuantizedConvTranspose", "", std::nullopt, kBfloat},
      Exclusion{"systolic-int8", "Conv", "", std::nullopt, kIntegers},
      Exclusion{"systolic-int8", "ConvTranspose", "", std::nullopt, kIntegers},
      Exclusion{"systolic-int8", "ConvWeightGradient", "", std::nullopt, kIntegers},
      Exclusion{"systolic-int8", "MatMul", "", std::nullopt, kIntegers},
      Exclusion{"systolic-int8", "Gemm", "", std::nullopt, kIntegers},
      Exclusion{"systolic-int8", "Attention", "", std::nullopt, kIntegers},
      Exclusion{"systolic-int8", "AttentionWithSums", "", std::nullopt, kIntegers},
      Exclusion{"systolic-int8", "AttentionGradient", "", std::nullopt, kIntegers},
      Exclusion{"systolic-int8", "Recurrent", "", std::nullopt, kIntegers}};
  return list;
}

std::span<const Exclusion> expected_failures() { return {}; }

const Exclusion* find_exclusion(std::span<const Exclusion> list, std::string_view backend,
                                const OpCase& test, Contract contract) {
  for (const auto& entry : list) {
    if (entry.backend == backend && entry.op == test.op->name() &&
        (entry.case_name.empty() || entry.case_name == test.name) &&
        (!entry.contract || *entry.contract == contract)) {
      return &entry;
    }
  }
  return nullptr;
}

}  // namespace triptych::conformance
