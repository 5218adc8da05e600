// The one engine that moves elements: an N-dimensional copy between two strided views. Consecutive
// axes of both views are merged, and contiguous rows move in units of up to 16 bytes, for elements
// of any type.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/elementwise.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// The widest unit, up to 16 bytes, that divides the byte counts and addresses, joined by |.
inline std::uint64_t widest_unit(std::uint64_t joined) {
  joined |= 16;
  return joined & (~joined + 1);
}

inline std::uint64_t address_of(const std::byte* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// Calls visitor with a value of a type of `bytes` bytes: 1, 2, 4, 8 or 16. Units are moved, not
/// computed with.
template <class Visitor>
void visit_unit(std::uint64_t bytes, const Visitor& visitor) {
  if (bytes == 16) return visitor(Vector<std::uint64_t, 2>());
  if (bytes == 8) return visitor(std::uint64_t{});
  if (bytes == 4) return visitor(std::uint32_t{});
  if (bytes == 2) return visitor(std::uint16_t{});
  TRIPTYCH_ASSERT(bytes == 1);
  visitor(std::uint8_t{});
}

/// Where the elements of a copy lie: those of y are operand 0, those of x operand 1.
struct CopyWalk {
  ElementOffsets<2> offsets;
  std::int64_t first[2];

  CopyWalk(const StridedView& from, const StridedView& to)
      : offsets(BroadcastWalk<2>(to.shape, {to.strides, from.strides})),
        first{to.offset, from.offset} {}

  /// Elements of operand k's memory up to the last that is visited.
  std::int64_t reach(int k) const {
    std::int64_t last = first[k];
    for (int axis = 0; axis < offsets.axes; ++axis) {
      const auto stride = offsets.strides[axis][k];
      if (stride > 0) last += (offsets.sizes[axis] - 1) * stride;
    }
    return last + 1;
  }

  /// All distances in bytes that a unit must divide, joined by |: those of one element where rows
  /// are not contiguous.
  std::uint64_t joined_distances(std::size_t element_size) const {
    const int row = offsets.axes - 1;
    if (row < 0 || offsets.strides[row][0] != 1 || offsets.strides[row][1] != 1) {
      return element_size;
    }
    std::int64_t joined = offsets.sizes[row] | first[0] | first[1];
    for (int axis = 0; axis < row; ++axis) {
      joined |= offsets.strides[axis][0] | offsets.strides[axis][1];
    }
    return static_cast<std::uint64_t>(joined) * element_size;
  }

  /// The same copy by units of `count` elements.
  CopyWalk in_units(std::int64_t count) const {
    CopyWalk walk = *this;
    if (count == 1) return walk;
    walk.offsets.elements /= count;
    walk.offsets.sizes[offsets.axes - 1] /= count;
    for (int k = 0; k < 2; ++k) {
      walk.first[k] /= count;
      for (int axis = 0; axis + 1 < offsets.axes; ++axis) walk.offsets.strides[axis][k] /= count;
    }
    return walk;
  }
};

/// One unit per thread.
template <class Unit>
__global__ void strided_copy_kernel(Global<const Unit> x, Global<Unit> y, CopyWalk walk) {
  for (auto i = global_thread(); i < walk.offsets.elements; i += all_threads()) {
    std::int64_t at[2];
    walk.offsets.at(i, at);
    const Unit value = x[walk.first[1] + at[1]];
    y[walk.first[0] + at[0]] = value;
  }
}

class StridedCopy {
 public:
  /// The views have equal shapes of up to 8 dimensions, or fewer axes when they are merged. `to`
  /// visits each element at most once.
  StridedCopy(const StridedView& from, const StridedView& to, DType dtype)
      : walk_(from, to),
        element_size_(dtype_size(dtype)),
        joined_distances_(walk_.joined_distances(element_size_)) {
    TRIPTYCH_ASSERT(from.shape == to.shape);
  }

  /// y[to] = x[from]. x and y are the addresses of the views' element 0 and do not overlap.
  void run(Stream* stream, const std::byte* x, std::byte* y) const {
    if (walk_.offsets.elements == 0) return;
    const auto unit_size = widest_unit(joined_distances_ | address_of(x) | address_of(y));
    const auto walk = walk_.in_units(static_cast<std::int64_t>(unit_size / element_size_));
    visit_unit(unit_size, [&](auto unit) {
      using Unit = decltype(unit);
      launch(stream, "strided_copy", one_dimension(walk.offsets.elements),
             strided_copy_kernel<Unit>, Global(reinterpret_cast<const Unit*>(x), walk.reach(1)),
             Global(reinterpret_cast<Unit*>(y), walk.reach(0)), walk);
    });
  }

 private:
  CopyWalk walk_;
  std::size_t element_size_;
  std::uint64_t joined_distances_;
};

/// A kernel that copies input 0, seen through a view, to output 0.
class CopyKernel : public Kernel {
 public:
  CopyKernel(const StridedView& from, const StridedView& to, DType dtype)
      : copy_(from, to, dtype) {}
  void run(const KernelArgs& args) override {
    copy_.run(args.stream, args.inputs[0], args.outputs[0]);
  }

 private:
  StridedCopy copy_;
};

/// The kernel of an operator with `view_of` its input as output. Takes strided operands.
template <class ViewOp>
class ViewKernel : public CopyKernel {
 public:
  static Verdict accepts(const KernelQuery& query) { return accepts_rank(query); }
  ViewKernel(const KernelQuery& query, Device&)
      : CopyKernel(query.as<ViewOp>().view_of(operand_view(query.inputs[0])),
                   operand_view(query.outputs[0]), query.inputs[0].spec.dtype) {}
};

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
