// Where NVIDIA's libraries lie: the CUDA toolkit, or the packages that PyTorch installs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/shared_library.h"

namespace triptych::cuda {

inline LibraryPlaces nvidia_places() { return {"CUDA_PATH", "/usr/local/cuda", "nvidia"}; }

}  // namespace triptych::cuda
