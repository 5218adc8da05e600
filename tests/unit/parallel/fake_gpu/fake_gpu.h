// GPUs and NCCL as far as parallel/comm sees them, played on the host. Streams are queues whose
// heads alone may run, so that a wrong order blocks as it does on GPUs. Addresses of device memory
// are such that the host cannot use them; calls on a communicator that is still busy are refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace fake_gpu {

/// Begins anew with so many GPUs, all well.
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
