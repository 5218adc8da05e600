// Common part of the convolution kernels of float32 and bfloat16 that read planes of x themselves:
// they differ in how they lay out x and pack the weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/kernels/conv_store.h"
#include "core/ops/conv.h"

namespace triptych::cpu {

class FloatConv : public Kernel {
 protected:
  FloatConv(const KernelQuery& query, const Device& device)
      : g_(geometry_of(query)),
        relu_(has_relu(query.as<Conv>())),
        x_stride_(query.inputs[0].outer_stride),
        w_stride_(query.inputs[1].outer_stride),
        y_stride_(query.outputs[0].outer_stride),
        rounding_(rounding_of(query.contract)),
        threads_(device_threads(device)) {}

  static ConvGeometry geometry_of(const KernelQuery& query) {
    return query.as<Conv>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape);
  }

  ConvGeometry g_;
  bool relu_;
  std::int64_t x_stride_;
  std::int64_t w_stride_;
  std::int64_t y_stride_;
  Rounding rounding_;
  std::int64_t threads_;
};

}  // namespace triptych::cpu
