// Texts made from the instruction table: the constants of the RTL and the tables of the manual.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace triptych::mmu {

/// The content of systolic/rtl/mmu_pkg.sv.
std::string systemverilog_package();
/// Text between the markers of docs/reference/mmu.md.
std::string manual_tables();
/// `manual` with the text between its two markers replaced by the tables. Throws
/// std::invalid_argument when a marker is missing.
std::string with_manual_tables(const std::string& manual);

}  // namespace triptych::mmu
