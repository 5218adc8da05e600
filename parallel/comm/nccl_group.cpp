// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/nccl_group.h"

#include "parallel/comm/nccl_links.h"
#include "parallel/comm/thread_group.h"

namespace triptych::parallel {

std::string nccl_missing() { return {}; }

std::unique_ptr<RankGroup> open_nccl_group(int ranks, Seconds timeout) {
  return std::make_unique<ThreadGroup>(ranks, timeout, std::make_unique<NcclLinks>(ranks, timeout));
}

}  // namespace triptych::parallel
