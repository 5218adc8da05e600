// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/vector_windows.h"

#include <bit>

namespace triptych::systolic {

using mmu::VectorOperation;

WindowLanes::WindowLanes(std::uint32_t lanes, bool spread)
    : columns(lanes),
      windows(lanes / 2),
      steps(static_cast<std::uint32_t>(std::bit_width(windows - 1))),
      spreads(spread) {}

/// Value i moves by the bits of i, the lowest first, or back in the other order.
void WindowLanes::fill_masks(float* masks) const {
  std::fill_n(masks, parameters(), 0.0F);
  constexpr auto all = std::bit_cast<float>(~0U);
  for (std::uint32_t step = 0; step < steps; ++step)
    for (std::uint32_t i = 0, bit = 1U << step; i < windows; ++i) {
      const std::uint32_t lane = 2 * i - i % (spreads ? bit : 2 * bit);
      if ((i & bit) != 0) masks[step * columns + lane] = all;
    }
  for (std::uint32_t lane = 1; lane < columns; lane += 2) masks[steps * columns + lane] = all;
}

VectorBlock load_masks(VectorProgram& program, const WindowLanes& lanes, std::uint64_t address) {
  const VectorBlock masks = program.allocate(lanes.steps + 1);
  program.load(address, lanes.parameters(), lanes.columns, masks);
  return masks;
}

void gather_even_lanes(VectorProgram& program, const WindowLanes& lanes, VectorBlock masks,
                       VectorBlock x, VectorBlock scratch) {
  for (std::uint32_t step = 0; step < lanes.steps; ++step) {
    program.rotate(x, 1U << step, scratch);
    program.apply(VectorOperation::Select, x, scratch, x, masks.repeat(step));
  }
}

void spread_lanes(VectorProgram& program, const WindowLanes& lanes, VectorBlock masks,
                  VectorBlock x, VectorBlock scratch) {
  const auto move = [&](std::uint32_t distance, std::uint32_t mask) {
    program.rotate(x, lanes.columns - distance, scratch);
    program.apply(VectorOperation::Select, x, scratch, x, masks.repeat(mask));
  };
  for (std::uint32_t step = lanes.steps; step-- > 0;) move(1U << step, step);
  move(1, lanes.steps);
}

void WindowWalk::for_each_tile(VectorProgram& program, std::int64_t windows,
                               const std::function<void(const Tile& tile)>& body) const {
  const bool joined = large_[0] == 2 * small_[0];  // planes are one below the other
  const std::int64_t height = joined ? rows() : small_[0];
  for (std::int64_t plane = 0; plane < (joined ? 1 : planes_); ++plane)
    for (std::int64_t column = 0; column < small_[1]; column += windows)
      for (std::int64_t row = 0; row < height; row += program.block_rows()) {
        const auto count = std::min<std::int64_t>(program.block_rows(), height - row);
        const auto width = std::min(windows, small_[1] - column);
        const auto large = (plane * large_[0] + 2 * row) * large_[1] + 2 * column;
        const auto small = (plane * small_[0] + row) * small_[1] + column;
        program.use_rows(static_cast<std::uint32_t>(count));
        body({static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(width),
              static_cast<std::uint64_t>(4 * large), static_cast<std::uint64_t>(4 * small)});
      }
}

void WindowWalk::load_large(VectorProgram& program, std::uint64_t image, const Tile& tile,
                            bool lower, VectorBlock to) const {
  program.load_rows(large_at(image, tile, lower), 8 * large_[1], tile.rows, 2 * tile.width, to);
}
void WindowWalk::store_large(VectorProgram& program, VectorBlock from, std::uint64_t image,
                             const Tile& tile, bool lower) const {
  program.store_rows(from, tile.rows, 2 * tile.width, large_at(image, tile, lower), 8 * large_[1]);
}
void WindowWalk::load_small(VectorProgram& program, std::uint64_t image, const Tile& tile,
                            VectorBlock to) const {
  program.load_rows(image + tile.small, 4 * small_[1], tile.rows, tile.width, to);
}
void WindowWalk::store_small(VectorProgram& program, VectorBlock from, std::uint64_t image,
                             const Tile& tile) const {
  program.store_rows(from, tile.rows, tile.width, image + tile.small, 4 * small_[1]);
}

void outranks(VectorProgram& program, VectorBlock a, VectorBlock b, VectorBlock result,
              VectorBlock scratch) {
  program.apply(VectorOperation::Greater, result, a, b);
  program.apply(VectorOperation::Equal, scratch, a, a);
  program.apply(VectorOperation::Xor, scratch, scratch, VectorOperand::bits(~0U));
  program.apply(VectorOperation::Or, result, result, scratch);
}

VectorTask window_task(const WindowWalk& walk, const WindowLanes& lanes, std::uint32_t blocks,
                       const EmitWindows& emit) {
  VectorTask task = {.blocks = blocks, .single_rows = lanes.steps + 1, .rows = walk.rows()};
  task.parameters = lanes.parameters();
  task.begin = [lanes](const KernelArgs&, float* masks) { lanes.fill_masks(masks); };
  task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
    emit(program, at, load_masks(program, lanes, at.parameters));
  };
  return task;
}

VectorTask window_sums(const WindowWalk& walk, float factor, const mmu::MachineConfig& machine) {
  const WindowLanes lanes(machine.columns, false);
  return window_task(walk, lanes, 3, [=](VectorProgram& program, const auto& at, auto masks) {
    const VectorBlock sum = program.allocate(), below = program.allocate();
    const VectorBlock next = program.allocate();
    const auto add = [&](VectorBlock value) {
      program.apply(VectorOperation::Add, sum, sum, value);
    };
    walk.for_each_tile(program, lanes.windows, [&](const WindowWalk::Tile& tile) {
      walk.load_large(program, at.inputs[0], tile, false, sum);
      walk.load_large(program, at.inputs[0], tile, true, below);
      program.rotate(sum, 1, next);
      program.apply(VectorOperation::Add, sum, sum, 0.0F);
      add(next);
      add(below);
      program.rotate(below, 1, next);
      add(next);
      gather_even_lanes(program, lanes, masks, sum, next);
      if (factor != 1) program.apply(VectorOperation::Multiply, sum, sum, factor);
      walk.store_small(program, sum, at.outputs[0], tile);
    });
  });
}

VectorTask spread_windows(const WindowWalk& walk, float factor, const mmu::MachineConfig& machine) {
  const WindowLanes lanes(machine.columns, true);
  return window_task(walk, lanes, 2, [=](VectorProgram& program, const auto& at, auto masks) {
    const VectorBlock value = program.allocate(), scratch = program.allocate();
    walk.for_each_tile(program, lanes.windows, [&](const WindowWalk::Tile& tile) {
      walk.load_small(program, at.inputs[0], tile, value);
      if (factor != 1) {
        program.apply(VectorOperation::Multiply, value, value, factor);
        program.apply(VectorOperation::Add, value, value, 0.0F);
      }
      spread_lanes(program, lanes, masks, value, scratch);
      for (const bool lower : {false, true})
        walk.store_large(program, value, at.outputs[0], tile, lower);
    });
  });
}

}  // namespace triptych::systolic
