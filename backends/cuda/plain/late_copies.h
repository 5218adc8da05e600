// Copies of cp.async: each thread has a list of groups. A copy happens when its thread waits for
// it, as late as a GPU may be.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/plain/services.h"

namespace triptych::cuda::plain {

// As Services has them.
void copy_late(const LateCopy& copy);
void commit_late_copies();
void await_late_copies(unsigned pending);
/// A thread begins: an earlier one of its number may have left copies.
void forget_late_copies();

}  // namespace triptych::cuda::plain
