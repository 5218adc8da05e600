// Kernels that backends have in common, each over its own engines: their operators, their names,
// and the arguments that they pass to an engine. A backend names its engine and adds its list.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/base/reduction.h"
#include "core/ops/assign.h"
#include "core/ops/reduce.h"
#include "core/ops/reshape.h"
#include "core/ops/where.h"
#include "core/runtime/broadcast_walk.h"
#include "core/runtime/kernel.h"

namespace triptych {

/// y's bytes are x's: for values that the plan cannot let share their memory. A strided operand is
/// walked under its own shape, the dense one under the same. `CopyKernel`: a kernel that copies
/// input 0, seen through a view, to output 0.
template <class CopyKernel>
class ReshapeKernel : public CopyKernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    const auto& x = query.inputs[0];
    const auto& y = query.outputs[0];
    // Takes any rank: a gap along the first dimension leaves two axes.
    const bool common = x.is_dense() || y.is_dense() || x.spec.shape == y.spec.shape;
    return common ? Verdict::yes() : Verdict::no("needs a dense operand to change the shape");
  }

  ReshapeKernel(const KernelQuery& query, Device&)
      : CopyKernel(view(query.inputs[0], walked(query)), view(query.outputs[0], walked(query)),
                   query.inputs[0].spec.dtype) {}

 private:
  static const Shape& walked(const KernelQuery& query) {
    return (query.outputs[0].is_dense() ? query.inputs : query.outputs)[0].spec.shape;
  }
  static StridedView view(const Operand& operand, const Shape& shape) {
    return operand.is_dense() ? dense_view(shape) : operand_view(operand);
  }
};

/// Its first input is the memory of its output.
template <class CopyKernel>
class AssignKernel : public CopyKernel {
 public:
  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  AssignKernel(const KernelQuery& query, Device&)
      : CopyKernel(operand_view(query.inputs[1]), operand_view(query.outputs[0]),
                   query.inputs[1].spec.dtype) {}

  void run(const KernelArgs& args) override {
    CopyKernel::run({args.inputs.subspan(1), args.outputs, args.scratch, args.stream});
  }
};

template <class CopyKernel>
void add_copy_kernels(auto& list) {
  for (const auto op :
       {Reshape::kName, Flatten::kName, Squeeze::kName, Unsqueeze::kName, Identity::kName}) {
    list.push_back(kernel_entry<ReshapeKernel<CopyKernel>>(op, "copy"));
  }
  list.push_back(kernel_entry<AssignKernel<CopyKernel>>(Assign::kName, "copy"));
}

/// `WhereKernel<T>` moves elements as T of any meaning: one type per size serves every dtype.
template <template <class> class WhereKernel>
void add_where_kernels_by_size(auto& list) {
  list.push_back(kernel_entry<WhereKernel<std::uint32_t>>(Where::kName, "elementwise4"));
  list.push_back(kernel_entry<WhereKernel<std::uint16_t>>(Where::kName, "elementwise2"));
  list.push_back(kernel_entry<WhereKernel<std::uint8_t>>(Where::kName, "elementwise1"));
  list.push_back(kernel_entry<WhereKernel<std::uint64_t>>(Where::kName, "elementwise8"));
}

/// A Reduce by `ReduceKernel<Combine<T>>`, which folds elements of T (reduction.h).
template <template <class> class ReduceKernel, template <class> class Combine>
std::unique_ptr<Kernel> make_reduce(const KernelQuery& query) {
  const auto dtype = query.inputs[0].spec.dtype;
  if (dtype == DType::I32) return std::make_unique<ReduceKernel<Combine<std::int32_t>>>(query);
  if (dtype == DType::I64) return std::make_unique<ReduceKernel<Combine<std::int64_t>>>(query);
  return std::make_unique<ReduceKernel<Combine<float>>>(query);
}

template <template <class> class ReduceKernel>
std::unique_ptr<Kernel> prepare_reduce(const KernelQuery& query, Device&) {
  const auto kind = query.as<Reduce>().kind;
  if (kind == ReduceKind::Max) return make_reduce<ReduceKernel, MaxOf>(query);
  if (kind == ReduceKind::Min) return make_reduce<ReduceKernel, MinOf>(query);
  return make_reduce<ReduceKernel, SumOf>(query);
}

/// `ArgMaxKernel<T>` is for elements of T.
template <template <class> class ArgMaxKernel>
std::unique_ptr<Kernel> prepare_arg_max(const KernelQuery& query, Device&) {
  return visit_dtype(query.inputs[0].spec.dtype, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<ArgMaxKernel<decltype(tag)>>(query);
  });
}

/// `accepts` and `accepts_dense`: of the backend's trees, and of its ArgMax. `channels_last`: of
/// its sums and means.
template <template <class> class ReduceKernel, template <class> class ArgMaxKernel>
void add_reductions(auto& list, decltype(KernelEntry::accepts) accepts,
                    decltype(KernelEntry::accepts) accepts_dense,
                    decltype(KernelEntry::channels_last) channels_last = nullptr) {
  for (const auto kind : all_reduce_kinds()) {
    // Reduce's names are literals: the entry's view outlives this object.
    KernelEntry entry = {Reduce(kind).name(), "tree", accepts, &prepare_reduce<ReduceKernel>};
    if (kind == ReduceKind::Sum || kind == ReduceKind::Mean) entry.channels_last = channels_last;
    list.push_back(entry);
  }
  list.push_back({ArgMax::kName, "direct", accepts_dense, &prepare_arg_max<ArgMaxKernel>});
}

}  // namespace triptych
