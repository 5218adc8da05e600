// Numbers that a grid of matmuls streams: gathered once, kept while other columns ask for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"
#include "systolic/twin/array.h"
#include "systolic/twin/gather.h"
#include "systolic/twin/grid.h"

namespace triptych::mmu {

class Activations {
 public:
  using Steps = std::span<const MatmulGrid::Step>;

  /// `machine` outlives it.
  explicit Activations(const MachineConfig& machine);

  /// The buffer or a descriptor has changed.
  void forget();
  /// Goes to the operands of these steps. All arguments stay as they are until the last block.
  template <class Element>
  void begin(Steps steps, const SetStream& stream, const SetTaps& taps,
             const BufferView<Element>& buffer);
  /// The next kBlock slots, as far as there are, starting with slot `first`.
  template <class Element>
  ActivationBlock block(std::uint32_t first, const BufferView<Element>& buffer);

 private:
  /// Steps with blocks in the places from `place` on.
  struct Kept {
    std::vector<MatmulGrid::Step> steps;
    std::size_t place;
  };

  bool transpose() const { return steps_.front().start.transpose; }
  std::uint32_t count() const { return steps_.front().start.count; }
  float* place(std::size_t index);
  bool find_kept();
  bool keep();
  void begin_walk(const SetTaps& taps);
  template <class Element>
  void gather_next(const BufferView<Element>& buffer, float* target);
  template <class Element>
  void gather_values(const BufferView<Element>& buffer, std::uint32_t slots, float* target);

  const MachineConfig& machine_;
  Steps steps_;
  std::vector<Vector> values_;  ///< a place for each block. The first is for unused values
  std::size_t used_ = 1;        ///< places
  std::size_t place_ = 0;       ///< of the first block
  std::vector<Kept> kept_;
  std::size_t next_kept_ = 0;  ///< the first to reuse if all are, again in the same order

  const SetStream* stream_ = nullptr;
  std::optional<PositionWalk> position_walk_;
  std::optional<TapWalk> tap_walk_;
  std::uint32_t slot_ = 0;  ///< where the walk is that leads from block to block
  std::vector<Position> positions_;
  std::vector<TapRun> runs_;
};

}  // namespace triptych::mmu
