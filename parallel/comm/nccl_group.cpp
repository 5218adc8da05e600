// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/nccl_group.h"

#include "core/base/error.h"
#include "parallel/comm/nccl_calls.h"
#include "parallel/comm/nccl_links.h"
#include "parallel/comm/thread_group.h"

namespace triptych::parallel {

std::string nccl_missing() {
  if (nccl_problem().empty()) return {};
  return nccl_problem() + "; install NCCL (package libnccl2), or set LD_LIBRARY_PATH to its folder";
}

std::unique_ptr<RankGroup> open_nccl_group(int ranks, Seconds timeout) {
  if (const auto why = nccl_missing(); !why.empty()) throw UnsupportedError(why);
  return std::make_unique<ThreadGroup>(ranks, timeout, std::make_unique<NcclLinks>(ranks, timeout));
}

}  // namespace triptych::parallel
