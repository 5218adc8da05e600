// The kernels that NVIDIA's libraries compute, for the kernel table of a GPU. A build has those of
// the libraries that it was configured with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/kernel.h"

namespace triptych::cuda {

void add_cublaslt_kernels(std::vector<KernelEntry>& list);
void add_cudnn_kernels(std::vector<KernelEntry>& list);

}  // namespace triptych::cuda
