// Results of a program, computed instruction after instruction, with the array's bits: no cycles.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "systolic/isa/accesses.h"
#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"
#include "systolic/isa/simulator.h"
#include "systolic/twin/activations.h"
#include "systolic/twin/array.h"
#include "systolic/twin/gather.h"
#include "systolic/twin/grid.h"
#include "systolic/twin/output.h"
#include "systolic/twin/vector_unit.h"

namespace triptych::mmu {

/// The machine's memories and registers. Programs must have passed check_program.
class Functional {
 public:
  Functional(const MachineConfig& config, std::span<std::byte> dram);

  void begin_program();
  void execute(const Instruction& instruction);
  /// Tells of the multiply-adds of a matmul that is to be executed next.
  void show(const Instruction& matmul, std::uint64_t start, std::size_t index,
            const PeWatcher& watcher);

  std::vector<std::uint16_t> buffer() const;
  std::vector<std::uint32_t> accumulators() const;

 private:
  void load(const Load& load);
  void load_weights(const WeightLoad& load);
  /// Where in the rows of PEs this stream begins.
  std::uint32_t first_lane(const Matmul& matmul) const;
  void matmul(const Matmul& matmul);
  void output_stationary(const Matmul& matmul);
  /// The first accumulator row that stands for the sums in the PEs.
  std::uint32_t own_sums() const { return config_.accumulator_rows; }
  void store(const Store& store);
  template <class Number>
  void store_positions(const Store& store, const Number* accumulators);
  template <class Element>
  void fill_buffer(const Load& load, std::vector<Element>& buffer);
  void fill_row(std::uint32_t row, std::uint32_t log2_group, const std::byte* elements);
  void multiply();
  template <class Element>
  void stream(const GridPart& part, const BufferView<Element>& buffer);
  void line_up_strips(const GridPart& part);
  void keep_tiles();

  const MachineConfig config_;
  std::span<std::byte> dram_;
  std::vector<std::uint16_t> buffer_bf16_;  ///< [row][lane]. The other PE kind's is empty
  std::vector<std::int8_t> buffer_int8_;
  Accumulators accumulators_;
  OutputUnit output_unit_;
  VectorUnit vector_unit_;
  std::deque<Tile> tiles_;
  Tile active_;
  MatmulGrid grid_;  ///< not computed yet. Nothing that it reads or writes has been touched since
  SetStream stream_;
  SetTaps taps_;
  StoreGeometry geometry_;
  std::uint32_t next_lane_ = 0;  ///< where the next transposed stream begins
  Activations activations_;
  std::vector<Vector> weights_;  ///< scratch of multiply(), as all below
  std::vector<Strip> strips_;
  std::uint32_t rows_ = 0;  ///< of the chains
};

}  // namespace triptych::mmu
