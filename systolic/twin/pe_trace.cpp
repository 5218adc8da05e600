// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/pe_trace.h"

#include <cstring>
#include <vector>

#include "systolic/isa/accesses.h"
#include "systolic/isa/schedule.h"
#include "systolic/twin/geometry.h"
#include "systolic/twin/numerics.h"

namespace triptych::mmu {
namespace {

double weight_at(const MatmulView& view, std::uint32_t row, std::uint32_t column) {
  const std::byte* weights = view.tile.row(row);
  if (view.machine.pe == PeKind::Int8)
    return static_cast<double>(static_cast<std::int8_t>(weights[column]));
  std::uint16_t bits = 0;
  std::memcpy(&bits, weights + std::size_t{column} * sizeof bits, sizeof bits);
  return from_bf16(bits);
}

double multiply_add(PeKind pe, double activation, double weight, double sum) {
  if (pe == PeKind::Bf16)
    return soft_fma(static_cast<float>(activation), static_cast<float>(weight),
                    static_cast<float>(sum));
  const auto wrapped = static_cast<std::uint32_t>(static_cast<std::int64_t>(sum)) +
                       static_cast<std::uint32_t>(static_cast<std::int64_t>(activation * weight));
  return static_cast<std::int32_t>(wrapped);
}

/// Positions and values of a stream, as far as it needs them.
struct Walks {
  std::vector<Position> positions;
  std::vector<Tap> taps;
};

Walks walks_of(const Matmul& matmul, const MatmulView& view) {
  const auto [position_count, value_count] = reads_of(matmul, view.tile.rows);
  Walks walks;
  PositionWalk positions(view.stream, matmul);
  for (std::uint32_t i = 0; i < position_count; ++i, positions.next())
    walks.positions.push_back(positions.position());
  TapWalk taps(view.taps, matmul, view.machine);
  for (std::uint32_t i = 0; i < value_count; ++i, taps.next()) walks.taps.push_back(taps.tap());
  return walks;
}

}  // namespace

void visit_pes(const Matmul& matmul, const MatmulView& view, std::uint64_t start,
               std::size_t instruction, const PeWatcher& watcher) {
  const Walks walks = walks_of(matmul, view);
  const auto activation = [&](const PeSlot& pe) {
    const auto slot = static_cast<std::uint32_t>(pe.slot);
    const Position& position = walks.positions[matmul.transpose ? pe.row : slot];
    const Tap& tap = walks.taps[matmul.transpose ? slot : pe.row];
    const std::uint32_t lane = matmul.transpose ? (view.lane + slot) % view.machine.rows : pe.row;
    const std::uint32_t buffer_row =
        (position.address + tap.offset) & (view.machine.buffer_rows - 1);
    return inside(view.stream, position, tap) ? view.element(buffer_row, lane) : 0.0;
  };
  for (std::uint32_t result = 0; result < matmul.count; ++result)
    for (std::uint32_t column = 0; column < view.tile.columns; ++column) {
      double sum = matmul.accumulate ? view.sum(view.first_sum + result, column) : 0.0;
      for (std::uint32_t link = 0; link < view.tile.rows; ++link) {
        // A chain stays in its PE, or goes down a column.
        const PeSlot pe =
            matmul.output_stationary ? PeSlot{link, result, column} : PeSlot{result, link, column};
        PeStep step{.cycle = pe_cycle(view.machine, start, pe),
                    .instruction = instruction,
                    .slot = static_cast<std::uint32_t>(pe.slot),
                    .row = pe.row,
                    .column = column,
                    .activation = activation(pe),
                    .weight = weight_at(view, link, column),
                    .sum_in = sum};
        step.sum_out = sum = multiply_add(view.machine.pe, step.activation, step.weight, sum);
        watcher(step);
      }
    }
}

}  // namespace triptych::mmu
