// Optimiser steps on the vector unit. The host counts the steps, and computes in float64 what an
// update needs of the step's number.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/optimizers.h"

#include <algorithm>
#include <array>

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_kernel.h"
#include "core/ops/scalar_math.h"

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;

void count_step(const KernelArgs& args) {
  *args.out<std::int64_t>(0) = *args.in<std::int64_t>(1) + 1;
}

/// Refuses what accepts_vectors does, the step's number aside.
Verdict accepts_update(const KernelQuery& query) {
  std::vector<Operand> inputs(query.inputs.begin(), query.inputs.end());
  inputs.erase(inputs.begin() + 1);
  return accepts_vectors({query.op, inputs, query.outputs.subspan(1), query.contract,
                          query.constants, query.collectives});
}

/// The tensors of one parameter, in DRAM. Group i of the inputs and of the outputs.
struct UpdateWalk {
  std::vector<std::int64_t> values;  ///< of each parameter

  explicit UpdateWalk(const KernelQuery& query, int parameters) {
    for (int p = 0; p < parameters; ++p)
      values.push_back(query.inputs[2 + static_cast<std::size_t>(p)].spec.shape.elements());
  }
  std::int64_t most() const { return values.empty() ? 1 : std::ranges::max(values); }

  /// Loads a tile of `operands.size()` groups, calls update(), and stores `results`.
  template <class Update>
  void run(VectorProgram& program, const VectorAddresses& at, std::span<const VectorBlock> operands,
           std::span<const VectorBlock> results, const Update& update) const {
    for (std::size_t p = 0; p < values.size(); ++p)
      for_each_tile(program, values[p], [&](std::int64_t first, std::int64_t count) {
        const auto offset = static_cast<std::uint64_t>(4 * first);
        for (std::size_t i = 0; i < operands.size(); ++i)
          program.load(at.inputs[2 + i * values.size() + p] + offset, count, program.lanes(),
                       operands[i]);
        update();
        for (std::size_t i = 0; i < results.size(); ++i)
          program.store(results[i], count, program.lanes(),
                        at.outputs[1 + i * values.size() + p] + offset);
      });
  }
};

/// Every lane of row i becomes parameter i of the run.
VectorBlock load_parameters(VectorProgram& program, const VectorAddresses& at,
                            std::uint32_t count) {
  const VectorBlock rows = program.allocate(count);
  program.use_rows(count);
  program.load_rows(at.parameters, 4, count, 1, rows);
  program.broadcast(rows, rows);
  return rows;
}

struct SgdPlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_update(query); }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const SgdUpdate op = query.as<SgdUpdate>();
    const UpdateWalk walk(query, op.parameter_count(static_cast<int>(query.inputs.size())));
    VectorTask task = {.blocks = 4, .single_rows = 4, .rows = vector_rows_of(walk.most(), machine)};
    task.parameters = 2;  // the rate, negated, and a number above 0 behind step 0
    task.begin = [](const KernelArgs& args, float* parameters) {
      const bool first = *args.in<std::int64_t>(1) == 0;
      parameters[0] = -*args.in<float>(0);
      parameters[1] = first ? 0.0F : 1.0F;
      count_step(args);
    };
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      emit(program, at, op, walk);
    };
    return task;
  }

 private:
  static void emit(VectorProgram& program, const VectorAddresses& at, const SgdUpdate& op,
                   const UpdateWalk& walk) {
    const VectorBlock parameters = load_parameters(program, at, 2);
    const VectorBlock later = program.allocate(1);  // all bits 1 behind step 0
    program.use_rows(1);
    program.apply(VectorOperation::Greater, later, parameters.repeat(1), 0.0F);
    const VectorBlock p = program.allocate(), g = program.allocate(), v = program.allocate();
    const VectorBlock moved = program.allocate();
    const bool remembers = op.momentum != 0;
    std::vector<VectorBlock> operands = {p, g}, results = {p};
    if (remembers) {
      operands.push_back(v);
      results.push_back(v);
    }
    walk.run(program, at, operands, results, [&] {
      program.fma(g, p, op.weight_decay, g);
      const VectorOperand before = remembers ? VectorOperand(v) : VectorOperand(0.0F);
      program.fma(moved, before, op.momentum, g);
      program.apply(VectorOperation::Select, v, moved, g, later.repeat());
      VectorBlock direction = v;
      if (op.nesterov) {
        program.fma(g, v, op.momentum, g);
        direction = g;
      }
      program.fma(p, direction, parameters.repeat(0), p);
    });
  }
};

struct AdamPlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_update(query); }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const AdamUpdate op = query.as<AdamUpdate>();
    const UpdateWalk walk(query, op.parameter_count(static_cast<int>(query.inputs.size())));
    VectorTask task = {
        .blocks = 13, .single_rows = 24, .rows = vector_rows_of(walk.most(), machine)};
    task.parameters = 3;
    task.begin = [op](const KernelArgs& args, float* parameters) {
      scalar::Adam adam = {.beta1 = op.beta1, .beta2 = op.beta2};
      adam.begin_step(*args.in<float>(0), *args.in<std::int64_t>(1));
      parameters[0] = adam.step_size;
      parameters[1] = adam.root_correction;
      parameters[2] = op.decoupled ? -adam.learning_rate * op.weight_decay : 0.0F;
      count_step(args);
    };
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      emit(program, at, op, walk);
    };
    return task;
  }

 private:
  static void emit(VectorProgram& program, const VectorAddresses& at, const AdamUpdate& op,
                   const UpdateWalk& walk) {
    const VectorBlock parameters = load_parameters(program, at, 3);
    const std::uint32_t rows = program.block_rows();
    program.resize_blocks(1);
    const VectorDivisor one_root = program.prepare(parameters.repeat(1));
    program.resize_blocks(rows);
    const VectorDivisor root_correction = {one_root.minus_significand.repeat(),
                                           one_root.reciprocal.repeat(), one_root.exponent.repeat(),
                                           one_root.normal.repeat()};
    const VectorBlock p = program.allocate(), g = program.allocate();
    const VectorBlock m = program.allocate(), v = program.allocate();
    const VectorBlock t = program.allocate(), u = program.allocate();
    walk.run(program, at, std::array{p, g, m, v}, std::array{p, m, v}, [&] {
      program.fma(g, p, op.decoupled ? 0.0F : op.weight_decay, g);
      program.fma(p, p, parameters.repeat(2), p);
      program.apply(VectorOperation::Multiply, t, g, 1.0F - op.beta1);
      program.fma(m, m, op.beta1, t);
      program.apply(VectorOperation::Multiply, t, g, 1.0F - op.beta2);
      program.apply(VectorOperation::Multiply, t, t, g);
      program.fma(v, v, op.beta2, t);
      program.square_root(v, t);
      program.divide(t, root_correction, u);
      program.apply(VectorOperation::Add, u, u, op.epsilon);
      const VectorDivisor deviation = program.prepare(u);
      program.divide(m, deviation, t);
      program.release(deviation);
      program.apply(VectorOperation::Multiply, t, t, parameters.repeat(0));
      program.apply(VectorOperation::Subtract, p, p, t);
    });
  }
};

}  // namespace

void add_optimizers_kernels(KernelLists& lists) {
  lists.vector.push_back(vector_entry<SgdPlanner>(SgdUpdate::kName));
  lists.vector.push_back(vector_entry<AdamPlanner>(AdamUpdate::kName));
}

}  // namespace triptych::systolic
