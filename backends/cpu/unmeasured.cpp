// Measurements where there are no threads to measure with (WebAssembly): none.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/measured_bandwidth.h"
#include "backends/cpu/measured_peak.h"

namespace triptych::cpu {

double measured_peak(int) { return 0; }
double measured_tile_peak(int) { return 0; }
std::vector<LevelBandwidth> measured_bandwidths(int, const std::vector<Cache>&) { return {}; }

}  // namespace triptych::cpu
