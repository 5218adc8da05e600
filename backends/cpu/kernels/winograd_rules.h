// Which convolutions Winograd's transforms can compute, whichever pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/conv_geometry.h"
#include "core/runtime/kernel.h"

namespace triptych::cpu {

/// float32, 3x3 with stride and dilation 1, one group.
inline Verdict accepts_winograd(Contract contract, const ConvGeometry& g) {
  if (contract != Contract::F32) return Verdict::no("computes in float32 only");
  if (g.groups != 1) return Verdict::no("has several groups");
  for (int axis = 0; axis < 2; ++axis) {
    const auto& w = g.window;
    if (w.kernel[axis] != 3 || w.stride[axis] != 1 || w.dilation[axis] != 1) {
      return Verdict::no("is not 3x3 with stride and dilation 1");
    }
  }
  return Verdict::yes();
}

/// An entry of a kernel class K that computes so, and says by `K::worth` when that is fast.
template <class K>
KernelEntry winograd_entry(std::string_view op, std::string_view name) {
  auto entry = kernel_entry<K>(op, name);
  entry.worth = &K::worth;
  entry.accuracy = Accuracy::Transformed;
  return entry;
}

}  // namespace triptych::cpu
