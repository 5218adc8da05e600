// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/listed_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "systolic/twin/numerics.h"

namespace triptych::mmu {
namespace {

bool is_float(ElementType type) { return type == ElementType::Bf16 || type == ElementType::F32; }

/// With all its bits, as messages show it.
std::string shown(ElementType type, std::uint32_t bits) {
  const auto text =
      is_float(type) ? fmt::format("{}", std::bit_cast<float>(bits)) : value_text(type, bits);
  return is_float(type) ? fmt::format("{} (0x{:08X})", text, bits) : text;
}

}  // namespace

std::string misfit(const DramArray& array, const MachineConfig& machine) {
  if (array.address + array.bytes() <= machine.dram_bytes) return {};
  return fmt::format("'{}' takes bytes {} to {}, the DRAM of {} has {}", array.name, array.address,
                     array.address + array.bytes() - 1, machine.name, machine.dram_bytes);
}

void put_values(const DramArray& array, std::span<std::byte> dram) {
  auto* target = dram.subspan(array.address, array.bytes()).data();
  for (const auto& value : array.values) {
    std::uint32_t bits = value.bits;
    if (array.type == ElementType::Bf16) bits = to_bf16(std::bit_cast<float>(bits));
    std::memcpy(target, &bits, bytes_of(array.type));
    target += bytes_of(array.type);
  }
}

std::uint32_t value_bits(const DramArray& array, std::span<const std::byte> dram,
                         std::uint64_t index) {
  const std::uint32_t size = bytes_of(array.type);
  std::uint32_t bits = 0;
  std::memcpy(&bits, dram.subspan(array.address + index * size, size).data(), size);
  if (array.type == ElementType::Bf16) return bits << 16;
  if (array.type == ElementType::Int8) return static_cast<std::uint32_t>(std::int8_t(bits));
  return bits;
}

std::string value_text(ElementType type, std::uint32_t bits) {
  if (!is_float(type)) return fmt::format("{}", static_cast<std::int32_t>(bits));
  const float value = std::bit_cast<float>(bits);
  return std::isnan(value) ? fmt::format("0x{:08X}", bits) : fmt::format("{}", value);
}

std::string first_unexpected(const Listing& listing, std::span<const std::byte> dram,
                             const Counters& counters) {
  for (const auto& array : listing.arrays) {
    for (std::size_t i = 0; !array.is_input && i < array.values.size(); ++i) {
      const auto bits = value_bits(array, dram, i);
      if (!array.values[i].any && bits != array.values[i].bits)
        return fmt::format("{} is expected to be {}, came {}", array.element(i),
                           shown(array.type, array.values[i].bits), shown(array.type, bits));
    }
  }
  const auto counted = named_counts(counters);
  for (const auto& count : listing.counts) {
    const auto found = std::ranges::find(counted, count.name, &NamedCount::name);
    const auto came = found == counted.end() ? 0 : found->value;  // waits at the arbiter
    if (came != count.value)
      return fmt::format("the counter {} is expected to be {}, came {}", count.name, count.value,
                         came);
  }
  return {};
}

}  // namespace triptych::mmu
