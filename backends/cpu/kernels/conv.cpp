// Convolution as a product of packed operands (conv_gemm.h), in float32 or in integers.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv.h"

#include "backends/cpu/gemm/gemm_traffic.h"
#include "backends/cpu/kernels/conv_gemm.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/ops/quantized_conv.h"

namespace triptych::cpu {
namespace {

/// Traffic of ConvGemm in float32.
std::vector<LevelTraffic> conv_traffic(const KernelQuery& query, const Device& device) {
  const auto g = query.as<Conv>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape);
  const GemmShape shape = {g.batch * g.groups, g.group_out(), g.out_plane(),
                           g.group_in() * g.taps()};
  return packed_traffic(packed_product(shape, device_threads(device),
                                       {.source = g.group_in() * g.in_plane(),
                                        .distinct_a = g.groups,
                                        .packs_a = constant_input(query, 1) == nullptr}),
                        Caches::of(device));
}

}  // namespace

void add_conv_kernels(KernelList& list) {
  list.push_back(
      {Conv::kName, "gemm", &accepts_image_gemm, &prepare_conv<ConvGemm<Conv, FloatArithmetic>>});
  list.back().traffic = &conv_traffic;
  list.push_back(
      {QuantizedConv::kName, "gemm", &accepts_any, &prepare_integer<ConvGemm, QuantizedConv>});
}

}  // namespace triptych::cpu
