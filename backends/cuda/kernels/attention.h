// Common part of the kernels of attention: the geometry, and the heads that they take.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/attention_gradient.h"
#include "core/runtime/kernel.h"

namespace triptych::cuda {

inline AttentionGeometry attention_geometry(const KernelQuery& query) {
  const TensorSpec specs[] = {query.inputs[0].spec, query.inputs[1].spec, query.inputs[2].spec};
  return AttentionGeometry::of(query.as<AttentionAttributes>(), specs);
}

/// Accepts dense heads with values that fit a block, and as many as a grid counts.
inline Verdict accepts_heads(const KernelQuery& query) {
  if (!query.dense()) return Verdict::no("needs dense operands");
  const auto g = attention_geometry(query);
  if (g.head_size > 128 || g.value_size > 128) return Verdict::no("takes heads of up to 128");
  if (g.batch * g.heads > 65535) {
    return Verdict::no("takes up to 65,535 heads of all batch entries");
  }
  return Verdict::yes();
}

}  // namespace triptych::cuda
