// GPUs and NCCL as far as parallel/comm sees them, played on the host. Streams are queues. Only
// their heads may run, so that a wrong order blocks as it does on GPUs. The host cannot use
// addresses of device memory. Calls on a communicator that is still busy are refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace fake_gpu {

/// Restarts with this many GPUs, all in order.
void reset(int gpus);
/// Messages from one to another never arrive.
void cut_link(int from, int to);
/// From now on the rank's communicator reports an error.
void fail_communicator(int rank);
/// Communicators never come to be.
void never_connect();

std::size_t live_allocations();
int aborted_communicators();
/// Calls of NCCL while it was busy, or with memory that is not a GPU's.
int wrong_calls();

}  // namespace fake_gpu
