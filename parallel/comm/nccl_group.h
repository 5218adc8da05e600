// Ranks as threads of this process, each with its own GPU. NCCL moves their messages from GPU to
// GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "parallel/comm/rank_group.h"

namespace triptych::parallel {

/// Why this build or this machine cannot use NCCL, and the remedy. Empty: it can.
std::string nccl_missing();

/// Rank r has GPU r. Throws UnsupportedError when there is no NCCL, DeviceError when there are
/// not so many GPUs, CommError when they are not connected within the deadline.
std::unique_ptr<RankGroup> open_nccl_group(int ranks, Seconds timeout);

}  // namespace triptych::parallel
