// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kernel_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/random.h"

namespace triptych {
namespace {

constexpr std::int64_t kPieces = 128, kPieceElements = 4096;

/// Distance from 1 to the next number of the type.
double step_of(DType dtype) {
  if (dtype == DType::BF16) return 0x1p-7;
  return dtype == DType::F16 ? 0x1p-10 : 0x1p-23;
}

bool promises_bits(const KernelQuery& query, DType dtype) {
  return !is_floating(dtype) || query.contract == Contract::Bf16Exact ||
         query.contract == Contract::Int8;
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / count);
}

/// How far an element may lie from the trusted one.
class Tolerance {
 public:
  Tolerance(const KernelQuery& query, DType dtype, const std::vector<double>& trusted) {
    if (promises_bits(query, dtype)) return;
    constexpr double margin = 32, most = 0.1;
    std::vector<TensorSpec> specs;
    for (const auto& input : query.inputs) specs.push_back(input.spec);
    const auto bound = query.op.error_bound(specs);
    part_ = margin * 0x1p-24 * (bound.terms + bound.ulps) + 2 * step_of(dtype);
    // A composite also rounds its intermediate results to bfloat16.
    if (query.contract == Contract::Bf16 && query.op.composite()) part_ += 0x1p-5;
    // A kernel may round a sum to bfloat16 before and after it adds a bias (decision 146).
    if (query.contract == Contract::Bf16 && !query.op.multiplicands().empty()) part_ += 0x1p-7;
    part_ = std::min(part_, most);
    scale_ = root_mean_square(trusted);
    absolute_ = 2 * bound.absolute;
  }

  bool allows(double got, double expected) const {
    if (part_ == 0) return false;  // other bits
    if (got == expected || (std::isnan(got) && std::isnan(expected))) return true;
    const double away = std::fabs(got - expected);
    return std::isfinite(away) && away <= part_ * std::max(scale_, std::fabs(expected)) + absolute_;
  }

 private:
  double part_ = 0, scale_ = 0, absolute_ = 0;
};

}  // namespace

std::vector<ValuePiece> sample_of(std::int64_t elements) {
  if (elements <= kPieces * kPieceElements) return {{0, elements}};
  std::vector<ValuePiece> pieces;
  for (std::int64_t i = 0; i < kPieces; ++i) {
    const auto begin = elements * i / kPieces, room = elements * (i + 1) / kPieces - begin;
    const double within = i == 0             ? 0.0
                          : i == kPieces - 1 ? 1.0
                                             : random_uniform(1, 0, static_cast<std::uint64_t>(i));
    const auto skipped = static_cast<double>(room - kPieceElements) * within;
    pieces.push_back({begin + static_cast<std::int64_t>(skipped), kPieceElements});
  }
  return pieces;
}

std::string first_disagreement(const KernelQuery& query, const KernelValues& values,
                               const KernelValues& trusted) {
  for (std::size_t output = 0; output < trusted.size(); ++output) {
    const auto &mine = values[output], &other = trusted[output];
    const auto dtype = other.dtype();
    if (std::ranges::equal(mine.bytes(), other.bytes())) continue;
    const auto got = to_doubles(mine), expected = to_doubles(other);
    const auto size = dtype_size(dtype);
    const Tolerance tolerance(query, dtype, expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto *a = mine.bytes().data() + i * size, *b = other.bytes().data() + i * size;
      if (std::memcmp(a, b, size) != 0 && !tolerance.allows(got[i], expected[i])) {
        return fmt::format("output {}: element {} of the sample is {:.9g} instead of {:.9g}",
                           output, i, got[i], expected[i]);
      }
    }
  }
  return "";
}

}  // namespace triptych
