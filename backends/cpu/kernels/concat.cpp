// SPDX-License-Identifier: Apache-2.0
#include "core/ops/concat.h"

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/strided_copy.h"

namespace triptych::cpu {
namespace {

/// One copy per input, each to its place in y.
class ConcatKernel : public Kernel {
 public:
  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  ConcatKernel(const KernelQuery& query, Device&) {
    std::vector<TensorSpec> specs;
    for (const auto& input : query.inputs) specs.push_back(input.spec);
    const auto places = query.as<Concat>().views_in(operand_view(query.outputs[0]), specs);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      copies_.emplace_back(operand_view(query.inputs[i]), places[i], dtype_size(specs[i].dtype));
    }
  }

  void run(const KernelArgs& args) override {
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      copies_[i].run(args.inputs[i], args.outputs[0]);
    }
  }

 private:
  std::vector<StridedCopy> copies_;
};

}  // namespace

void add_concat_kernels(KernelList& list) {
  list.push_back(kernel_entry<ConcatKernel>("Concat", "strided_copy"));
}

}  // namespace triptych::cpu
