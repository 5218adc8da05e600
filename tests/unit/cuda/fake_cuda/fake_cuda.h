// GPUs as far as backends/cuda/device sees them, played on the host. A stream's work waits until
// somebody waits for it, and the legacy stream's comes last of all: whoever relies on an order that
// CUDA does not promise is found out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <functional>

namespace fake_cuda {

/// A kernel: runs when its turn comes, or is recorded.
void launch(cudaStream_t stream, std::function<void()> work);
/// Error that a failed call would leave behind.
void leave_error();

int current_device();
/// Graphs that are not destroyed.
int graphs();
/// How often a recorded graph was launched.
int replays();

}  // namespace fake_cuda
