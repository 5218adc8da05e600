// The data caches of this processor, as the system describes them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace triptych::cpu {

struct Cache {
  int level = 0;     ///< from 1 on
  double bytes = 0;  ///< of one
  int sharers = 1;   ///< processors that one serves
};

/// Caches of the first processor, the nearest first, from `system`, which gives sizes of one cache.
/// Otherwise from sysconf, where the last level may be the sum of a socket's. Empty where neither
/// says anything.
std::vector<Cache> data_caches(const std::string& system = "/sys/devices/system/cpu/cpu0/cache");

/// Bytes of this processor's second-level cache, or of a usual one where the system does not say.
double second_level_bytes();

}  // namespace triptych::cpu
