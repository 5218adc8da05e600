// First view of a waveform file in GTKWave: the machine's signals, grouped by unit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "systolic/sim/rtl_model.h"

namespace triptych::mmu {

/// Writes, next to the FST file of a model, the GTKWave save file that names its signals: the
/// same path, ending in .gtkw. Throws std::runtime_error when either file cannot be used.
void write_save_file(const RtlModel& model, const std::string& waves);

}  // namespace triptych::mmu
