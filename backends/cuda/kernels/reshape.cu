// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reshape.h"

#include "backends/cuda/kernels/strided_copy.cuh"
#include "core/ops/assign.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// y's bytes are x's: for values that the plan cannot let share their memory. A strided operand is
/// walked under its own shape, the dense one under the same.
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

}  // namespace

void add_reshape_kernels(KernelList& list) {
  for (const auto op :
       {Reshape::kName, Flatten::kName, Squeeze::kName, Unsqueeze::kName, Identity::kName}) {
    list.push_back(kernel_entry<ReshapeKernel>(op, "copy"));
  }
  list.push_back(kernel_entry<AssignKernel>(Assign::kName, "copy"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
