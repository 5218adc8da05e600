// SPDX-License-Identifier: Apache-2.0
#include "core/ops/concat.h"

#include "backends/cuda/kernels/strided_copy.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// One copy per input, each to its place in y. (Split expands to Slice.)
class ConcatKernel : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) { return accepts_rank(query); }

  ConcatKernel(const KernelQuery& query, Device&) {
    std::vector<TensorSpec> specs;
    for (const auto& input : query.inputs) specs.push_back(input.spec);
    const auto places = query.as<Concat>().views_in(operand_view(query.outputs[0]), specs);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      copies_.emplace_back(operand_view(query.inputs[i]), places[i], specs[i].dtype);
    }
  }

  void run(const KernelArgs& args) override {
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      copies_[i].run(args.stream, args.inputs[i], args.outputs[0]);
    }
  }

 private:
  std::vector<StridedCopy> copies_;
};

}  // namespace

void add_concat_kernels(KernelList& list) {
  list.push_back(kernel_entry<ConcatKernel>(Concat::kName, "strided_copy"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
