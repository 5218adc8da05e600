// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiles/tile_gemm.h"

#include <algorithm>
#include <span>

#include "backends/cpu/caches.h"
#include "backends/cpu/gemm/pack.h"
#include "backends/host/parallel.h"

namespace triptych::cpu {
namespace {

constexpr std::int64_t kStepBytes = kStepWords * kTileWordBytes;
// Sums that the unit holds, and their rows where they are one tile wide.
constexpr std::int64_t kBlockSums = kTileBlock * kTileBlock;
constexpr std::int64_t kBlockRows = kMostTileRowBlocks * kTileRows;
constexpr std::int64_t kMostTaskLines = 512;
constexpr std::int64_t kTasksPerThread = 4;
// Words of the packed entries of a batch that are multiplied together.
constexpr std::int64_t kGroupWords = 8 * 1024 * 1024;

}  // namespace

TileTask tile_task(std::int64_t m, std::int64_t n, std::int64_t entries, double second_cache,
                   std::int64_t threads) {
  TileTask task = {std::min(kMostTaskLines, round_up(m, kBlockRows)),
                   std::min(kMostTaskLines, round_up(n, kTileBlock))};
  auto &rows = task.rows, &columns = task.columns;
  const auto too_large = [&] {
    return static_cast<double>(rows * columns * kTileWordBytes) > second_cache / 2;
  };
  const auto count = [&] { return entries * ceil_div(m, rows) * ceil_div(n, columns); };
  while ((rows > kBlockRows || columns > kTileBlock) &&
         (too_large() || count() < kTasksPerThread * threads)) {
    if (columns == kTileBlock || (rows >= columns && rows > kBlockRows)) {
      rows = round_up(ceil_div(rows, 2), kBlockRows);
    } else {
      columns = round_up(ceil_div(columns, 2), kTileBlock);
    }
  }
  return task;
}

std::int64_t entries_together(std::int64_t words, std::int64_t entries) {
  return std::clamp(kGroupWords / (words + 1), std::int64_t{1}, entries);
}

template <class Element>
void TileFactor<Element>::pack(const Element* from, std::int64_t panel, TileWord* to) const {
  const auto first = panel * kTileRows;
  TileLines some = {std::min(kTileRows, lines - first), k, line_step, k_step};
  alignas(64) TileWord turned[kMostPartSteps * kStepWords];
  const bool turns = (k_step == 1) == of_b;
  for (std::int64_t i = 0; i < parts(); ++i) {
    const auto steps = part(i);
    const auto begin = steps.begin * kStepElements<Element>;
    auto* target = to + place(panel, steps);
    some.k = std::min(steps.end * kStepElements<Element>, k) - begin;
    pack_steps(from + first * line_step + begin * k_step, some, turns ? turned : target);
    for (std::int64_t at = 0; turns && at < steps.size() * kStepWords; at += kStepWords) {
      transpose_matrix(
          {reinterpret_cast<const float*>(turned + at), kTileDepth, kTileRows, kTileDepth},
          reinterpret_cast<float*>(target + at), kTileDepth, Rounding::None);
    }
  }
}

template <class Element>
void TileFactor<Element>::pack_all(std::int64_t count,
                                   const std::function<const Element*(std::int64_t)>& matrix,
                                   TileWord* to) const {
  parallel_for(count * panels(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i)
      pack(matrix(i / panels()), i % panels(), to + i / panels() * words());
  });
}

template <class Element>
TileGemm<Element>::TileGemm(const Factor& a, const Factor& b, std::int64_t entries, int threads)
    : a_(a),
      b_(b),
      threads_(threads),
      kind_(tile_unit_kind()),
      task_(tile_task(a.lines, b.lines, entries, second_level_bytes(), threads)) {
  for (std::int64_t step = 0; step < std::min(a_.steps(), kMostPartSteps); ++step)
    steps_.push_back(step * kStepBytes);
}

/// The sums of all blocks of a task, or of one where none waits for another part of K.
template <class Element>
std::int64_t TileGemm<Element>::thread_sums() const {
  return a_.parts() == 1 ? kBlockSums : task_.rows * task_.columns;
}

template <class Element>
std::size_t TileGemm<Element>::scratch_bytes() const {
  return static_cast<std::size_t>(checked_mul(threads_, thread_sums() * kTileWordBytes));
}

template <class Element>
void TileGemm<Element>::run(std::int64_t entries,
                            const std::function<Product(std::int64_t)>& product_at,
                            const Store& store, std::byte* scratch) const {
  const auto row_tasks = ceil_div(a_.lines, task_.rows);
  const auto column_tasks = ceil_div(b_.lines, task_.columns);
  parallel_for(entries * row_tasks * column_tasks, 1, [&](std::int64_t begin, std::int64_t end) {
    const TileUnit unit(TileElements<Element>::kNumbers, kTileDepth, kind_);
    auto* sums = reinterpret_cast<Sum*>(scratch) + thread_index() * thread_sums();
    for (auto task = begin; task < end; ++task) {
      const auto entry = task / column_tasks / row_tasks;
      const auto row = task / column_tasks % row_tasks * task_.rows;
      const auto column = task % column_tasks * task_.columns;
      run_task(unit, product_at(entry), {row, std::min(row + task_.rows, a_.lines)},
               {column, std::min(column + task_.columns, b_.lines)}, sums,
               [&](const Block& block) { store(entry, block); });
    }
  });
}

template <class Element>
void TileGemm<Element>::run_task(const TileUnit& unit, const Product& product, Range rows,
                                 Range columns, Sum* sums,
                                 const std::function<void(const Block&)>& store) const {
  const auto parts = a_.parts();
  for (std::int64_t i = 0; i < parts; ++i) {
    Sum* block = sums;
    for (auto m = rows.begin; m < rows.end; m += kBlockRows) {
      const auto row_blocks = std::min(kMostTileRowBlocks, ceil_div(rows.end - m, kTileRows));
      const auto width = row_blocks > kMostTileBlocks ? kTileColumns : kTileBlock;
      for (auto n = columns.begin; n < columns.end; n += width) {
        auto now = block_at(product, m, n, a_.part(i));
        now.row_blocks = row_blocks;
        now.column_blocks = ceil_div(std::min(width, columns.end - n), kTileColumns);
        now.sums = block;
        now.sums_stride = width;
        unit.multiply(now);
        if (i + 1 == parts) {
          store({{m, std::min(m + kBlockRows, rows.end)},
                 {n, std::min(n + width, columns.end)},
                 block,
                 width});
        }
        if (parts > 1) block += kBlockSums;
      }
    }
  }
}

template <class Element>
TileProduct TileGemm<Element>::block_at(const Product& product, std::int64_t m, std::int64_t n,
                                        Range part) const {
  const auto operand = [&](const Factor& factor, const TileWord* packed,
                           std::int64_t line) -> TileOperand {
    const auto* from = packed + factor.place(line / kTileRows, part);
    return {.data = reinterpret_cast<const std::byte*>(from),
            .steps = std::span(steps_).first(static_cast<std::size_t>(part.size())),
            .line = kTileDepth * kTileWordBytes,
            .block = part.size() * kStepBytes};
  };
  return {
      .a = operand(a_, product.a, m), .b = operand(b_, product.b, n), .accumulate = part.begin > 0};
}

template struct TileFactor<float>;
template struct TileFactor<std::int8_t>;
template class TileGemm<float>;
template class TileGemm<std::int8_t>;

}  // namespace triptych::cpu
