// Common part of convolution and its transpose: patches of x as operands of a product, and how
// blocks of the product reach the planes of y.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "backends/cpu/gemm/packed_gemm.h"
#include "backends/cpu/kernels/conv_arithmetic.h"
#include "backends/cpu/tiles/tile_unit.h"
#include "core/ops/conv_geometry.h"

namespace triptych::cpu {

/// The patches that a convolution multiplies with the weights of a group, and its taps' numbers.
PatchGrid patch_grid(const ConvGeometry& g);
std::vector<std::int64_t> all_taps(const ConvGeometry& g);

/// A product weights x patches per image and group: entry n * groups + group of the batch is one
/// group of one image. Derived classes store.
template <class Arithmetic>
class PatchOperands : public BasicGemmOperands<typename Arithmetic::Word> {
 public:
  using Element = typename Arithmetic::Element;
  using Word = typename Arithmetic::Word;
  struct Layout {
    std::int64_t groups = 1;
    std::int64_t group_weights = 0;  ///< words of one group's packed weights
    std::int64_t image = 0;          ///< elements of x from one image to the next
    std::int64_t group_image = 0;    ///< elements of x from one group to the next
    bool skips_padding = false;      ///< rows of padding are not multiplied, even with infinities
    Arithmetic arithmetic;
  };
  PatchOperands(const Layout& layout, const PatchGrid& grid, const Element* x, const Word* weights)
      : layout_(layout), grid_(grid), x_(x), weights_(weights) {}

  const Word* rows(std::int64_t batch) const override {
    return weights_ + batch % layout_.groups * layout_.group_weights;
  }
  void pack(std::int64_t batch, Range k, Range n, Word* panels) const override {
    const auto group = batch % layout_.groups * layout_.group_image;
    const Element* x = x_ + batch / layout_.groups * layout_.image + group;
    layout_.arithmetic.pack(grid_, x, k, n, panels);
  }
  std::optional<Range> live(Range n) const override {
    if (!layout_.skips_padding) return {};
    return grid_.live(n);
  }

 private:
  Layout layout_;
  const PatchGrid& grid_;
  const Element* x_;
  const Word* weights_;
};

/// Positions of a smaller grid inside a plane: column n, in row n / columns of the grid, goes to
/// first + (n / columns) * row_step + (n % columns) * column_step.
struct PositionGrid {
  std::int64_t columns = 1;
  std::int64_t first = 0;
  std::int64_t row_step = 1;
  std::int64_t column_step = 1;
};

/// Where row `channel` and column `position` of a product go: plane `channel` of y, finished.
template <class Finish>
struct ChannelStore {
  using Block = BasicGemmBlock<typename Finish::Sum>;

  typename Finish::Out* y = nullptr;  ///< plane 0
  std::int64_t plane = 0;             ///< elements between planes
  Finish finish;                      ///< from channel 0 on

  /// Column n is element n of the plane.
  void store(const Block& block) const;

  /// Row `channel` of the block goes to plane `channel`, its columns where `grid` says.
  void store_on_grid(const PositionGrid& grid, const Block& block) const;

  /// Row channel * taps[0] * taps[1] + tap goes to plane `channel`, as the tap'th of the tiles of
  /// taps[0] by taps[1] elements that positions of a grid with `columns` columns widen to.
  void store_tiles(const std::int64_t (&taps)[2], std::int64_t columns, const Block& block) const;
};

/// `count` sums of one channel, finished where they are.
void finish_sums(const FloatFinish& finish, std::int64_t channel, float* sums, std::int64_t count);

/// Sums of positions [0, size[0]) and channels [channel, channel + size[1]), finished: element c of
/// position i goes to to[i * step + c]. `sums`: rows of kTileBlock elements.
void store_positions(const FloatFinish& finish, const float* sums,
                     const std::array<std::int64_t, 2>& size, std::int64_t channel,
                     std::uint16_t* to, std::int64_t step, TileUnit::Kind kind);
void store_positions(const RequantizeFinish& finish, const std::int32_t* sums,
                     const std::array<std::int64_t, 2>& size, std::int64_t channel, std::int8_t* to,
                     std::int64_t step, TileUnit::Kind kind);

/// Prepares a kernel class K.
template <class K>
std::unique_ptr<Kernel> prepare_conv(const KernelQuery& query, Device& device) {
  return std::make_unique<K>(query, device);
}

/// The kernel K of a quantised operator: for int8 outputs, or the int32 sums themselves.
template <template <class, class> class K, class Op>
std::unique_ptr<Kernel> prepare_integer(const KernelQuery& query, Device& device) {
  if (query.outputs[0].spec.dtype == DType::I8) {
    return prepare_conv<K<Op, RequantizeArithmetic>>(query, device);
  }
  return prepare_conv<K<Op, SumArithmetic>>(query, device);
}

/// The gradient of a convolution's weights as a plain product, for kernels that cannot take every
/// value. Takes every query that accepts_gemm does.
std::unique_ptr<Kernel> prepare_plain_weight_gradient(const KernelQuery& query, Device& device);

}  // namespace triptych::cpu
