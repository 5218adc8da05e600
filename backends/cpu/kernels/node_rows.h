// The walk of an elementwise node over its operands, as pieces of rows in bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/kernels/elementwise.h"
#include "core/runtime/kernel.h"

namespace triptych::cpu {

/// A piece of a row of an input: an element for each of the result, or one for all of them.
struct RowInput {
  const std::byte* x;
  std::int64_t stride;  ///< 1, or 0
};

/// The walk of a node over its result and its first kInputs inputs, which may be fewer. Elements of
/// inputs have at most kMostBytes.
template <std::size_t kInputs, std::size_t kMostBytes = sizeof(std::int64_t)>
class NodeRows {
 public:
  using Inputs = std::array<RowInput, kInputs>;

  /// `operations`: of an element, at least 1.
  explicit NodeRows(const KernelQuery& query, std::int64_t operations = 1)
      : inputs_(std::min(kInputs, query.inputs.size())),
        loop_(query.outputs[0].spec.shape, strides_of(query), operations),
        output_bytes_(bytes_of(query.outputs[0])) {
    for (std::size_t k = 0; k < inputs_; ++k) bytes_[k] = bytes_of(query.inputs[k]);
  }

  /// Calls piece(inputs, y, count) for disjoint pieces of rows, in parallel.
  template <class Piece>
  void run(const KernelArgs& args, const Piece& piece) const {
    loop_.run([&](const auto& at, std::int64_t count) {
      Inputs inputs{};
      for (std::size_t k = 0; k < inputs_; ++k) {
        inputs[k] = {args.inputs[k] + at[k + 1] * bytes_[k], loop_.row_stride(k + 1)};
      }
      piece(inputs, args.outputs[0] + at[0] * output_bytes_, count);
    });
  }

  /// The same with several short rows in a piece, copied together where they lie apart.
  template <class Piece>
  void run_gathered(const KernelArgs& args, const Piece& piece) const {
    if (!loop_.has_short_rows()) return run(args, piece);
    loop_.run_rows([&](const auto& at, std::int64_t rows) {
      alignas(kAlignment) std::byte buffers[kInputs][kRowBlock * kMostBytes];
      Inputs inputs{};
      for (std::size_t k = 0; k < inputs_; ++k) {
        const auto* x = args.inputs[k] + at[k + 1] * bytes_[k];
        inputs[k] = {gathered(x, loop_.group(k + 1, rows), bytes_[k], buffers[k]), 1};
      }
      piece(inputs, args.outputs[0] + at[0] * output_bytes_, rows * loop_.row_size());
    });
  }

 private:
  static std::int64_t bytes_of(const Operand& operand) {
    return static_cast<std::int64_t>(dtype_size(operand.spec.dtype));
  }
  static std::array<Dims, kInputs + 1> strides_of(const KernelQuery& query) {
    const auto& y = query.outputs[0].spec.shape;
    std::array<Dims, kInputs + 1> strides;
    strides.fill(Dims(static_cast<std::size_t>(y.rank()), 0));
    strides[0] = operand_strides(query.outputs[0], y);
    for (std::size_t k = 0; k < std::min(kInputs, query.inputs.size()); ++k) {
      strides[k + 1] = operand_strides(query.inputs[k], y);
    }
    return strides;
  }

  std::size_t inputs_;
  ElementwiseLoop<kInputs + 1> loop_;
  std::int64_t output_bytes_;
  std::array<std::int64_t, kInputs> bytes_{};
};

}  // namespace triptych::cpu
