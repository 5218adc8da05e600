// Registers of every PE of the array in every cycle, for pictures and for comparison with the RTL:
// computed from when a program's instructions start and from what they multiply, by the formulas of
// "Time" in docs/reference/mmu.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// A weight register: its number's bits, and whether the PE multiplies by it.
struct PeWeight {
  std::uint16_t bits = 0;
  bool enabled = false;
  bool operator==(const PeWeight&) const = default;
};

/// The registers of one PE in one cycle, raw bits; nothing where the program has put nothing there,
/// or something that no result depends on.
struct PeState {
  std::optional<std::uint16_t> activation;  ///< on its way to the right
  std::optional<PeWeight> weight;           ///< that it multiplies by
  std::optional<PeWeight> shadow;           ///< the next one, waiting for the swap
  std::optional<PeWeight> moving;           ///< on its way down, behind the computation
  std::optional<std::uint32_t> sum;         ///< on its way down: the chain down to this row
};

class ArrayView {
 public:
  /// `report` is that of the twin, with times; `dram` the memory before the run as far as the
  /// program reads or writes it, which is not changed. Throws as Machine::run for a program that
  /// the machine refuses.
  ArrayView(const Program& program, const MachineConfig& machine, const RunReport& report,
            std::span<const std::byte> dram);

  PeState at(std::uint64_t cycle, std::uint32_t row, std::uint32_t column) const;
  /// Start of the chain that enters a column at its top: +0, or what the accumulators feed back.
  std::optional<std::uint32_t> top(std::uint64_t cycle, std::uint32_t column) const;
  /// Number of the matmul in the program whose slot this PE multiplies in this cycle.
  std::optional<std::size_t> matmul_at(std::uint64_t cycle, std::uint32_t row,
                                       std::uint32_t column) const;

 private:
  struct Tile {
    std::uint32_t rows = 0, columns = 0;
    std::vector<std::uint16_t> weights;  ///< [row][column]
    std::uint64_t moved = 0;             ///< first cycle of its way into the array
  };
  struct Stream {
    std::size_t instruction = 0;
    std::uint64_t start = 0;
    std::uint32_t slots = 0;  ///< with a value
    std::size_t tile = 0;
    std::vector<std::uint16_t> activations;  ///< [slot][row]
    std::vector<std::uint32_t> tops;         ///< [slot][column]
    std::vector<std::uint32_t> sums;         ///< [slot][row][column]
  };
  /// A tile becomes the active one from this cycle on, as the address generator counts.
  struct Swap {
    std::uint64_t start = 0;
    std::size_t tile = 0;
  };
  class Builder;

  std::optional<PeWeight> weight_of(std::size_t tile, std::uint32_t row,
                                    std::uint32_t column) const;
  /// The stream with a slot in this cycle, as the address generator counts.
  const Stream* stream_at(std::int64_t cycle) const;

  MachineConfig machine_;
  std::vector<Tile> tiles_;      ///< in the order in which they move
  std::vector<Stream> streams_;  ///< ascending starts
  std::vector<Swap> swaps_;
};

}  // namespace triptych::mmu
