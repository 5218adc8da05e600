// In place of NCCL's header: the part that parallel/comm calls, which fake_gpu.cpp plays on the
// host.
// SPDX-License-Identifier: Apache-2.0
// NOLINTBEGIN(readability-identifier-naming): names are NCCL's
#pragma once

#include <cuda_runtime_api.h>

enum ncclResult_t {
  ncclSuccess = 0,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
};
enum ncclDataType_t {
  ncclInt8,
  ncclUint8,
  ncclInt32,
  ncclInt64,
  ncclFloat16,
  ncclFloat32,
  ncclBfloat16
};
enum ncclRedOp_t { ncclSum };

using ncclComm_t = struct FakeComm*;
struct ncclUniqueId {
  char internal[128];
};
struct ncclConfig_t {
  int blocking;
};
inline constexpr ncclConfig_t NCCL_CONFIG_INITIALIZER = {-1};

const char* ncclGetErrorString(ncclResult_t result);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void* source, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void* target, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllReduce(const void* source, void* target, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
// NOLINTEND(readability-identifier-naming)
