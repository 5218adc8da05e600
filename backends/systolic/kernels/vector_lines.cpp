// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/vector_lines.h"

#include <algorithm>
#include <bit>

#include "backends/systolic/lowering/vector_copy.h"
#include "core/base/reduction.h"

namespace triptych::systolic {
namespace {

/// [elements, outer, inner]: the order of the copy that gathers lines.
StridedView gathered_view(const AxisLines& lines) {
  const StridedView tensor = dense_view(Shape{lines.outer, lines.count, lines.inner});
  return transposed_view(tensor, Dims{1, 0, 2});
}

/// The tree by recursion. Only one row of blocks per level waits for its neighbour.
class LineFold {
 public:
  LineFold(VectorProgram& program, std::int64_t elements, const LineElement& element,
           const LineCombination& combine)
      : program_(program), elements_(elements), element_(element), combine_(combine) {}

  /// Blocks of the tree from `block` on.
  void blocks(std::int64_t block, std::int64_t count, VectorBlock y) const {
    if (count == 1) return lanes(block * kReductionBlock, 0, 1, y);
    const auto left =
        static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)) / 2);
    blocks(block, left, y);
    add([&](VectorBlock right) { blocks(block + left, count - left, right); }, y);
  }

 private:
  template <class Emit>
  void add(const Emit& emit, VectorBlock y) const {
    const VectorBlock right = program_.allocate();
    emit(right);
    combine_(y, right);
    program_.release(right);
  }

  /// Lanes `lane`, `lane` + `step`, ... of the block that begins at element `first`, folded.
  void lanes(std::int64_t first, std::int64_t lane, std::int64_t step, VectorBlock y) const {
    const std::int64_t count = std::min(kReductionBlock, elements_ - first);
    if (step == kReductionLanes) {
      element_(first + lane, y);
      for (auto i = lane + kReductionLanes; i < count; i += kReductionLanes)
        add([&](VectorBlock term) { element_(first + i, term); }, y);
      return;
    }
    lanes(first, lane, 2 * step, y);
    if (lane + step < count)
      add([&](VectorBlock right) { lanes(first, lane + step, 2 * step, right); }, y);
  }

  VectorProgram& program_;
  std::int64_t elements_;
  const LineElement& element_;
  const LineCombination& combine_;
};

/// Levels of a tree with so many leaves.
std::uint32_t levels(std::int64_t leaves) {
  return static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(leaves - 1)));
}

}  // namespace

VectorLines::VectorLines(const AxisLines& lines, const mmu::MachineConfig& machine)
    : lines_(lines), gathers_(lines.outer > 1 && 2 * lines.inner <= machine.columns) {}

std::uint64_t VectorLines::gather(VectorProgram& program, std::uint64_t x,
                                  std::uint64_t scratch) const {
  if (!gathers_) return x;
  const StridedView view = gathered_view(lines_);
  copy_view(program, view, x, dense_view(view.shape), scratch);
  return scratch;
}

void VectorLines::scatter(VectorProgram& program, std::uint64_t scratch, std::uint64_t y) const {
  if (!gathers_) return;
  const StridedView view = gathered_view(lines_);
  copy_view(program, dense_view(view.shape), scratch, view, y);
}

void VectorLines::for_each_tile(VectorProgram& program,
                                const std::function<void(const LineTile& tile)>& body) const {
  const std::int64_t outer = gathers_ ? 1 : lines_.outer;
  const std::int64_t inner = gathers_ ? lines() : lines_.inner;
  for (std::int64_t o = 0; o < outer; ++o)
    systolic::for_each_tile(program, inner, [&](std::int64_t first, std::int64_t count) {
      body({o * inner + first, count, o * lines_.count * inner + first, inner});
    });
}

void fold_lines(VectorProgram& program, std::int64_t elements, const LineElement& element,
                const LineCombination& combine, VectorBlock y) {
  LineFold(program, elements, element, combine).blocks(0, reduction_blocks(elements), y);
}

std::uint32_t fold_blocks(std::int64_t elements) {
  return levels(std::min(elements, kReductionLanes)) + (elements > kReductionLanes ? 1 : 0) +
         levels(reduction_blocks(elements));
}

}  // namespace triptych::systolic
