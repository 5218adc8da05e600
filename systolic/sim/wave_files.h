// Names and formats of waveform files: a model writes FST. VCD is made from it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace triptych::mmu {

/// True for a name that ends in .fst or .vcd.
bool is_wave_file(const std::filesystem::path& waves);
/// The FST file of these waves: itself, or the one with the same name as a VCD file.
std::filesystem::path fst_of(const std::filesystem::path& waves);
/// Writes the VCD file `waves` from the FST file of the same name. Nothing for an FST file. Throws
/// std::runtime_error when a file cannot be used.
void write_vcd(const std::filesystem::path& waves);

}  // namespace triptych::mmu
