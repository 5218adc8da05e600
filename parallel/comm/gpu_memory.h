// A GPU's memory for messages, and the few calls of the CUDA runtime around it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "parallel/comm/message_memory.h"

namespace triptych::parallel {

/// Throws DeviceError, naming the call, unless it went well.
void check_cuda(cudaError_t status, const char* call);

/// Throws DeviceError with the reason when there is none.
int count_gpus();
/// Chooses the GPU of this thread, from now on.
void use_gpu(int index);
/// Memory of GPU `index`. Calls may come from any thread.
std::unique_ptr<MessageMemory> open_gpu_memory(int index);

}  // namespace triptych::parallel
