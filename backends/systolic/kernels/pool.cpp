// Maxima of adjacent 2 x 2 windows, and their gradient, on the vector unit. The pixels of a window
// are in two neighbouring lanes of two rows. Lane masks move every second lane to the front, or
// back.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pool.h"

#include <algorithm>
#include <array>
#include <bit>

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_kernel.h"

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;

bool is_two_by_two(const Window& w) {
  for (int axis = 0; axis < 2; ++axis) {
    if (w.kernel[axis] != 2 || w.stride[axis] != 2 || w.dilation[axis] != 1) return false;
    if (w.pad_begin[axis] != 0 || 2 * w.out[axis] > w.in[axis]) return false;
  }
  return true;
}

/// Windows of one vector row, and the rows that select lanes: for each power of two below it, those
/// that a value reaches when it moves so many lanes, and at last the odd lanes.
struct PoolLanes {
  std::uint32_t columns, windows, steps;
  bool spreads;  ///< values move from lane i to lane 2 i, otherwise from there to i

  PoolLanes(std::uint32_t lanes, bool spread)
      : columns(lanes),
        windows(lanes / 2),
        steps(static_cast<std::uint32_t>(std::bit_width(windows - 1))),
        spreads(spread) {}

  std::int64_t parameters() const { return std::int64_t{steps + 1} * columns; }

  /// Value i moves by the bits of i, the lowest first, or back in the other order.
  void fill_masks(float* masks) const {
    std::fill_n(masks, parameters(), 0.0F);
    constexpr auto all = std::bit_cast<float>(~0U);
    for (std::uint32_t step = 0; step < steps; ++step)
      for (std::uint32_t i = 0, bit = 1U << step; i < windows; ++i) {
        const std::uint32_t lane = 2 * i - i % (spreads ? bit : 2 * bit);
        if ((i & bit) != 0) masks[step * columns + lane] = all;
      }
    for (std::uint32_t lane = 1; lane < columns; lane += 2) masks[steps * columns + lane] = all;
  }
};

/// The masks, a row each.
VectorBlock load_masks(VectorProgram& program, const PoolLanes& lanes, std::uint64_t address) {
  const VectorBlock masks = program.allocate(lanes.steps + 1);
  program.load(address, lanes.parameters(), lanes.columns, masks);
  return masks;
}

void gather_even_lanes(VectorProgram& program, const PoolLanes& lanes, VectorBlock masks,
                       VectorBlock x, VectorBlock scratch) {
  for (std::uint32_t step = 0; step < lanes.steps; ++step) {
    program.rotate(x, 1U << step, scratch);
    program.apply(VectorOperation::Select, x, scratch, x, masks.repeat(step));
  }
}

/// Lanes 2 i and 2 i + 1 get lane i.
void spread_lanes(VectorProgram& program, const PoolLanes& lanes, VectorBlock masks, VectorBlock x,
                  VectorBlock scratch) {
  const auto move = [&](std::uint32_t distance, std::uint32_t mask) {
    program.rotate(x, lanes.columns - distance, scratch);
    program.apply(VectorOperation::Select, x, scratch, x, masks.repeat(mask));
  };
  for (std::uint32_t step = lanes.steps; step-- > 0;) move(1U << step, step);
  move(1, lanes.steps);
}

/// result: all bits 1 where a is above b, or a NaN (core/base/reduction.h).
void outranks(VectorProgram& program, VectorBlock a, VectorBlock b, VectorBlock result,
              VectorBlock scratch) {
  program.apply(VectorOperation::Greater, result, a, b);
  program.apply(VectorOperation::Equal, scratch, a, a);
  program.apply(VectorOperation::Xor, scratch, scratch, VectorOperand::bits(~0U));
  program.apply(VectorOperation::Or, result, result, scratch);
}

/// Rows of windows of all planes. Planes of an even height are one.
struct PoolWalk {
  Window window;
  std::int64_t planes;

  PoolWalk(const Window& w, const Shape& x) : window(w), planes(x[0] * x[1]) {}

  std::int64_t rows() const { return planes * window.out[0]; }

  /// Calls body(rows, lanes, byte of the first window in x, in y) for tiles of windows.
  template <class Body>
  void for_each_tile(VectorProgram& program, std::int64_t windows, const Body& body) const {
    const bool joined = window.in[0] == 2 * window.out[0];
    const std::int64_t height = joined ? rows() : window.out[0];
    for (std::int64_t plane = 0; plane < (joined ? 1 : planes); ++plane)
      for (std::int64_t column = 0; column < window.out[1]; column += windows)
        for (std::int64_t row = 0; row < height; row += program.block_rows()) {
          const auto count = std::min<std::int64_t>(program.block_rows(), height - row);
          const auto width = std::min(windows, window.out[1] - column);
          const auto x = (plane * window.in[0] + 2 * row) * window.in[1] + 2 * column;
          const auto y = (plane * window.out[0] + row) * window.out[1] + column;
          program.use_rows(static_cast<std::uint32_t>(count));
          body(static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(width),
               static_cast<std::uint64_t>(4 * x), static_cast<std::uint64_t>(4 * y));
        }
  }
  std::int64_t row_bytes() const { return 4 * window.in[1]; }
  std::int64_t result_bytes() const { return 4 * window.out[1]; }
};

template <class PoolOp>
VectorTask pool_task(const KernelQuery& query, std::uint32_t blocks, const PoolLanes& lanes,
                     void (*emit)(VectorProgram&, const VectorAddresses&, const PoolWalk&,
                                  const PoolLanes&)) {
  const Shape& x = query.inputs[0].spec.shape;
  const PoolWalk walk(query.as<PoolOp>().window(x), x);
  VectorTask task = {.blocks = blocks, .single_rows = lanes.steps + 1, .rows = walk.rows()};
  task.parameters = lanes.parameters();
  task.begin = [lanes](const KernelArgs&, float* masks) { lanes.fill_masks(masks); };
  task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
    emit(program, at, walk, lanes);
  };
  return task;
}

struct MaxPoolPlanner {
  static Verdict accepts(const KernelQuery& query) {
    if (!is_two_by_two(query.as<MaxPool>().window(query.inputs[0].spec.shape)))
      return Verdict::no("the vector unit pools adjacent 2 x 2 windows");
    return accepts_vectors(query);
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    return pool_task<MaxPool>(query, 6, PoolLanes(machine.columns, false), &emit);
  }

 private:
  static void emit(VectorProgram& program, const VectorAddresses& at, const PoolWalk& walk,
                   const PoolLanes& lanes) {
    const VectorBlock masks = load_masks(program, lanes, at.parameters);
    const VectorBlock top = program.allocate(), bottom = program.allocate();
    const VectorBlock next = program.allocate(), better = program.allocate();
    const VectorBlock scratch = program.allocate();
    const auto keep_larger = [&](VectorBlock largest, VectorBlock other) {
      outranks(program, other, largest, better, scratch);
      program.apply(VectorOperation::Select, largest, other, largest, better);
    };
    walk.for_each_tile(program, lanes.windows, [&](auto rows, auto width, auto x, auto y) {
      program.load_rows(at.inputs[0] + x, 2 * walk.row_bytes(), rows, 2 * width, top);
      program.load_rows(at.inputs[0] + x + static_cast<std::uint64_t>(walk.row_bytes()),
                        2 * walk.row_bytes(), rows, 2 * width, bottom);
      program.rotate(top, 1, next);
      keep_larger(top, next);
      keep_larger(top, bottom);
      program.rotate(bottom, 1, next);
      keep_larger(top, next);
      gather_even_lanes(program, lanes, masks, top, scratch);
      program.store_rows(top, rows, width, at.outputs[0] + y, walk.result_bytes());
    });
  }
};

struct MaxPoolGradientPlanner {
  static Verdict accepts(const KernelQuery& query) {
    const Window window = query.as<MaxPoolGradient>().window(query.inputs[0].spec.shape);
    if (!is_two_by_two(window) || window.in[0] != 2 * window.out[0] ||
        window.in[1] != 2 * window.out[1])
      return Verdict::no("the vector unit pools adjacent 2 x 2 windows of even images");
    return accepts_vectors(query);
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    return pool_task<MaxPoolGradient>(query, 10, PoolLanes(machine.columns, true), &emit);
  }

 private:
  /// Where each of a window's pixels has the gradient, in the even lanes, from the first to the
  /// last. Blocks top, right, bottom and last hold the pixels before.
  struct Winners {
    VectorBlock top, right, bottom, last, scratch, found;
  };

  /// Turns the pixels into masks: a later pixel wins where it outranks the largest so far.
  static void find_winners(VectorProgram& program, const Winners& w) {
    const VectorBlock largest = w.top;
    for (const VectorBlock pixel : {w.right, w.bottom, w.last}) {
      outranks(program, pixel, largest, w.found, w.scratch);
      program.apply(VectorOperation::Select, largest, pixel, largest, w.found);
      program.apply(VectorOperation::Move, pixel, w.found);
    }
    const auto without = [&](VectorBlock mask, VectorBlock later) {
      program.apply(VectorOperation::Xor, w.scratch, later, VectorOperand::bits(~0U));
      program.apply(VectorOperation::And, mask, mask, w.scratch);
    };
    without(w.bottom, w.last);
    without(w.right, w.last);
    without(w.right, w.bottom);
    program.apply(VectorOperation::Or, w.top, w.right, w.bottom);
    program.apply(VectorOperation::Or, w.top, w.top, w.last);
    program.apply(VectorOperation::Xor, w.top, w.top, VectorOperand::bits(~0U));
  }

  static void emit(VectorProgram& program, const VectorAddresses& at, const PoolWalk& walk,
                   const PoolLanes& lanes) {
    const VectorBlock masks = load_masks(program, lanes, at.parameters);
    const Winners w{program.allocate(), program.allocate(), program.allocate(),
                    program.allocate(), program.allocate(), program.allocate()};
    const VectorBlock dy = program.allocate();
    const auto below = static_cast<std::uint64_t>(walk.row_bytes());
    const auto store = [&](VectorBlock even, VectorBlock odd, std::uint32_t rows,
                           std::uint32_t width, std::uint64_t address) {
      program.rotate(odd, lanes.columns - 1, w.scratch);
      program.apply(VectorOperation::Select, even, w.scratch, even, masks.repeat(lanes.steps));
      program.apply(VectorOperation::And, even, even, dy);
      program.store_rows(even, rows, 2 * width, address, 2 * walk.row_bytes());
    };
    walk.for_each_tile(program, lanes.windows, [&](auto rows, auto width, auto x, auto y) {
      program.load_rows(at.inputs[0] + x, 2 * walk.row_bytes(), rows, 2 * width, w.top);
      program.load_rows(at.inputs[0] + x + below, 2 * walk.row_bytes(), rows, 2 * width, w.bottom);
      program.load_rows(at.inputs[1] + y, walk.result_bytes(), rows, width, dy);
      program.apply(VectorOperation::Add, dy, dy, 0.0F);
      spread_lanes(program, lanes, masks, dy, w.scratch);
      program.rotate(w.top, 1, w.right);
      program.rotate(w.bottom, 1, w.last);
      find_winners(program, w);
      store(w.top, w.right, rows, width, at.outputs[0] + x);
      store(w.bottom, w.last, rows, width, at.outputs[0] + x + below);
    });
  }
};

}  // namespace

void add_pool_kernels(KernelLists& lists) {
  lists.vector.push_back(vector_entry<MaxPoolPlanner>(MaxPool::kName));
  lists.vector.push_back(vector_entry<MaxPoolGradientPlanner>(MaxPoolGradient::kName));
}

}  // namespace triptych::systolic
