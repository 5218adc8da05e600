// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pad.h"

#include "backends/cpu/kernels/axis_maps.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/strided_copy.h"

namespace triptych::cpu {
namespace {

/// The constant everywhere, then x inside.
class ConstantPad : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    return query.as<Pad>().mode == "constant" ? Verdict::yes() : Verdict::no("only mode constant");
  }

  ConstantPad(const KernelQuery& query, Device&)
      : ConstantPad(query, pad_interior(query.as<Pad>(), operand_view(query.inputs[0]),
                                        operand_view(query.outputs[0]))) {}

  void run(const KernelArgs& args) override {
    constant_.run(args.outputs[0]);
    interior_.run(args.inputs[0], args.outputs[0]);
  }

 private:
  ConstantPad(const KernelQuery& query, const PadInterior& interior)
      : constant_(query.outputs[0], query.as<Pad>().value_as(query.inputs[0].spec.dtype)),
        interior_(interior.in_x, interior.in_y, dtype_size(query.inputs[0].spec.dtype)) {}

  Fill constant_;
  StridedCopy interior_;
};

/// Reflection and edge: every element of y copies one of x.
class IndexedPad : public IndexCopyKernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (query.as<Pad>().mode == "constant") return Verdict::no("only modes reflect and edge");
    return IndexCopyKernel::accepts(query);
  }

  IndexedPad(const KernelQuery& query, Device&)
      : IndexCopyKernel(query, pad_sources(query.as<Pad>(), query.inputs[0].spec.shape)) {}
};

}  // namespace

void add_pad_kernels(KernelList& list) {
  list.push_back(kernel_entry<ConstantPad>("Pad", "strided_copy"));
  list.push_back(kernel_entry<IndexedPad>("Pad", "index_copy"));
  list.push_back(kernel_entry<TapGradientKernel<PadGradient>>("PadGradient", "tap_sum"));
}

}  // namespace triptych::cpu
