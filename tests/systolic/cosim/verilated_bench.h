// Verilator's class of a module around mmu_top, with a memory: what the benches of mmu_axi and
// mmu_arrays have in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <verilated.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "systolic/dram/memory.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// After the reset. The parameters of the model are the machine's.
template <class Model>
class VerilatedBench {
 protected:
  explicit VerilatedBench(const MachineConfig& config)
      : config_(config), memory_(config.dram_bytes) {
    context_.assertOn(true);
    model_.weight_scheme_i = static_cast<std::uint8_t>(config.weight_scheme);
    model_.rst_ni = 0;
    tick();
    model_.rst_ni = 1;
  }
  VerilatedBench(const VerilatedBench&) = delete;
  VerilatedBench& operator=(const VerilatedBench&) = delete;
  ~VerilatedBench() {
    Verilated::threadContextp(&context_);
    model_.final();
  }

  /// The first of the bytes of a port of any width, little-endian.
  template <class Port>
  static std::byte* bytes_of(Port& port) {
    return reinterpret_cast<std::byte*>(&port);
  }
  /// The half of a cycle in which inputs change, and the edge at its end.
  void settle() {
    model_.clk_i = 0;
    model_.eval();
  }
  void tick() {
    model_.clk_i = 1;
    model_.eval();
  }
  /// The cycle before cycle 0.
  void start() {
    model_.instruction_valid_i = 0;
    model_.start_i = 1;
    settle();
    tick();
    model_.start_i = 0;
  }
  /// Calls take(number) for each counter, when counter_o has its value.
  void read_counters(std::size_t count, const std::function<void(std::size_t)>& take) {
    for (std::size_t i = 0; i < count; ++i) {
      model_.counter_i = static_cast<std::uint8_t>(i);
      settle();
      tick();
      take(i);
    }
  }

  MachineConfig config_;
  Memory memory_;
  VerilatedContext context_;
  Model model_{&context_};
};

}  // namespace triptych::mmu
