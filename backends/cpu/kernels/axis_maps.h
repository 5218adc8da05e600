// The two engines behind everything that works axis by axis but is no strided copy: reading through
// an index table (Pad by reflection or edge, Resize by nearest), and summing taps (linear Resize
// and the gradients of Resize and Pad).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ops/axis_taps.h"
#include "core/runtime/kernel.h"

namespace triptych::cpu {

/// y[p] = x[sources[0][p_0], ..., sources[k][p_k]], any dtype, dense x and y.
class IndexCopy {
 public:
  IndexCopy(const std::vector<Dims>& sources, const Shape& x, std::size_t element_size);
  void run(const std::byte* x, std::byte* y) const;
  std::size_t resident_bytes() const;

 private:
  using CopyRow = void (*)(const std::byte* x, std::byte* y, const Dims& offsets);
  void copy_rows(const std::byte* x, std::byte* y, std::int64_t begin, std::int64_t end) const;

  std::vector<Dims> outer_;  // per axis but the last: offsets into x, in bytes
  Dims inner_;
  std::int64_t rows_ = 1;
  std::int64_t row_bytes_ = 0;
  CopyRow copy_row_ = nullptr;
};

/// The sum of core/ops/axis_taps.h in its stated order, f32, dense x and y. Each row of y (along
/// the last axis) is summed by one thread, in pieces.
class TapSum {
 public:
  TapSum(std::vector<AxisTaps> axes, const Shape& x);
  void run(const float* x, float* y) const;
  std::size_t resident_bytes() const;

 private:
  /// Outputs [begin, begin + size) of a row, with at most `taps` taps each. The tap t of output
  /// begin + i stands at first + t * width + i of index_ and weight_. Whole vectors hold `width`.
  struct Piece {
    std::int64_t begin, size, width, taps;
    std::size_t first;
    bool dense;  ///< copies neighbours of x: one tap of weight 1 each, ascending
    bool pairs;  ///< every output has one or two taps
    /// Each kWindow neighbouring outputs read within kWindow neighbours of x: those from
    /// window_[first_window + i / kWindow], at the places place_[first + t * width + i].
    bool windows;
    std::size_t first_window;
  };
  /// A combination of taps of all axes but the last: a row of x, and the product of weights.
  struct Term {
    const float* x;
    float weight;
  };
  class Gathered;

  void cut(const AxisTaps& inner, std::int64_t x_size);
  void find_windows(Piece& piece, std::int64_t x_size);
  void append_terms(std::size_t axis, std::int64_t row, Term term, std::vector<Term>& terms) const;
  template <class Body>
  void for_each_row(const float* x, std::int64_t begin, std::int64_t end, const Body& body) const;
  void sum_rows(const Piece& piece, const float* x, float* y, std::int64_t begin,
                std::int64_t end) const;
  void sum_terms(const Piece& piece, const std::vector<Term>& terms, Gathered& gathered,
                 float* y) const;

  std::vector<AxisTaps> axes_;         // all but the last, indices multiplied by x's strides
  std::vector<std::int64_t> divisor_;  // row / divisor_[a] % size = index along axis a
  std::int64_t rows_ = 1, row_size_ = 0;
  std::vector<Piece> pieces_;
  std::vector<std::int32_t> index_;
  std::vector<float> weight_;
  std::vector<std::int32_t> window_, place_;
};

/// A kernel that is one IndexCopy.
class IndexCopyKernel : public Kernel {
 public:
  /// Dense operands.
  static Verdict accepts(const KernelQuery& query);
  IndexCopyKernel(const KernelQuery& query, const std::vector<Dims>& sources);

  std::size_t resident_bytes() const override { return copy_.resident_bytes(); }
  void run(const KernelArgs& args) override { copy_.run(args.inputs[0], args.outputs[0]); }

 private:
  IndexCopy copy_;
};

/// A kernel that is one TapSum.
class TapSumKernel : public Kernel {
 public:
  /// Dense f32 operands.
  static Verdict accepts(const KernelQuery& query);
  TapSumKernel(const KernelQuery& query, std::vector<AxisTaps> taps);

  std::size_t resident_bytes() const override { return sum_.resident_bytes(); }
  void run(const KernelArgs& args) override { sum_.run(args.in<float>(0), args.out<float>(0)); }

 private:
  TapSum sum_;
};

/// The kernel of a gradient operator that gives its own taps.
template <class GradientOp>
class TapGradientKernel : public TapSumKernel {
 public:
  TapGradientKernel(const KernelQuery& query, Device&)
      : TapSumKernel(query, query.as<GradientOp>().taps()) {}
};

}  // namespace triptych::cpu
