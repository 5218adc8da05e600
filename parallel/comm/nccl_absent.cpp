// In place of nccl_group.cpp where CMake found no CUDA or no NCCL.
// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "parallel/comm/nccl_group.h"

namespace triptych::parallel {

std::string nccl_missing() {
  return "this build has no NCCL; install the CUDA toolkit and libnccl-dev, and run cmake again "
         "with -DTRIPTYCH_ENABLE_CUDA=ON";
}

std::unique_ptr<RankGroup> open_nccl_group(int, Seconds) { throw UnsupportedError(nccl_missing()); }

}  // namespace triptych::parallel
