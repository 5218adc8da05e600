// Products of matrices on the tile unit. K is cut into parts. A part of four panels of a, 16 rows
// each, stays in the first cache while the panels of b of a task pass by, 16 columns each. All
// panels of a part lie one after the other, so that they share no sets of a cache. Sums wait in
// blocks of the thread's own, so that rows of y that lie apart are written once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "backends/cpu/gemm/packed_gemm.h"
#include "backends/cpu/tiles/pack_rows.h"
#include "core/base/checked_math.h"
#include "core/base/range.h"

namespace triptych::cpu {

/// Most steps of a part. Four panels of a, one of b and a block of sums are then 44 KiB of the 48
/// KiB of a first cache.
inline constexpr std::int64_t kMostPartSteps = 8;

/// `lines` rows of a, or columns of b, of k elements: element (line, i) at line * line_step +
/// i * k_step. One of the steps is 1.
template <class Element>
struct TileFactor {
  std::int64_t lines = 0, k = 0, line_step = 1, k_step = 1;
  bool of_b = false;

  std::int64_t panels() const { return ceil_div(lines, kTileRows); }
  std::int64_t steps() const { return ceil_div(k, kStepElements<Element>); }
  std::int64_t words() const { return checked_mul(panels(), steps() * kStepWords); }
  /// Parts of K, and the steps of one.
  std::int64_t parts() const { return ceil_div(steps(), kMostPartSteps); }
  Range part(std::int64_t i) const { return {i * steps() / parts(), (i + 1) * steps() / parts()}; }
  /// Words from the first to a part of a panel.
  std::int64_t place(std::int64_t panel, Range part) const {
    return (part.begin * panels() + panel * part.size()) * kStepWords;
  }

  /// Panel `panel` of the matrix at `from` to its places in the packed one: each part is
  /// [step][line][word] of a, [step][word][line] of b.
  void pack(const Element* from, std::int64_t panel, TileWord* to) const;
  /// `count` matrices, matrix(i) each, one after the other. Runs in parallel.
  void pack_all(std::int64_t count, const std::function<const Element*(std::int64_t)>& matrix,
                TileWord* to) const;
};

/// Rows and columns of a task.
struct TileTask {
  std::int64_t rows = 0, columns = 0;
};

/// For `entries` products of `m` by `n`, a second cache of so many bytes and so many threads.
TileTask tile_task(std::int64_t m, std::int64_t n, std::int64_t entries, double second_cache,
                   std::int64_t threads);

/// Entries of a batch, of so many packed words each, that are multiplied together.
std::int64_t entries_together(std::int64_t words, std::int64_t entries);

template <class Element>
class TileGemm {
 public:
  using Sum = typename TileElements<Element>::Sum;
  using Block = BasicGemmBlock<Sum>;
  using Factor = TileFactor<Element>;
  struct Product {
    const TileWord* a = nullptr;
    const TileWord* b = nullptr;
  };
  /// Takes complete sums of a product.
  using Store = std::function<void(std::int64_t entry, const Block&)>;

  /// Products of one row at least and one element of k, at most `entries` at a time.
  TileGemm(const Factor& a, const Factor& b, std::int64_t entries, int threads);

  std::size_t scratch_bytes() const;
  /// product_at(entry): the packed factors. Call it inside the arena of the device.
  void run(std::int64_t entries, const std::function<Product(std::int64_t)>& product_at,
           const Store& store, std::byte* scratch) const;

 private:
  std::int64_t thread_sums() const;
  void run_task(const TileUnit& unit, const Product& product, Range rows, Range columns, Sum* sums,
                const std::function<void(const Block&)>& store) const;
  TileProduct block_at(const Product& product, std::int64_t m, std::int64_t n, Range part) const;

  Factor a_, b_;
  std::int64_t threads_;
  TileUnit::Kind kind_;
  TileTask task_;
  std::vector<std::int64_t> steps_;  ///< as TileOperand::steps, of a part
};

}  // namespace triptych::cpu
