// Matrix products on the tile unit (backends/cpu/tiles), under bf16. Both factors are packed as
// panels of 16 rows of a, or 16 columns of b, in the order of the tile loads. A block of K of two
// panels of a stays in the first cache while it meets the panels of b.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/tiles/pack_rows.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/ops/matmul.h"

namespace triptych::cpu {
namespace {

constexpr std::int64_t kTileWords = kTileRows * kTileDepth;
constexpr std::int64_t kStepElements = 2 * kTileDepth;
constexpr std::int64_t kBlockSteps = 16;  ///< of a block of K
constexpr std::int64_t kTaskRows = 256, kMostTaskColumns = 256;
constexpr std::int64_t kTasksPerThread = 4;
// Packed matrices of a batch that are multiplied together.
constexpr std::int64_t kGroupWords = 8 * 1024 * 1024;
constexpr std::int64_t kFewest = 8;

/// A factor as `lines` rows of a, or columns of b, of k elements: element (line, i) at
/// line * line_step + i * k_step. One of the steps is 1.
struct Factor {
  std::int64_t lines = 0, k = 0, line_step = 1, k_step = 1;
  bool of_b = false;

  std::int64_t panels() const { return ceil_div(lines, kTileRows); }
  std::int64_t steps() const { return ceil_div(k, kStepElements); }
  std::int64_t panel_words() const { return steps() * kTileWords; }
  std::int64_t words() const { return panels() * panel_words(); }

  /// Panel `panel` of the matrix at `from`: [step][line][word] of a, [step][word][line] of b.
  void pack(const float* from, std::int64_t panel, TileWord* to) const {
    const auto first = panel * kTileRows, count = std::min(kTileRows, lines - first);
    for (std::int64_t step = 0; step < steps(); ++step, to += kTileWords) {
      alignas(64) std::uint16_t halves[2 * kTileWords] = {};
      const auto k0 = step * kStepElements, depth = std::min(kStepElements, k - k0);
      const float* at = from + first * line_step + k0 * k_step;
      if (k_step == 1) {  // [line][k]
        for (std::int64_t line = 0; line < count; ++line)
          pack_halves(at + line * line_step, 1, depth, halves + line * kStepElements);
      } else {  // [word][line], two k in a word
        for (std::int64_t i = 0; i < depth; i += 2)
          pack_pairs(at + i * k_step, i + 1 < depth ? at + (i + 1) * k_step : nullptr, 1, count,
                     reinterpret_cast<TileWord*>(halves) + i / 2 * kTileRows);
      }
      if ((k_step == 1) == of_b) {
        transpose_matrix(
            {reinterpret_cast<const float*>(halves), kTileDepth, kTileRows, kTileDepth},
            reinterpret_cast<float*>(to), kTileDepth, Rounding::None);
      } else {
        std::memcpy(to, halves, sizeof(halves));
      }
    }
  }
};

class MatMulTiles : public Kernel {
 public:
  MatMulTiles(const KernelQuery& query, Device& device)
      : g_(MatMulGeometry::merged(query.as<MatMul>(), query.inputs[0].spec, query.inputs[1].spec)),
        a_(factor(query.as<MatMul>().transpose_a, g_.m)),
        b_(factor(!query.as<MatMul>().transpose_b, g_.n)),
        kind_(tile_unit_kind()),
        group_(std::clamp(kGroupWords / (a_.words() + b_.words() + 1), std::int64_t{1},
                          std::int64_t{std::ssize(g_.batch_a)})) {
    b_.of_b = true;
    for (std::int64_t step = 0; step < a_.steps(); ++step)
      steps_.push_back(step * kTileWords * kTileWordBytes);
    const auto row_tasks = ceil_div(g_.m, kTaskRows) * group_;
    while (task_columns_ > kTileBlock &&
           row_tasks * ceil_div(g_.n, task_columns_) < kTasksPerThread * device_threads(device))
      task_columns_ /= 2;
    if (const auto* b = constant_input(query, 1)) {
      const auto count = b->elements() / (g_.k * g_.n);
      packed_b_.emplace(
          count * b_.words(),
          [this, count](const float* from, TileWord* to) {
            pack(
                b_, count, [&](std::int64_t i) { return from + i * g_.k * g_.n; }, to);
          },
          b, device);
    }
  }

  static Verdict accepts(const KernelQuery& query) {
    if (query.contract != Contract::Bf16) return Verdict::no("computes under bf16 only");
    if (!query.dense()) return Verdict::no("needs dense operands");
    for (const auto& input : query.inputs)
      if (input.spec.shape.elements() == 0) return Verdict::no("has an empty operand");
    return accepts_gemm(query);
  }

  static Verdict worth(const KernelQuery& query) {
    if (!tile_unit_missing().empty()) return Verdict::no(tile_unit_missing());
    const auto g =
        MatMulGeometry::merged(query.as<MatMul>(), query.inputs[0].spec, query.inputs[1].spec);
    return std::min(g.n, g.k) >= kFewest  // m may be the size of a batch
               ? Verdict{true, kOnTileUnit}
               : Verdict::no("fills tiles badly with so few columns or products");
  }

  std::size_t scratch_bytes() const override {
    const auto words = checked_add(a_.words(), packed_b_ ? 0 : b_.words());
    return static_cast<std::size_t>(checked_mul(checked_mul(group_, words), kTileWordBytes));
  }
  std::size_t resident_bytes() const override {
    return packed_b_ ? packed_b_->resident_bytes() : 0;
  }

  void run(const KernelArgs& args) override {
    auto* a = reinterpret_cast<TileWord*>(args.scratch);
    auto* own_b = a + group_ * a_.words();
    const TileWord* ready_b = packed_b_ ? packed_b_->ready(args.in<float>(1), nullptr) : nullptr;
    const auto entries = std::ssize(g_.batch_a);
    for (std::int64_t first = 0; first < entries; first += group_) {
      const auto count = std::min(group_, entries - first);
      const auto matrix = [&](const std::vector<std::int64_t>& starts, std::int64_t i) {
        return starts[static_cast<std::size_t>(first + i)];
      };
      pack(
          a_, count, [&](auto i) { return args.in<float>(0) + matrix(g_.batch_a, i); }, a);
      if (ready_b == nullptr)
        pack(
            b_, count, [&](auto i) { return args.in<float>(1) + matrix(g_.batch_b, i); }, own_b);
      multiply(count, [&](std::int64_t i) -> Product {
        const TileWord* b = ready_b == nullptr
                                ? own_b + i * b_.words()
                                : ready_b + matrix(g_.batch_b, i) / (g_.k * g_.n) * b_.words();
        return {a + i * a_.words(), b, args.out<float>(0) + (first + i) * g_.m * g_.n};
      });
    }
  }

 private:
  struct Product {
    const TileWord* a = nullptr;
    const TileWord* b = nullptr;
    float* y = nullptr;
  };

  /// `k_first`: the matrix is [k, lines], else [lines, k].
  Factor factor(bool k_first, std::int64_t lines) const {
    return {lines, g_.k, k_first ? 1 : g_.k, k_first ? lines : 1};
  }

  /// `count` matrices, matrix(i) each, one after the other.
  template <class Matrix>
  static void pack(const Factor& factor, std::int64_t count, const Matrix& matrix, TileWord* to) {
    parallel_for(count * factor.panels(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i)
        factor.pack(matrix(i / factor.panels()), i % factor.panels(),
                    to + i * factor.panel_words());
    });
  }

  template <class ProductAt>
  void multiply(std::int64_t count, const ProductAt& product_at) const {
    const auto row_tasks = ceil_div(g_.m, kTaskRows);
    const auto column_tasks = ceil_div(g_.n, task_columns_);
    parallel_for(count * row_tasks * column_tasks, 1, [&](std::int64_t begin, std::int64_t end) {
      const TileUnit unit(TileNumbers::Bf16, kTileDepth, kind_);
      for (auto task = begin; task < end; ++task) {
        const auto row = task / column_tasks % row_tasks * kTaskRows;
        const auto column = task % column_tasks * task_columns_;
        multiply_task(unit, product_at(task / column_tasks / row_tasks),
                      {row, std::min(row + kTaskRows, g_.m)},
                      {column, std::min(column + task_columns_, g_.n)});
      }
    });
  }

  void multiply_task(const TileUnit& unit, const Product& product, Range rows,
                     Range columns) const {
    const auto steps = a_.steps();
    for (std::int64_t step = 0; step < steps; step += kBlockSteps) {
      const Range block = {step, std::min(step + kBlockSteps, steps)};
      for (auto m = rows.begin; m < rows.end; m += kTileBlock) {
        for (auto n = columns.begin; n < columns.end; n += kTileBlock) {
          if (m + kTileBlock <= g_.m && n + kTileBlock <= g_.n) {
            unit.multiply(block_at(product, m, n, block, product.y + m * g_.n + n, g_.n));
          } else if (block.end == steps) {
            multiply_edge(unit, product, m, n);
          }
        }
      }
    }
  }

  /// A block that y has not got whole.
  void multiply_edge(const TileUnit& unit, const Product& product, std::int64_t m,
                     std::int64_t n) const {
    alignas(64) float sums[kTileBlock * kTileBlock];
    unit.multiply(block_at(product, m, n, {0, a_.steps()}, sums, kTileBlock));
    const auto width = std::min(kTileBlock, g_.n - n);
    for (std::int64_t row = 0; row < std::min(kTileBlock, g_.m - m); ++row)
      std::copy_n(sums + row * kTileBlock, width, product.y + (m + row) * g_.n + n);
  }

  TileProduct block_at(const Product& product, std::int64_t m, std::int64_t n, Range steps,
                       float* sums, std::int64_t stride) const {
    const auto operand = [&](const TileWord* packed, std::int64_t line) -> TileOperand {
      const auto panel = a_.panel_words();
      return {.data = reinterpret_cast<const std::byte*>(packed + line / kTileRows * panel),
              .steps = std::span(steps_).subspan(static_cast<std::size_t>(steps.begin),
                                                 static_cast<std::size_t>(steps.size())),
              .line = kTileDepth * kTileWordBytes,
              .block = panel * kTileWordBytes};
    };
    return {.a = operand(product.a, m),
            .b = operand(product.b, n),
            .sums = sums,
            .sums_stride = stride,
            .row_blocks = g_.m - m > kTileRows ? 2 : 1,
            .column_blocks = g_.n - n > kTileColumns ? 2 : 1,
            .accumulate = steps.begin > 0};
  }

  MatMulGeometry g_;
  Factor a_, b_;
  TileUnit::Kind kind_;
  std::int64_t group_;  ///< entries of the batch that are packed together
  std::int64_t task_columns_ = kMostTaskColumns;
  std::vector<std::int64_t> steps_;                              ///< as TileOperand::steps
  std::optional<BasicPackedOperand<float, TileWord>> packed_b_;  ///< when constant
};

}  // namespace

void add_matmul_tiles_kernels(KernelList& list) {
  list.push_back(kernel_entry<MatMulTiles>(MatMul::kName, "tiles"));
  list.back().worth = &MatMulTiles::worth;
}

}  // namespace triptych::cpu
