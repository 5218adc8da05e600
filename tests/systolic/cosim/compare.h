// Runs a case on two models, finds where they part, and makes failing cases small.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "systolic/isa/simulator.h"
#include "tests/systolic/cosim/generator.h"

namespace triptych::mmu {

using Opener = std::function<std::unique_ptr<Machine>(const MachineConfig&)>;

/// Bits: not the times, and of the counters only those that do not depend on time.
enum class Compared : std::uint8_t { Everything, Bits };

/// Empty: DRAM, buffer, accumulators, counters and all times agree. Otherwise the first difference:
/// of times the earliest cycle, of values the register and the cycle of its last write.
std::string compare(const Case& test, const Opener& first, const Opener& second,
                    Compared compared = Compared::Everything);

/// Drops and simplifies instructions as long as compare() still finds a difference.
Case shrink(Case test, const Opener& first, const Opener& second,
            Compared compared = Compared::Everything);

/// Machine and synchronised program as text, the way the assembler reads it.
std::string describe(const Case& test);

}  // namespace triptych::mmu
