// Bandwidths of the levels of the memory: copy and triad on arrays that just fit each of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/cpu/caches.h"
#include "core/runtime/device.h"

namespace triptych::cpu {

/// Bytes/s of copy and triad (McCalpin's STREAM, 1995) on `threads` threads at once, with ordinary
/// stores, as kernels have them: a store that misses reads its line first, which is not counted.
/// Each cache's arrays fill half of it, those of "memory" four times all caches, at least 128 MiB.
/// The best of several windows. Other programs that run meanwhile make it smaller.
std::vector<LevelBandwidth> measured_bandwidths(int threads, const std::vector<Cache>& caches);

}  // namespace triptych::cpu
