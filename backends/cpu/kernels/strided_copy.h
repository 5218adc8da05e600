// The one engine that moves elements: an N-dimensional copy between two strided views. Axes that
// lie behind each other in both views are merged when it is prepared. The rest is cut into tiles
// for the threads. A tile is copied by rows where rows are contiguous, and in cache lines of both
// sides where the copy transposes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/runtime/broadcast_walk.h"

namespace triptych::cpu {

class StridedCopy {
 public:
  /// Elements of `element_size` bytes (1, 2, 4 or 8). The views have equal shapes, and `to` visits
  /// each element at most once.
  StridedCopy(const StridedView& from, const StridedView& to, std::size_t element_size);

  /// y[to] = x[from]. x and y are the addresses of the views' element 0 and do not overlap.
  void run(const std::byte* x, std::byte* y) const;

 private:
  struct Axis {
    std::int64_t size = 1;
    std::int64_t x_stride = 0;  // bytes
    std::int64_t y_stride = 0;
  };
  using CopyTile = void (*)(const std::byte* x, std::byte* y, const Axis& rows,
                            const Axis& columns);

  static std::vector<Axis> merged_axes(const StridedView& from, const StridedView& to,
                                       std::int64_t element_size);
  void choose_plane(std::int64_t element_size);
  void copy_tiles(const std::byte* x, std::byte* y, std::int64_t begin, std::int64_t end) const;

  std::vector<Axis> outer_;  // all but the plane (rows_, columns_) that is cut into tiles
  Axis rows_;
  Axis columns_;
  std::int64_t x_offset_;  // bytes
  std::int64_t y_offset_;
  std::int64_t tile_rows_ = 1;
  std::int64_t tile_columns_ = 1;
  std::int64_t tiles_ = 0;
  std::int64_t grain_ = 1;
  CopyTile copy_tile_ = nullptr;
};

/// A kernel that copies input 0, seen through a view, to output 0.
class CopyKernel : public Kernel {
 public:
  CopyKernel(const StridedView& from, const StridedView& to, DType dtype)
      : copy_(from, to, dtype_size(dtype)) {}
  void run(const KernelArgs& args) override { copy_.run(args.inputs[0], args.outputs[0]); }

 private:
  StridedCopy copy_;
};

/// The kernel of an operator with `view_of` its input as output. Takes strided operands.
template <class ViewOp>
class ViewKernel : public CopyKernel {
 public:
  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }
  ViewKernel(const KernelQuery& query, Device&)
      : CopyKernel(query.as<ViewOp>().view_of(operand_view(query.inputs[0])),
                   operand_view(query.outputs[0]), query.inputs[0].spec.dtype) {}
};

/// Writes one value to all of an operand.
class Fill {
 public:
  Fill(const Operand& y, Tensor value);
  void run(std::byte* y) const { copy_.run(value_.bytes().data(), y); }

 private:
  Tensor value_;
  StridedCopy copy_;
};

}  // namespace triptych::cpu
