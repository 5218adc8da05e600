// Convolution as a product of bfloat16 pairs (gemm/dot_unit.h).
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/dot_unit.h"
#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/ops/conv.h"

namespace triptych::cpu {
namespace {

Verdict worth(const KernelQuery& query) {
  const auto g = query.as<Conv>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape);
  return worth_on_dots(g.group_out(), g.group_in() * g.taps());
}

}  // namespace

void add_conv_dots_kernels(KernelList& list) {
  list.push_back(
      {Conv::kName, "dots", &accepts_image_dots, &prepare_conv<ConvGemm<Conv, DotArithmetic>>});
  list.back().worth = &worth;
}

}  // namespace triptych::cpu
