// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/nccl_calls.h"

#include "core/base/error.h"
#include "core/base/shared_library.h"

namespace triptych::parallel {
namespace {

struct Opened {
  SharedLibrary library{"libnccl.so." + std::to_string(NCCL_MAJOR),
                        {"CUDA_PATH", "/usr/local/cuda", "nvidia"}};
  NcclCalls calls{
      .error_string = library.find("ncclGetErrorString"),
      .unique_id = library.find("ncclGetUniqueId"),
      .init_rank = library.find("ncclCommInitRankConfig"),
      .async_error = library.find("ncclCommGetAsyncError"),
      .abort = library.find("ncclCommAbort"),
      .group_start = library.find("ncclGroupStart"),
      .group_end = library.find("ncclGroupEnd"),
      .send = library.find("ncclSend"),
      .receive = library.find("ncclRecv"),
      .all_reduce = library.find("ncclAllReduce"),
  };
};

const Opened& opened() {
  static const Opened instance;
  return instance;
}

}  // namespace

const std::string& nccl_problem() { return opened().library.problem(); }

const NcclCalls& nccl() {
  if (!nccl_problem().empty()) throw DeviceError("NCCL: " + nccl_problem());
  return opened().calls;
}

}  // namespace triptych::parallel
