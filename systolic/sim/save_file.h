// First view of a waveform file in GTKWave: the machine's signals, grouped by unit, numbers and
// instructions in words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "systolic/isa/machine.h"
#include "systolic/sim/rtl_model.h"

namespace triptych::mmu {

/// Meaning of a signal's bits.
enum class WaveFormat {
  Hexadecimal,
  Elements,     ///< bf16 or int8, one after the other from the lowest bits on
  Weights,      ///< elements, each with an enable bit above it
  Sums,         ///< binary32 or 32-bit integers
  Instruction,  ///< 256 bits
};

/// Format of the signal "name [7:0]" in the module of that instance.
WaveFormat format_of(std::string_view instance, std::string_view name);
/// "1 -0.5 off" for the bits '0' and '1', the most significant first. Lane or column 0 comes first.
std::string wave_text(WaveFormat format, std::string_view bits, PeKind pe);

/// Files that write_save_file creates in the directory of this waveform file.
std::vector<std::filesystem::path> view_files(const std::filesystem::path& waves);

/// Writes, next to the FST file of a model, the GTKWave save file that names its signals (the same
/// path, ending in .gtkw), and the translations of the values that occur in them. The save file
/// contains the paths that these files will have in the directory of `name`. Empty: those that they
/// have. Throws std::runtime_error when a file cannot be used.
void write_save_file(const RtlModel& model, const std::string& waves, const std::string& name,
                     PeKind pe);

}  // namespace triptych::mmu
