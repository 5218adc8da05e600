// Maxima and means of windows, and their gradients, on the vector unit. Adjacent 2 x 2 windows have
// programs of their own.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pool.h"

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_pool.h"
#include "backends/systolic/kernels/vector_windows.h"

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;

constexpr float kQuarter = 0.25F;  ///< a mean of a window is its sum times this, in every bit

bool is_two_by_two(const Window& w) {
  for (int axis = 0; axis < 2; ++axis) {
    if (w.kernel[axis] != 2 || w.stride[axis] != 2 || w.dilation[axis] != 1) return false;
    if (w.pad_begin[axis] != 0 || 2 * w.out[axis] > w.in[axis]) return false;
  }
  return true;
}

/// Every pixel is in a window.
bool covers_image(const Window& w) {
  return is_two_by_two(w) && w.in[0] == 2 * w.out[0] && w.in[1] == 2 * w.out[1];
}

std::int64_t planes_of(const Shape& x) { return x[0] * x[1]; }

template <class PoolOp>
WindowWalk walk_of(const KernelQuery& query) {
  const Shape& x = query.inputs[0].spec.shape;
  const Window w = query.as<PoolOp>().window(x);
  return {planes_of(x), w.in, w.out};
}

Verdict accepts(const KernelQuery& query, const Window& window) {
  const Verdict verdict = accepts_vectors(query);
  return verdict.accepted ? accepts_windows(window) : verdict;
}

/// Per window, the divisor of its mean.
template <class PoolOp>
std::vector<float> divisors_of(const PoolOp& op, const Window& w) {
  std::vector<float> divisors;
  for (std::int64_t row = 0; row < w.out[0]; ++row)
    for (std::int64_t column = 0; column < w.out[1]; ++column)
      divisors.push_back(
          static_cast<float>(average_pool_divisor(w, op.count_include_pad, row, column)));
  return divisors;
}

struct MaxPoolPlanner {
  static Verdict accepts(const KernelQuery& query) {
    const Shape& x = query.inputs[0].spec.shape;
    return systolic::accepts(query, query.as<MaxPool>().window(x));
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const Shape& x = query.inputs[0].spec.shape;
    const Window window = query.as<MaxPool>().window(x);
    if (!is_two_by_two(window)) return PooledPlanes(window, planes_of(x), machine).maxima();
    const WindowLanes lanes(machine.columns, false);
    const WindowWalk walk = walk_of<MaxPool>(query);
    return window_task(walk, lanes, 6, [=](VectorProgram& program, const auto& at, auto masks) {
      emit(program, at, walk, lanes, masks);
    });
  }

 private:
  static void emit(VectorProgram& program, const VectorAddresses& at, const WindowWalk& walk,
                   const WindowLanes& lanes, VectorBlock masks) {
    const VectorBlock top = program.allocate(), bottom = program.allocate();
    const VectorBlock next = program.allocate(), better = program.allocate();
    const VectorBlock scratch = program.allocate();
    const auto keep_larger = [&](VectorBlock largest, VectorBlock other) {
      outranks(program, other, largest, better, scratch);
      program.apply(VectorOperation::Select, largest, other, largest, better);
    };
    walk.for_each_tile(program, lanes.windows, [&](const WindowWalk::Tile& tile) {
      walk.load_large(program, at.inputs[0], tile, false, top);
      walk.load_large(program, at.inputs[0], tile, true, bottom);
      program.rotate(top, 1, next);
      keep_larger(top, next);
      keep_larger(top, bottom);
      program.rotate(bottom, 1, next);
      keep_larger(top, next);
      gather_even_lanes(program, lanes, masks, top, scratch);
      walk.store_small(program, top, at.outputs[0], tile);
    });
  }
};

struct MaxPoolGradientPlanner {
  static Verdict accepts(const KernelQuery& query) {
    const Shape& x = query.inputs[0].spec.shape;
    return systolic::accepts(query, query.as<MaxPoolGradient>().window(x));
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const Shape& x = query.inputs[0].spec.shape;
    const Window window = query.as<MaxPoolGradient>().window(x);
    if (!covers_image(window)) return PooledPlanes(window, planes_of(x), machine).maxima_gradient();
    const WindowLanes lanes(machine.columns, true);
    const WindowWalk walk = walk_of<MaxPoolGradient>(query);
    return window_task(walk, lanes, 10, [=](VectorProgram& program, const auto& at, auto masks) {
      emit(program, at, walk, lanes, masks);
    });
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

  static void emit(VectorProgram& program, const VectorAddresses& at, const WindowWalk& walk,
                   const WindowLanes& lanes, VectorBlock masks) {
    const Winners w{program.allocate(), program.allocate(), program.allocate(),
                    program.allocate(), program.allocate(), program.allocate()};
    const VectorBlock dy = program.allocate();
    const auto store = [&](VectorBlock even, VectorBlock odd, const WindowWalk::Tile& tile,
                           bool lower) {
      program.rotate(odd, lanes.columns - 1, w.scratch);
      program.apply(VectorOperation::Select, even, w.scratch, even, masks.repeat(lanes.steps));
      program.apply(VectorOperation::And, even, even, dy);
      walk.store_large(program, even, at.outputs[0], tile, lower);
    };
    walk.for_each_tile(program, lanes.windows, [&](const WindowWalk::Tile& tile) {
      walk.load_large(program, at.inputs[0], tile, false, w.top);
      walk.load_large(program, at.inputs[0], tile, true, w.bottom);
      walk.load_small(program, at.inputs[1], tile, dy);
      program.apply(VectorOperation::Add, dy, dy, 0.0F);
      spread_lanes(program, lanes, masks, dy, w.scratch);
      program.rotate(w.top, 1, w.right);
      program.rotate(w.bottom, 1, w.last);
      find_winners(program, w);
      store(w.top, w.right, tile, false);
      store(w.bottom, w.last, tile, true);
    });
  }
};

struct AveragePoolPlanner {
  static Verdict accepts(const KernelQuery& query) {
    const Shape& x = query.inputs[0].spec.shape;
    return systolic::accepts(query, query.as<AveragePool>().window(x));
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const auto& op = query.as<AveragePool>();
    const Shape& x = query.inputs[0].spec.shape;
    const Window window = op.window(x);
    if (is_two_by_two(window)) return window_sums(walk_of<AveragePool>(query), kQuarter, machine);
    return PooledPlanes(window, planes_of(x), machine).means(divisors_of(op, window));
  }
};

struct AveragePoolGradientPlanner {
  static Verdict accepts(const KernelQuery& query) {
    return systolic::accepts(query, query.as<AveragePoolGradient>().window());
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const auto& op = query.as<AveragePoolGradient>();
    const std::int64_t planes = planes_of(query.inputs[0].spec.shape);
    const Window window = op.window();
    if (covers_image(window))
      return spread_windows({planes, window.in, window.out}, kQuarter, machine);
    return PooledPlanes(window, planes, machine).means_gradient(divisors_of(op, window));
  }
};

}  // namespace

void add_pool_kernels(KernelLists& lists) {
  lists.vector.push_back(vector_entry<MaxPoolPlanner>(MaxPool::kName));
  lists.vector.push_back(vector_entry<MaxPoolGradientPlanner>(MaxPoolGradient::kName));
  lists.vector.push_back(vector_entry<AveragePoolPlanner>(AveragePool::kName));
  lists.vector.push_back(vector_entry<AveragePoolGradientPlanner>(AveragePoolGradient::kName));
}

}  // namespace triptych::systolic
