// Operators that only move values: copies between views.
// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_kernel.h"
#include "backends/systolic/lowering/vector_copy.h"
#include "core/ops/cast.h"
#include "core/ops/concat.h"
#include "core/ops/expand.h"
#include "core/ops/slice.h"
#include "core/ops/transpose.h"

namespace triptych::systolic {
namespace {

VectorTask copy_task(std::int64_t values, const mmu::MachineConfig& machine) {
  return {.blocks = 1, .rows = vector_rows_of(values, machine)};
}

struct ConcatPlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_vectors(query); }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const TensorSpec y = query.outputs[0].spec;
    std::vector<TensorSpec> specs;
    for (const Operand& operand : query.inputs) specs.push_back(operand.spec);
    const auto places = query.as<Concat>().views_in(dense_view(y.shape), specs);
    VectorTask task = copy_task(y.shape.elements(), machine);
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      for (std::size_t i = 0; i < specs.size(); ++i)
        copy_view(program, dense_view(specs[i].shape), at.inputs[i], places[i], at.outputs[0]);
    };
    return task;
  }
};

/// y is a view of x.
template <class ViewOp>
struct ViewPlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_vectors(query); }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const Shape y = query.outputs[0].spec.shape;
    const StridedView x = query.as<ViewOp>().view_of(dense_view(query.inputs[0].spec.shape));
    VectorTask task = copy_task(std::max<std::int64_t>(1, y.elements()) * machine.columns, machine);
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      copy_view(program, x, at.inputs[0], dense_view(y), at.outputs[0]);
    };
    return task;
  }
};

/// dx is 0 but for dy at the positions that the slice reads.
struct SliceGradientPlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_vectors(query); }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const Shape dx = query.outputs[0].spec.shape, dy = query.inputs[0].spec.shape;
    const StridedView place = query.as<SliceGradient>().forward().view_of(dense_view(dx));
    VectorTask task = copy_task(dx.elements(), machine);
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      const VectorBlock zeros = program.allocate();
      program.apply(mmu::VectorOperation::Fill, zeros, {}, 0.0F);
      for_each_tile(program, dx.elements(), [&](std::int64_t first, std::int64_t count) {
        program.store(zeros, count, program.lanes(),
                      at.outputs[0] + static_cast<std::uint64_t>(4 * first));
      });
      program.release(zeros);
      copy_view(program, dense_view(dy), at.inputs[0], place, at.outputs[0]);
    };
    return task;
  }
};

/// Conversions that the copies between the host's memory and DRAM make.
struct CastPlanner {
  static Verdict accepts(const KernelQuery& query) {
    const DType from = query.inputs[0].spec.dtype, to = query.outputs[0].spec.dtype;
    if (from != DType::F32 && to != DType::F32 && from != DType::Bool)
      return Verdict::no("float32 does not hold every integer");
    return accepts_converted(query);
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const Shape x = query.inputs[0].spec.shape;
    VectorTask task = copy_task(x.elements(), machine);
    task.converts = true;
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      copy_view(program, dense_view(x), at.inputs[0], dense_view(x), at.outputs[0]);
    };
    return task;
  }
};

}  // namespace

void add_views_kernels(KernelLists& lists) {
  lists.vector.push_back(vector_entry<ConcatPlanner>(Concat::kName));
  lists.vector.push_back(vector_entry<ViewPlanner<triptych::Slice>>(triptych::Slice::kName));
  lists.vector.push_back(vector_entry<ViewPlanner<Transpose>>(Transpose::kName));
  lists.vector.push_back(vector_entry<ViewPlanner<Expand>>(Expand::kName));
  lists.vector.push_back(vector_entry<SliceGradientPlanner>(SliceGradient::kName));
  lists.vector.push_back(vector_entry<CastPlanner>(Cast::kName));
}

}  // namespace triptych::systolic
