// The bandwidth of each level of a device's memory: measured on a real one, from its description on
// a simulated one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/device.h"

namespace triptych::measure {

/// The nearest level first, the main memory last. Takes about two seconds on a CPU. A device that
/// has no loops of its own for it (Device::level_bandwidths) runs its kernels of Relu as the copy
/// and of Add as the triad, on arrays that fit its L2 and on arrays that do not. Throws
/// UnsupportedError where neither says anything: a device that emulates another.
std::vector<LevelBandwidth> measure_bandwidths(Device& device);

/// The better of the two. 0: neither is known.
double best_of(const LevelBandwidth& level);

}  // namespace triptych::measure
