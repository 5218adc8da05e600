// NVIDIA's toolkit, as this build was configured with it, and its libraries, as this machine has
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/device.h"

namespace triptych::cuda {

/// cuBLASLt, cuDNN and NCCL, each with its version and file, or the reason why it is not there:
/// the build was made without it, or it is not found when the program runs.
std::vector<BackendLibrary> libraries();

/// Why a build without the toolkit has none, and the command that would add it.
Availability without_toolkit();

}  // namespace triptych::cuda
