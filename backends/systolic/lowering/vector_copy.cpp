// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/vector_copy.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace triptych::systolic {
namespace {

/// An axis of both views, with the elements from one position to the next.
struct CopyAxis {
  std::int64_t size, from, to;
};

/// As few axes as possible, the last one fastest.
std::vector<CopyAxis> common_axes(const StridedView& from, const StridedView& to) {
  std::vector<CopyAxis> axes;
  for (std::size_t a = 0; a < from.strides.size(); ++a) {
    const CopyAxis axis{from.shape.dims()[a], from.strides[a], to.strides[a]};
    if (axis.size == 1) continue;
    if (!axes.empty() && axes.back().from == axis.size * axis.from &&
        axes.back().to == axis.size * axis.to)
      axes.back() = {axes.back().size * axis.size, axis.from, axis.to};
    else
      axes.push_back(axis);
  }
  return axes;
}

class ViewCopy {
 public:
  ViewCopy(VectorProgram& program, std::vector<CopyAxis> axes, VectorBlock block)
      : program_(program), axes_(std::move(axes)), block_(block) {
    if (!axes_.empty() && axes_.back().from == 1 && axes_.back().to == 1) {
      run_ = axes_.back().size;
      axes_.pop_back();
    }
    if (run_ > program_.lanes()) return;
    if (axes_.empty()) return;
    rows_ = axes_.back();
    axes_.pop_back();
  }

  /// Copies the positions of axis `a` and of those behind it.
  void copy(std::size_t a, std::int64_t from, std::int64_t to) {
    if (a < axes_.size()) {
      for (std::int64_t i = 0; i < axes_[a].size; ++i)
        copy(a + 1, from + 4 * i * axes_[a].from, to + 4 * i * axes_[a].to);
    } else if (run_ > program_.lanes()) {
      copy_run(from, to);
    } else {
      copy_rows(from, to);
    }
  }

 private:
  void copy_run(std::int64_t from, std::int64_t to) {
    const std::int64_t most = std::int64_t{program_.block_rows()} * program_.lanes();
    for (std::int64_t first = 0; first < run_; first += most) {
      const std::int64_t count = std::min(most, run_ - first);
      program_.load(address(from + 4 * first), count, program_.lanes(), block_);
      program_.store(block_, count, program_.lanes(), address(to + 4 * first));
    }
  }
  void copy_rows(std::int64_t from, std::int64_t to) {
    const auto lanes = static_cast<std::uint32_t>(run_);
    const std::int64_t most = program_.block_rows();
    for (std::int64_t first = 0; first < rows_.size; first += most) {
      const auto rows = static_cast<std::uint32_t>(std::min(most, rows_.size - first));
      program_.load_rows(address(from + 4 * first * rows_.from), 4 * rows_.from, rows, lanes,
                         block_);
      program_.store_rows(block_, rows, lanes, address(to + 4 * first * rows_.to), 4 * rows_.to);
    }
  }
  static std::uint64_t address(std::int64_t byte) { return static_cast<std::uint64_t>(byte); }

  VectorProgram& program_;
  std::vector<CopyAxis> axes_;
  VectorBlock block_;
  std::int64_t run_ = 1;       ///< elements that lie one after another in both
  CopyAxis rows_ = {1, 0, 0};  ///< runs of at most a row, where they are short
};

}  // namespace

void copy_view(VectorProgram& program, const StridedView& from, std::uint64_t from_address,
               const StridedView& to, std::uint64_t to_address) {
  if (from.shape.elements() == 0) return;
  const VectorBlock block = program.allocate();
  ViewCopy copy(program, common_axes(from, to), block);
  copy.copy(0, static_cast<std::int64_t>(from_address) + 4 * from.offset,
            static_cast<std::int64_t>(to_address) + 4 * to.offset);
  program.release(block);
}

}  // namespace triptych::systolic
