// The data of a program's text: the values of its arrays in DRAM, and the results that it expects.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "systolic/isa/listing.h"
#include "systolic/isa/machine.h"
#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// The problem of an array that ends beyond the machine's DRAM. Empty: none.
std::string misfit(const DramArray& array, const MachineConfig& machine);

/// Writes the values of the text into the array's bytes in `dram`.
void put_values(const DramArray& array, std::span<std::byte> dram);

/// Element `index` of the array in `dram`, in the form of ListedValue::bits.
std::uint32_t value_bits(const DramArray& array, std::span<const std::byte> dram,
                         std::uint64_t index);
/// The value as a text can state it: "0.5", "-3". Reading the text gives the same bits.
std::string value_text(ElementType type, std::uint32_t bits);

/// The first value, else the first counter, that differs from the text's expectation. Empty: none.
std::string first_unexpected(const Listing& listing, std::span<const std::byte> dram,
                             const Counters& counters);

}  // namespace triptych::mmu
