// The kernels that NVIDIA's libraries compute, for the kernel table of a GPU. A build has those of
// the libraries that it was configured with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/kernels.h"

namespace triptych::cuda {

void add_cublaslt_kernels(KernelList& list);
void add_cudnn_kernels(KernelList& list);

}  // namespace triptych::cuda
