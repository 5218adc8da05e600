// Reading and writing one field of an instruction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "systolic/isa/isa.h"

namespace triptych::mmu {

/// The reason why the value does not fit, with the field's range. Empty: it fits.
std::string misfit(const Field& field, std::int64_t value);
/// Throws std::invalid_argument, naming the field and its range, when the value does not fit.
void set_field(Instruction& instruction, const Field& field, std::int64_t value);
std::int64_t get_field(const Instruction& instruction, const Field& field);

}  // namespace triptych::mmu
