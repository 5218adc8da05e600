// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executor_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "core/runtime/formats.h"

namespace triptych {

ExecutorMemory::ExecutorMemory(Plan& plan, StateStore& states, const ExecutorMemory* lender)
    : plan_(plan) {
  if (&states.device() != plan.devices[0]) {
    throw InvalidArgument(fmt::format("the state store is on {}, the plan's first device is {}",
                                      states.device().info().name, plan.devices[0]->info().name));
  }
  allocate_devices(lender);
  allocate_staging();
  for (const auto& value : plan.graph.values()) {
    if (value.kind == ValueKind::State) states_[value.id] = states.require(value.name, *value.data);
    if (value.kind == ValueKind::Constant) place_constant(value);
    plan.graph.release_data(value.id);
  }
}

void ExecutorMemory::allocate_devices(const ExecutorMemory* lender) {
  for (std::size_t d = 0; d < plan_.devices.size(); ++d) {
    auto& device = *plan_.devices[d];
    const auto allocate = [&](std::size_t bytes, std::shared_ptr<DeviceBuffer> lent) {
      if (bytes == 0 || (lent && lent->size() >= bytes)) return lent;
      return std::shared_ptr<DeviceBuffer>(device.allocate(bytes));
    };
    DeviceMemory lent;
    if (lender && d < lender->devices_.size() && lender->plan_.devices[d] == &device) {
      lent = lender->devices_[d];
    }
    const auto constants = device.reads_host_memory() ? 0 : plan_.constant_bytes[d];
    devices_.push_back({.arena = allocate(plan_.arena_bytes[d], lent.arena),
                        .constants = allocate(constants, nullptr)});
  }
}

void ExecutorMemory::place_constant(const Value& value) {
  for (std::size_t d = 0; d < plan_.devices.size(); ++d) {
    if (!plan_.locations[d][value.id.index()]) continue;
    const auto bytes = value.data->bytes();
    if (plan_.devices[d]->reads_host_memory()) {
      constants_[value.id] = value.data;
    } else if (!bytes.empty()) {
      plan_.devices[d]->upload(address(d, value.id), bytes.data(), bytes.size());
    }
  }
}

void ExecutorMemory::allocate_staging() {
  std::size_t largest = 0;
  for (const auto& step : plan_.steps) {
    for (const auto* list : {&step.crossings, &step.write_backs}) {
      for (const auto& crossing : *list) largest = std::max(largest, crossing.bytes);
    }
  }
  staging_ = allocate_aligned(largest);
}

std::byte* ExecutorMemory::address(std::size_t device, ValueId value) const {
  const auto& location = plan_.locations[device][value.index()].value();
  if (location.storage == Storage::State) return states_.at(location.root);
  const auto& own = devices_[device];
  if (location.storage == Storage::Constant && plan_.devices[device]->reads_host_memory()) {
    return const_cast<std::byte*>(constants_.at(location.root)->bytes().data());  // never written
  }
  const auto& buffer = location.storage == Storage::Constant ? own.constants : own.arena;
  return buffer ? buffer->data() + location.offset : nullptr;
}

std::byte* ExecutorMemory::scratch(std::size_t device) const {
  const auto& arena = devices_[device].arena;
  return arena ? arena->data() : nullptr;
}

void ExecutorMemory::upload(ValueId value, std::span<const std::byte> bytes) {
  for (std::size_t d = 0; d < plan_.devices.size(); ++d) {
    if (bytes.empty() || !plan_.locations[d][value.index()]) continue;
    plan_.devices[d]->upload(address(d, value), bytes.data(), bytes.size());
  }
}

Tensor ExecutorMemory::download(std::size_t device, ValueId value) const {
  Tensor result(plan_.graph.spec(value));
  const auto bytes = result.bytes();
  if (bytes.empty()) return result;
  const auto& location = *plan_.locations[device][value.index()];
  if (location.channels_last) {
    const auto slack = kSlackPositions * location.channels_last->pitch;
    std::vector<std::byte> stored(bytes_of(result.shape(), *location.channels_last) -
                                  static_cast<std::size_t>(slack) *
                                      dtype_size(location.channels_last->dtype));
    plan_.devices[device]->download(stored.data(), address(device, value), stored.size());
    planes_from_channels_last(result.shape(), *location.channels_last, stored, result.as<float>());
    return result;
  }
  const Operand operand{result.spec(), location.outer_stride};
  const auto rows = operand.is_dense() ? 1 : static_cast<std::size_t>(result.shape()[0]);
  const auto row = bytes.size() / rows;
  const auto distance = static_cast<std::size_t>(operand.outer_stride) * dtype_size(result.dtype());
  const auto* source = address(device, value);
  for (std::size_t i = 0; i < rows; ++i) {
    plan_.devices[device]->download(bytes.data() + i * row, source + i * distance, row);
  }
  return result;
}

void ExecutorMemory::copy(const std::vector<Crossing>& crossings) {
  for (const auto& [value, from, to, bytes] : crossings) {
    if (bytes == 0) continue;
    plan_.devices[from]->download(staging_.get(), address(from, value), bytes);
    plan_.devices[to]->upload(address(to, value), staging_.get(), bytes);
  }
}

}  // namespace triptych
