// SPDX-License-Identifier: Apache-2.0
#include "core/ops/transpose.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "core/ops/axes.h"

namespace triptych {
namespace {

/// The permutation that `op` means for this rank.
Dims permutation(const Transpose& op, std::int64_t rank) {
  Dims reversed(static_cast<std::size_t>(rank));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  if (op.perm.empty()) return reversed;
  if (op.perm.size() != reversed.size()) {
    throw_invalid("Transpose",
                  fmt::format("perm has {} axes, x has rank {}", op.perm.size(), rank));
  }
  return resolve_axes("Transpose", op.perm, rank);
}

}  // namespace

StridedView Transpose::view_of(const StridedView& x) const {
  return transposed_view(x, permutation(*this, x.shape.rank()));
}

std::vector<TensorSpec> Transpose::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  return {{inputs[0].dtype, view_of(dense_view(inputs[0].shape)).shape}};
}

std::vector<ValueId> Transpose::gradient(const GradientContext& context) const {
  const Dims forward = permutation(*this, context.emitter.spec(context.inputs[0]).shape.rank());
  Transpose inverse;
  inverse.perm.resize(forward.size());
  for (std::size_t a = 0; a < forward.size(); ++a) {
    inverse.perm[static_cast<std::size_t>(forward[a])] = static_cast<std::int64_t>(a);
  }
  return {context.emitter.emit_one(make_op(inverse), {context.output_gradients[0]})};
}

void Transpose::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  copy_view(view_of(dense_view(inputs[0].spec.shape)), inputs[0].values,
            dense_view(outputs[0].spec.shape), outputs[0].values);
}

void add_transpose_ops(OpList& list) { list.push_back(make_op(Transpose{})); }

}  // namespace triptych
