// What convolution and its transpose share: patches of x as operands of a product, and how blocks
// of the product reach the planes of y. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/gemm/gemm.h"

namespace triptych::cpu {

/// A product weights x patches per image and group: entry n * groups + group of the batch is one
/// group of one image. Derived classes store.
class PatchOperands : public GemmOperands {
 public:
  struct Layout {
    std::int64_t groups = 1;
    std::int64_t group_weights = 0;  ///< floats of one group's packed weights
    std::int64_t image = 0;          ///< floats of x from one image to the next
    std::int64_t group_image = 0;    ///< floats of x from one group to the next
    Rounding rounding = Rounding::None;
  };
  PatchOperands(const Layout& layout, const PatchGrid& grid, const float* x, const float* weights)
      : layout_(layout), grid_(grid), x_(x), weights_(weights) {}

  const float* rows(std::int64_t batch) const override {
    return weights_ + batch % layout_.groups * layout_.group_weights;
  }
  void pack(std::int64_t batch, Range k, Range n, float* panels) const override {
    const auto group = batch % layout_.groups * layout_.group_image;
    const float* x = x_ + batch / layout_.groups * layout_.image + group;
    pack_patches(grid_, x, k, n, panels, layout_.rounding);
  }

 private:
  Layout layout_;
  const PatchGrid& grid_;
  const float* x_;
  const float* weights_;
};

/// Where row `channel` and column `position` of a product go: plane `channel` of y, a bias added
/// and negative values cut off where asked.
struct ChannelStore {
  float* y = nullptr;           ///< plane 0
  std::int64_t plane = 0;       ///< elements between planes
  const float* bias = nullptr;  ///< of channel 0; nullptr: none
  bool relu = false;

  /// Column n is element n of the plane.
  void store(const GemmBlock& block) const;
};

/// Positions of a smaller grid inside a plane: column n, in row n / columns of the grid, goes to
/// first + (n / columns) * row_step + (n % columns) * column_step.
struct PositionGrid {
  std::int64_t columns = 1;
  std::int64_t first = 0;
  std::int64_t row_step = 1;
  std::int64_t column_step = 1;
};

/// Row `channel` of the block goes to plane `channel`, its columns where `grid` says.
void store_on_grid(const ChannelStore& store, const PositionGrid& grid, const GemmBlock& block);

/// Row channel * taps[0] * taps[1] + tap goes to plane `channel`, as the tap'th of the tiles of
/// taps[0] by taps[1] elements that positions of a grid with `columns` columns widen to.
void store_tiles(const ChannelStore& store, const std::int64_t (&taps)[2], std::int64_t columns,
                 const GemmBlock& block);

}  // namespace triptych::cpu
