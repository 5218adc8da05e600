// NVIDIA's toolkit and libraries as this build was configured with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/device.h"

namespace triptych::cuda {

/// cuBLASLt, cuDNN and NCCL, each with its version or the reason why it is not there.
std::vector<BackendLibrary> libraries();

/// Why a build without the toolkit has none, and what would add it.
Availability without_toolkit();

}  // namespace triptych::cuda
