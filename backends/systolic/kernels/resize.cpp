// Nearest neighbours at twice the height and width, and the gradient, on the vector unit.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/resize.h"

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_windows.h"

namespace triptych::systolic {
namespace {

/// Every pixel of the last two axes becomes a window of 2 x 2 copies.
bool doubles_images(const Resize& op, const Shape& x) {
  if (op.mode != "nearest" || x.rank() < 2) return false;
  const auto sources = nearest_sources(op, x);
  for (std::size_t axis = 0; axis < sources.size(); ++axis) {
    const std::int64_t factor = axis + 2 < sources.size() ? 1 : 2;
    if (std::ssize(sources[axis]) != factor * x.dims()[axis]) return false;
    for (std::int64_t i = 0; i < std::ssize(sources[axis]); ++i)
      if (sources[axis][static_cast<std::size_t>(i)] != i / factor) return false;
  }
  return true;
}

/// x is the small image.
WindowWalk walk_of(const Shape& x) {
  const std::int64_t height = x[x.rank() - 2], width = x[x.rank() - 1];
  return {x.elements_between(0, x.rank() - 2), {2 * height, 2 * width}, {height, width}};
}

Verdict accepts(const KernelQuery& query, const Resize& op, const Shape& x) {
  if (!doubles_images(op, x))
    return Verdict::no("the vector unit doubles images by their nearest pixels");
  return accepts_vectors(query);
}

struct ResizePlanner {
  static Verdict accepts(const KernelQuery& query) {
    return systolic::accepts(query, query.as<Resize>(), query.inputs[0].spec.shape);
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    return spread_windows(walk_of(query.inputs[0].spec.shape), 1, machine);
  }
};

struct ResizeGradientPlanner {
  static Verdict accepts(const KernelQuery& query) {
    const auto& op = query.as<ResizeGradient>();
    return systolic::accepts(query, op.forward(), Shape(op.input_shape));
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    return window_sums(walk_of(query.outputs[0].spec.shape), 1, machine);
  }
};

}  // namespace

void add_resize_kernels(KernelLists& lists) {
  lists.vector.push_back(vector_entry<ResizePlanner>(Resize::kName));
  lists.vector.push_back(vector_entry<ResizeGradientPlanner>(ResizeGradient::kName));
}

}  // namespace triptych::systolic
