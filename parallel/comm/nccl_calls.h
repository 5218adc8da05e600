// The calls of NCCL, from the library that is found when the program runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <string>

namespace triptych::parallel {

struct NcclCalls {
  decltype(&ncclGetErrorString) error_string;
  decltype(&ncclGetUniqueId) unique_id;
  decltype(&ncclCommInitRankConfig) init_rank;
  decltype(&ncclCommGetAsyncError) async_error;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclAllReduce) all_reduce;
};

/// Why NCCL cannot be called. Empty: it can.
const std::string& nccl_problem();

/// Throws DeviceError with the problem, if there is one.
const NcclCalls& nccl();

}  // namespace triptych::parallel
