// NVIDIA's libraries as this build was configured with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/device.h"

namespace triptych::cuda {

/// cuBLASLt, cuDNN and NCCL, each with its version or the reason why it is not there.
std::vector<BackendLibrary> libraries();

}  // namespace triptych::cuda
