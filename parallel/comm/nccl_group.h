// Ranks as threads of this process, each with a GPU of its own, whose messages NCCL moves from GPU
// to GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "parallel/comm/rank_group.h"

namespace triptych::parallel {

/// Why NCCL cannot be used, by this build or on this machine, and what to do. Empty: it can.
std::string nccl_missing();

/// Rank r has GPU r. Throws UnsupportedError when there is no NCCL, DeviceError when there are
/// not so many GPUs, CommError when they are not connected within the deadline.
std::unique_ptr<RankGroup> open_nccl_group(int ranks, Seconds timeout);

}  // namespace triptych::parallel
