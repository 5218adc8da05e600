// Weight tiles on their way from the FIFO into the array ("Loader" in docs/reference/mmu.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"
#include "systolic/twin/requests.h"

namespace triptych::mmu {

/// Tiles in the order of their loads, which is the order in which matmuls take them.
class WeightTiles {
 public:
  /// `machine` outlives it.
  explicit WeightTiles(const MachineConfig& machine);

  /// From when the FIFO has room for one more tile. kUnknown: that depends on events to come.
  Cycle room() const;
  void load(const WeightLoad& load);
  /// The last row of the newest tile has arrived, before this cycle.
  void arrive(Cycle there) { tiles_.back().there = there; }
  /// Moves the next tile into the shadow weights. False: nothing to move yet.
  bool move();

  /// The next tile from the view of the matmul that takes it.
  struct Next {
    Cycle begins = 0;  ///< the loader moves it (output-stationary: it is in the FIFO)
    Cycle ready = 0;   ///< from when the matmul may start
    Cycle busy = 0;    ///< until when the loader moves the tile before. 0: there is none
  };
  /// False while the next tile's times are unknown.
  bool is_known(bool output_stationary) const;
  Next next(bool output_stationary) const;
  /// Takes the tile at the start of a matmul and returns it.
  const TileTimes& swap(Cycle start);
  const TileTimes& stream(Cycle start);
  /// The tile of the last swap.
  const TileTimes& active() const { return tiles_[active_]; }

  /// First cycle after the loader's last row.
  Cycle idle() const { return moved_ > 0 ? tiles_[moved_ - 1].moved + machine_.rows : 0; }

 private:
  Cycle shadow_free() const;

  const MachineConfig& machine_;
  /// Delay of the swap after the capture of the next weights, and the time after the loader's begin
  /// from which the swap does not overtake it.
  Cycle behind_, loaded_after_;
  std::vector<TileTimes> tiles_;
  std::size_t moved_ = 0;   ///< tiles that the loader has taken
  std::size_t taken_ = 0;   ///< tiles that matmuls have taken
  std::size_t active_ = 0;  ///< the tile of the last swap
  bool swapped_ = false;    ///< there was one
  Cycle swap_ = 0;          ///< start of its matmul
};

}  // namespace triptych::mmu
