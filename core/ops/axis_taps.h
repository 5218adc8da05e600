// A linear map that works axis by axis, as lists of the inputs that each output index reads.
// Resize, its gradient and the gradient of Pad are such maps. All compute one stated float32 sum:
//   y[p] = 0, then for every combination of taps (t_0, ..., t_k), t_a among the taps of p_a along
//   axis a, the last axis fastest: y[p] += ((weight(t_0) weight(t_1)) ... weight(t_k)) x[t],
// product and sum each rounded (no fused multiply-add).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/shape.h"

namespace triptych {

/// One axis: output index i reads x at index[t] with weight[t], for t in [begin[i], begin[i + 1]).
struct AxisTaps {
  std::vector<std::int64_t> begin = {0};
  std::vector<std::int64_t> index;
  std::vector<float> weight;

  std::int64_t size() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  /// Most taps of any output index.
  std::int64_t most() const;
  /// Appends a tap of the output index that is being described.
  void add(std::int64_t input, float tap_weight);
  /// Ends the taps of this output index.
  void next() { begin.push_back(static_cast<std::int64_t>(index.size())); }
};

/// Each output index reads its source with weight 1, or nothing where the source is -1.
AxisTaps copy_taps(std::span<const std::int64_t> sources);

/// The gradient's taps: for each of `inputs` indices of x the outputs that read it, ascending.
AxisTaps transposed(const AxisTaps& taps, std::int64_t inputs);

/// Product over the axes of `most`: terms of the longest sum.
double most_terms(std::span<const AxisTaps> axes);

/// The map in float64: y (sized) from x of shape `x_shape`.
void apply_taps(std::span<const AxisTaps> axes, const Shape& x_shape, std::span<const double> x,
                std::span<double> y);

/// Its transpose in float64: dx (sized) from dy by scattering, in row-major order of dy.
void scatter_taps(std::span<const AxisTaps> axes, const Shape& x_shape, std::span<const double> dy,
                  std::span<double> dx);

}  // namespace triptych
