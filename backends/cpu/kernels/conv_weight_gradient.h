// The gradient of a convolution's weights as a plain product, for kernels that cannot take every
// value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/runtime/device.h"

namespace triptych::cpu {

/// Takes every query that accepts_gemm does.
std::unique_ptr<Kernel> prepare_plain_weight_gradient(const KernelQuery& query, Device& device);

}  // namespace triptych::cpu
