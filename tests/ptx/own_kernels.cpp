// The interpreter has none of NVIDIA's libraries: their kernels are not in its table.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/library/library_kernels.h"

namespace triptych::cuda {

void add_cublaslt_kernels(std::vector<KernelEntry>&) {}
void add_cudnn_kernels(std::vector<KernelEntry>&) {}

}  // namespace triptych::cuda
