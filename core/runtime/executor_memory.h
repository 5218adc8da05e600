// The memory that a plan describes, allocated: where each value is, and copies to and from it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/runtime/plan.h"
#include "core/runtime/state_store.h"

namespace triptych {

class ExecutorMemory {
 public:
  /// Allocates arenas, uploads the constants to devices that do not read host memory, and creates
  /// missing states. The plan's graph then lets go of its host copies. `plan` must outlive it.
  /// Throws InvalidArgument when `states` is on another device than the plan's first. Arenas are
  /// `lender`'s where they are large enough.
  ExecutorMemory(Plan& plan, StateStore& states, const ExecutorMemory* lender = nullptr);

  /// nullptr for a value without elements on a device without memory.
  std::byte* address(std::size_t device, ValueId value) const;
  /// For any one step at a time: the start of the arena.
  std::byte* scratch(std::size_t device) const;

  /// To every device that holds the value.
  void upload(ValueId value, std::span<const std::byte> bytes);
  /// A dense host copy.
  Tensor download(std::size_t device, ValueId value) const;
  /// Copies between devices, one after another, without allocation.
  void copy(const std::vector<Crossing>& crossings);

 private:
  struct DeviceMemory {
    std::shared_ptr<DeviceBuffer> arena, constants;
  };

  void allocate_devices(const ExecutorMemory* lender);
  void place_constant(const Value& value);
  void allocate_staging();

  const Plan& plan_;
  std::vector<DeviceMemory> devices_;
  std::unordered_map<ValueId, std::byte*> states_;
  std::unordered_map<ValueId, std::shared_ptr<const Tensor>> constants_;  ///< in host memory
  AlignedBytes staging_;  ///< host memory through which crossings go
};

}  // namespace triptych
