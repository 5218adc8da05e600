// Operators that move values: copies between views, padding and conversions.
// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_taps.h"
#include "backends/systolic/lowering/vector_copy.h"
#include "core/ops/cast.h"
#include "core/ops/concat.h"
#include "core/ops/expand.h"
#include "core/ops/pad.h"
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

/// y holds one number, but for a part of x.
VectorTask fill_task(const Shape& y, float number, const StridedView& from, const StridedView& to,
                     const mmu::MachineConfig& machine) {
  VectorTask task = copy_task(y.elements(), machine);
  task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
    const VectorBlock numbers = program.allocate();
    program.apply(mmu::VectorOperation::Fill, numbers, {}, number);
    for_each_tile(program, y.elements(), [&](std::int64_t first, std::int64_t count) {
      program.store(numbers, count, program.lanes(),
                    at.outputs[0] + static_cast<std::uint64_t>(4 * first));
    });
    program.release(numbers);
    copy_view(program, from, at.inputs[0], to, at.outputs[0]);
  };
  return task;
}

struct SliceGradientPlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_vectors(query); }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const Shape& dx = query.outputs[0].spec.shape;
    const StridedView place = query.as<SliceGradient>().forward().view_of(dense_view(dx));
    return fill_task(dx, 0, dense_view(query.inputs[0].spec.shape), place, machine);
  }
};

/// Reflection and edge are copies of each element's source.
struct PadPlanner {
  static Verdict accepts(const KernelQuery& query) {
    if (query.as<Pad>().mode == "constant") return accepts_vectors(query);
    return accepts_taps(query, taps(query));
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const auto& op = query.as<Pad>();
    const Shape &x = query.inputs[0].spec.shape, &y = query.outputs[0].spec.shape;
    if (op.mode != "constant") return tap_task(taps(query), x, y, true, machine);
    const PadInterior interior = pad_interior(op, dense_view(x), dense_view(y));
    return fill_task(y, op.value, interior.in_x, interior.in_y, machine);
  }

 private:
  static std::vector<AxisTaps> taps(const KernelQuery& query) {
    std::vector<AxisTaps> taps;
    for (const Dims& sources : pad_sources(query.as<Pad>(), query.inputs[0].spec.shape))
      taps.push_back(copy_taps(sources));
    return taps;
  }
};

struct PadGradientPlanner {
  static Verdict accepts(const KernelQuery& query) {
    return accepts_taps(query, query.as<PadGradient>().taps());
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    return tap_task(query.as<PadGradient>().taps(), query.inputs[0].spec.shape,
                    query.outputs[0].spec.shape, false, machine);
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
  lists.vector.push_back(vector_entry<PadPlanner>(Pad::kName));
  lists.vector.push_back(vector_entry<PadGradientPlanner>(PadGradient::kName));
  lists.vector.push_back(vector_entry<CastPlanner>(Cast::kName));
}

}  // namespace triptych::systolic
