// Indexed reading along one axis and its gradient.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/host_device.h"
#include "core/ops/op.h"

namespace triptych {

/// y = x taken at `indices` (i32 or i64, negative counts from the end) along `axis`. Y's shape is
/// x's with that axis replaced by the indices' shape. Inputs x (any dtype), indices. An index out
/// of range is refused: at plan time when the indices are constant, else after the run.
struct Gather : OpOf<Gather> {
  static constexpr std::string_view kName = "Gather";
  static constexpr std::string_view kSummary = "y = x taken at `indices` along `axis`";
  std::int64_t axis = 0;

  static void visit(auto& self, auto& visitor) { visitor("axis", self.axis); }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  std::vector<ValueId> gradient(const GradientContext& context) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
};

/// x seen as [outer, size, inner], y as [outer, count, inner].
struct GatherGeometry {
  std::int64_t outer = 1, size = 1, inner = 1, count = 1;

  GatherGeometry(const Shape& x, std::int64_t axis, const Shape& indices);
};

/// Throws "[op] index 9 at position 2 is outside [-5, 4]" unless every index fits an axis of
/// `size`. For backends to call when the indices are known at plan time.
void check_indices(std::string_view op, const Tensor& indices, std::int64_t size);

TRIPTYCH_HOST_DEVICE constexpr bool is_index(std::int64_t index, std::int64_t size) {
  return index >= -size && index < size;
}

/// An index out of range and its position, as one word that kernels store: of several threads that
/// do, one stays. Numbers that need more than 32 bits become the nearest that does not. 0: none.
struct IndexFault {
  std::int64_t position = 0, index = 0;

  TRIPTYCH_HOST_DEVICE static constexpr std::uint64_t word(std::int64_t position,
                                                           std::int64_t index) {
    const std::int64_t most = 0x7FFFFFFF;
    const auto place = position < most ? position + 1 : most;
    const auto cut = index < -most - 1 ? -most - 1 : index > most ? most : index;
    return static_cast<std::uint64_t>(cut) << 32 | static_cast<std::uint64_t>(place);
  }
  static IndexFault of(std::uint64_t word) {
    return {.position = static_cast<std::int64_t>(word & 0xFFFFFFFFu) - 1,
            .index = static_cast<std::int32_t>(word >> 32)};
  }
};

/// "index 9 at position 2 is outside [-5, 4]" for an axis of `size`.
std::string to_string(IndexFault fault, std::int64_t size);

/// An index counted from the front and clamped to the axis, so that no other memory is read before
/// the fault is reported. `size` >= 1.
TRIPTYCH_HOST_DEVICE constexpr std::int64_t clamp_index(std::int64_t index, std::int64_t size) {
  if (index < 0) index += size;
  return index < 0 ? 0 : index < size ? index : size - 1;
}

/// dx of Gather: zeros of `input_shape` with each dy added at its index, in ascending order of the
/// indices' position. Inputs dy (f32), indices.
struct GatherGradient : OpOf<GatherGradient> {
  static constexpr std::string_view kName = "GatherGradient";
  static constexpr std::string_view kSummary = "dx[indices[j]] += dy[j] along `axis`";
  std::int64_t axis = 0;
  std::vector<std::int64_t> input_shape;

  static void visit(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("input_shape", self.input_shape);
  }
  std::vector<TensorSpec> infer(Specs inputs) const override;
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override;
  ErrorBound error_bound(Specs inputs) const override;
};

}  // namespace triptych
