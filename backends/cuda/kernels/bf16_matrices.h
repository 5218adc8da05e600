// The operands of a MatMul, rounded to bfloat16 in its scratch memory: a as rows of m and b as rows
// of n, both along k, whichever way they lie in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/bf16_operands.h"
#include "backends/cuda/kernels/gemm.cuh"
#include "core/ops/matmul.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// y [batch, m, n] as products write it.
struct MatrixOutput {
  Global<float> y;
  std::int64_t rows, columns;

  __device__ void store(std::int64_t batch, std::int64_t m, std::int64_t n, float sum) const {
    y[(batch * rows + m) * columns + n] = canonical(sum);
  }
  /// Two neighbours along n, the first with an even index, as far as they are inside.
  __device__ void store_inside(std::int64_t batch, std::int64_t m, std::int64_t n, float first,
                               float second) const {
    if (m >= rows || n >= columns) return;
    if (columns % 2 == 0) {
      y.store<2>((batch * rows + m) * columns + n, {{canonical(first), canonical(second)}});
      return;
    }
    store(batch, m, n, first);
    if (n + 1 < columns) store(batch, m, n + 1, second);
  }
};

class RoundedMatrices {
 public:
  /// k: of a row, the zeros behind it included.
  static GemmSizes sizes_of(const KernelQuery& query) {
    const auto g = geometry_of(query);
    return {static_cast<std::int64_t>(g.batch_a.size()), g.m, g.n, padded(g.k)};
  }

  RoundedMatrices(const KernelQuery& query, Device& device)
      : sizes_(sizes_of(query)), k_(geometry_of(query).k) {
    const auto& op = query.as<MatMul>();
    const auto g = geometry_of(query);
    left_ = {op.transpose_a, g.m, query.inputs[0].spec.shape.elements()};
    right_ = {!op.transpose_b, g.n, query.inputs[1].spec.shape.elements()};
    std::vector<std::int64_t> offsets;
    const auto add = [&](const std::vector<std::int64_t>& batch) {
      for (const auto first : batch) offsets.push_back(k_ == 0 ? 0 : first / k_ * sizes_.k);
    };
    add(g.batch_a);
    add(g.batch_b);
    offsets_ = copy_to_device(device, offsets);
  }

  const GemmSizes& sizes() const { return sizes_; }
  std::size_t resident_bytes() const { return offsets_->size(); }
  /// Bytes of scratch memory, from its start.
  std::size_t bytes() const { return right_start() + bytes_of(right_); }

  /// Rounds the two inputs.
  void round(const KernelArgs& args) const {
    round(args, 0, left_, args.scratch);
    round(args, 1, right_, args.scratch + right_start());
  }
  Global<const BFloat16> left(const KernelArgs& args) const {
    return {reinterpret_cast<const BFloat16*>(args.scratch), elements_of(left_)};
  }
  Global<const BFloat16> right(const KernelArgs& args) const {
    return {reinterpret_cast<const BFloat16*>(args.scratch + right_start()), elements_of(right_)};
  }
  /// Where each entry of the batch starts: those of a, then those of b.
  Global<const std::int64_t> offsets() const {
    return {reinterpret_cast<const std::int64_t*>(offsets_->data()), 2 * sizes_.batch};
  }
  std::size_t right_start() const { return bytes_of(left_); }
  /// Rows of all matrices of an operand together: 0 is a, 1 is b.
  std::int64_t rows(int operand) const { return rows_of(operand == 0 ? left_ : right_); }

 private:
  struct Matrix {
    bool turned = false;  ///< k is not its last axis
    std::int64_t rows = 0, elements = 0;
  };

  static MatMulGeometry geometry_of(const KernelQuery& query) {
    return MatMulGeometry::of(query.as<MatMul>(), query.inputs[0].spec, query.inputs[1].spec);
  }
  std::int64_t rows_of(const Matrix& of) const { return k_ == 0 ? 0 : of.elements / k_; }
  std::int64_t elements_of(const Matrix& of) const { return rows_of(of) * sizes_.k; }
  /// Rounded up to the alignment of the copy engine.
  std::size_t bytes_of(const Matrix& of) const {
    constexpr std::size_t kUnit = 128;
    const auto bytes = static_cast<std::size_t>(elements_of(of)) * sizeof(BFloat16);
    return (bytes + kUnit - 1) / kUnit * kUnit;
  }

  void round(const KernelArgs& args, std::size_t input, const Matrix& of, std::byte* to) const {
    if (of.elements == 0) return;
    const Global<const float> x = {args.in<float>(input), of.elements};
    const Global<BFloat16> y = {reinterpret_cast<BFloat16*>(to), elements_of(of)};
    if (of.turned) {
      round_images(args.stream, {.x = x,
                                 .y = y,
                                 .images = of.elements / (of.rows * k_),
                                 .image_stride = of.rows * k_,
                                 .channels = k_,
                                 .positions = of.rows});
    } else {
      round_rows(args.stream, x, y, rows_of(of), k_);
    }
  }

  GemmSizes sizes_;
  std::int64_t k_;
  Matrix left_, right_;
  std::unique_ptr<DeviceBuffer> offsets_;
};

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
