// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/output.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "systolic/twin/numerics.h"

namespace triptych::mmu {

OutputUnit::OutputUnit(const MachineConfig& config) {
  for (auto& file : registers_) file.resize(config.columns);
  if (config.pe == PeKind::Bf16)
    real_.resize(config.columns);
  else
    whole_.resize(config.columns);
}

void OutputUnit::load(const LoadRegisters& load, const std::byte* source) {
  std::memcpy(registers_[load.file].data(), source, std::size_t{4} * load.columns);
}

void OutputUnit::store(const Store& store, const float* sums, std::byte* target) {
  const auto& [bias, multiplier, shift] = registers_;
  for (std::uint32_t c = 0; c < store.columns; ++c) {
    float value = sums[c];
    if (store.scale) value = soft_multiply(value, std::bit_cast<float>(multiplier[c]));
    if (store.bias) value = soft_add(value, std::bit_cast<float>(bias[c]));
    if (store.relu && !(value > 0) && value == value) value = 0.0F;
    real_[c] = value;
  }
  if (!store.narrow) {
    std::memcpy(target, real_.data(), std::size_t{4} * store.columns);
    return;
  }
  for (std::uint32_t c = 0; c < store.columns; ++c) {
    const std::uint16_t narrow = to_bf16(real_[c]);
    std::memcpy(target + 2 * c, &narrow, sizeof narrow);
  }
}

void OutputUnit::store(const Store& store, const std::int32_t* sums, std::byte* target) {
  const auto& [bias, multiplier, shift] = registers_;
  for (std::uint32_t c = 0; c < store.columns; ++c) {
    std::int32_t value = sums[c];
    if (store.bias) value = static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + bias[c]);
    if (store.scale)
      value = requantize(value, static_cast<std::int32_t>(multiplier[c]),
                         static_cast<std::int32_t>(shift[c]));
    if (store.relu) value = std::max(value, 0);
    whole_[c] = value;
  }
  if (!store.narrow) {
    std::memcpy(target, whole_.data(), std::size_t{4} * store.columns);
    return;
  }
  for (std::uint32_t c = 0; c < store.columns; ++c)
    target[c] = static_cast<std::byte>(std::clamp(whole_[c], -128, 127));
}

}  // namespace triptych::mmu
