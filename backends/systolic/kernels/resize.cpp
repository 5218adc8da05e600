// Interpolation, padding and their gradients on the vector unit. Images that double by their
// nearest pixels have programs of their own.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/resize.h"

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_taps.h"
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

struct ResizePlanner {
  static Verdict accepts(const KernelQuery& query) {
    return accepts_taps(query, resize_taps(query.as<Resize>(), query.inputs[0].spec.shape));
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const auto& op = query.as<Resize>();
    const Shape& x = query.inputs[0].spec.shape;
    if (doubles_images(op, x)) return spread_windows(walk_of(x), 1, machine);
    return tap_task(resize_taps(op, x), x, query.outputs[0].spec.shape, op.mode == "nearest",
                    machine);
  }
};

struct ResizeGradientPlanner {
  static Verdict accepts(const KernelQuery& query) {
    return accepts_taps(query, query.as<ResizeGradient>().taps());
  }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const auto& op = query.as<ResizeGradient>();
    const Shape& dx = query.outputs[0].spec.shape;
    if (doubles_images(op.forward(), dx)) return window_sums(walk_of(dx), 1, machine);
    return tap_task(op.taps(), query.inputs[0].spec.shape, dx, false, machine);
  }
};

}  // namespace

void add_resize_kernels(KernelLists& lists) {
  lists.vector.push_back(vector_entry<ResizePlanner>(Resize::kName));
  lists.vector.push_back(vector_entry<ResizeGradientPlanner>(ResizeGradient::kName));
}

}  // namespace triptych::systolic
