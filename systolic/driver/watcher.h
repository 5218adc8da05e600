// Observers of a device that runs programs: the programs, their begin, and the recorded data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// Told of every program that a device runs.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// Before a program runs: the data to record of it.
  virtual RunOptions starts(const Program& program) = 0;
  virtual void ended(const Program& program, const RunReport& report) = 0;
};

/// A device that runs programs of one machine.
class Watched {
 public:
  virtual ~Watched() = default;
  virtual const MachineConfig& machine() const = 0;
  /// The machine's DRAM, as Machine::dram().
  virtual std::span<std::byte> dram() = 0;
  /// From now on `watcher` receives the events. nullptr: nobody.
  virtual void watch(Watcher* watcher) = 0;
};

/// Something that runs one program, always the same.
class ProgramOwner {
 public:
  virtual ~ProgramOwner() = default;
  virtual Program program() const = 0;
  /// How the program's work is cut to fit the machine, in words.
  virtual std::string tiling() const = 0;
};

}  // namespace triptych::mmu
