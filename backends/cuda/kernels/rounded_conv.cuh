// Common part of the convolutions on tensor cores: images rounded to bfloat16 with their channels
// innermost, weights rounded tap by tap, and the products that a convolution, or a transposed one,
// is made of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include "backends/cuda/kernels/bf16_operands.h"
#include "backends/cuda/kernels/operand_span.h"
#include "core/base/checked_math.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Bytes of so many elements, rounded up to the alignment of the copy engine.
inline std::size_t whole_lines(std::int64_t elements) {
  constexpr std::size_t kLine = 128;
  return (static_cast<std::size_t>(elements) * sizeof(BFloat16) + kLine - 1) / kLine * kLine;
}

/// True when products read an operand of a layer as it is stored, channels last.
inline bool reads_channels_last(const Operand& x, std::int64_t groups, std::int64_t unit) {
  const auto& shape = x.spec.shape;
  return groups == 1 && shape.rank() == 4 && shape[1] % unit == 0;
}

/// Rounds images into scratch memory, for a layer's input and for its output's gradient. Images
/// that are stored channels last are taken as they are.
class RoundedImages {
 public:
  RoundedImages() = default;
  RoundedImages(const Operand& x, std::int64_t groups, std::int64_t channels,
                std::int64_t positions)
      : stored_(x.channels_last),
        span_(stored_ ? 0 : span_of(x)),
        rounding_{.images = x.spec.shape[0],
                  .image_stride = x.outer_stride,
                  .groups = groups,
                  .channels = channels,
                  .positions = positions} {}

  /// Elements from a position to the next.
  std::int64_t pitch() const { return stored_ ? stored_->pitch : rounding_.pitch(); }
  /// Bytes of scratch memory.
  std::size_t bytes() const { return stored_ ? 0 : whole_lines(rounding_.y_elements()); }
  Global<const BFloat16> round(Stream* stream, const std::byte* x, std::byte* to) const {
    if (stored_) {
      const auto positions = rounding_.images * rounding_.positions;
      return {reinterpret_cast<const BFloat16*>(x),
              positions == 0 ? 0 : (positions - 1) * pitch() + rounding_.channels};
    }
    auto rounding = rounding_;
    rounding.x = {reinterpret_cast<const float*>(x), span_};
    rounding.y = {reinterpret_cast<BFloat16*>(to), rounding.y_elements()};
    round_images(stream, rounding);
    return {reinterpret_cast<const BFloat16*>(to), rounding.y_elements()};
  }

 private:
  std::optional<ChannelsLast> stored_;
  std::int64_t span_ = 0;
  ImageRounding rounding_;
};

/// One product: its taps, and the positions of the output that it makes.
struct ConvPhase {
  TapTable taps;
  std::int64_t rows, columns;                  ///< of positions
  std::int64_t row = 0, column = 0;            ///< the first, in y
  std::int64_t row_step = 1, column_step = 1;  ///< in y
};

/// Common part of convolution and its transpose: weights [groups * rows, channels] of each
/// tap, an image that is read, and an image that is written.
struct ConvSides {
  std::int64_t groups, in_channels, out_channels;  ///< of a group
  std::int64_t in[2], out[2];
  std::int64_t stride[2];
  std::int64_t w_row, w_channel, w_group;

  std::int64_t in_plane() const { return in[0] * in[1]; }
  std::int64_t out_plane() const { return out[0] * out[1]; }
};

inline ConvSides sides_of(const ConvGeometry& g, const Operand& w, bool transposed) {
  const auto& window = g.window;
  const auto w_group = g.group_out() * w.outer_stride;
  if (transposed) {
    return {g.groups,
            g.group_out(),
            g.group_in(),
            {window.out[0], window.out[1]},
            {window.in[0], window.in[1]},
            {1, 1},
            g.taps(),
            w.outer_stride,
            w_group};
  }
  return {g.groups,
          g.group_in(),
          g.group_out(),
          {window.in[0], window.in[1]},
          {window.out[0], window.out[1]},
          {window.stride[0], window.stride[1]},
          w.outer_stride,
          g.taps(),
          w_group};
}

ConvGeometry geometry_of(const auto& op, const KernelQuery& query) {
  return op.geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape);
}

/// One phase of a convolution. A transposed one has as many as remainders of an output by the
/// stride.
inline std::vector<ConvPhase> conv_phases(Device& device, const Window& w, bool transposed) {
  std::vector<ConvPhase> phases;
  if (!transposed) {
    phases.push_back(
        {TapTable(device, window_taps(w, 0), window_taps(w, 1), w.kernel[1]), w.out[0], w.out[1]});
    return phases;
  }
  for (std::int64_t row = 0; row < std::min(w.stride[0], w.in[0]); ++row) {
    for (std::int64_t column = 0; column < std::min(w.stride[1], w.in[1]); ++column) {
      phases.push_back(
          {TapTable(device, phase_taps(w, 0, row), phase_taps(w, 1, column), w.kernel[1]),
           ceil_div(w.in[0] - row, w.stride[0]), ceil_div(w.in[1] - column, w.stride[1]), row,
           column, w.stride[0], w.stride[1]});
    }
  }
  return phases;
}

/// Rounds the weights (input 1, of w_span elements) of a phase's taps.
inline Global<const BFloat16> round_taps(const KernelArgs& args, const ConvPhase& phase,
                                         const ConvSides& sides, std::int64_t w_span,
                                         std::byte* to) {
  WeightRounding rounding = {.w = {args.in<float>(1), w_span},
                             .groups = sides.groups,
                             .rows = sides.out_channels,
                             .channels = sides.in_channels,
                             .w_group = sides.w_group,
                             .w_row = sides.w_row,
                             .w_channel = sides.w_channel,
                             .taps = phase.taps.global(),
                             .tap_count = phase.taps.size()};
  auto* rounded = reinterpret_cast<BFloat16*>(to);
  rounding.y = {rounded, rounding.y_elements()};
  if (rounding.y_elements() > 0) round_weights(args.stream, rounding);
  return {rounded, rounding.y_elements()};
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
