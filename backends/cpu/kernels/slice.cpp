// SPDX-License-Identifier: Apache-2.0
#include "core/ops/slice.h"

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/strided_copy.h"

namespace triptych::cpu {
namespace {

/// Zeros, then dy where Slice read.
class SliceGradientKernel : public Kernel {
 public:
  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  SliceGradientKernel(const KernelQuery& query, Device&)
      : zeros_(query.outputs[0], scalar_tensor(0.0F)),
        copy_(operand_view(query.inputs[0]),
              query.as<SliceGradient>().forward().view_of(operand_view(query.outputs[0])),
              sizeof(float)) {}

  void run(const KernelArgs& args) override {
    zeros_.run(args.outputs[0]);
    copy_.run(args.inputs[0], args.outputs[0]);
  }

 private:
  Fill zeros_;
  StridedCopy copy_;
};

}  // namespace

void add_slice_kernels(KernelList& list) {
  list.push_back(kernel_entry<ViewKernel<Slice>>("Slice", "strided_copy"));
  list.push_back(kernel_entry<SliceGradientKernel>("SliceGradient", "strided_copy"));
}

}  // namespace triptych::cpu
