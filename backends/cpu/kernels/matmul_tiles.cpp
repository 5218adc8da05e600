// Matrix products on the tile unit (backends/cpu/tiles), under bf16.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <vector>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/tiles/tile_gemm.h"
#include "core/base/checked_math.h"
#include "core/ops/matmul.h"

namespace triptych::cpu {
namespace {

using Factor = TileFactor<float>;
using Gemm = TileGemm<float>;

constexpr std::int64_t kFewest = 8;

class MatMulTiles : public Kernel {
 public:
  MatMulTiles(const KernelQuery& query, Device& device)
      : g_(geometry_of(query)),
        a_(factor(query.as<MatMul>().transpose_a, g_.m)),
        b_(factor(!query.as<MatMul>().transpose_b, g_.n, true)),
        group_(entries_together(a_.words() + b_.words(), std::ssize(g_.batch_a))),
        gemm_(a_, b_, group_, device_threads(device)) {
    if (const auto* b = constant_input(query, 1)) {
      const auto count = b->elements() / (g_.k * g_.n);
      packed_b_.emplace(
          count * b_.words(),
          [this, count](const float* from, TileWord* to) {
            b_.pack_all(
                count, [&](std::int64_t i) { return from + i * g_.k * g_.n; }, to);
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
    const auto g = geometry_of(query);
    return std::min(g.n, g.k) >= kFewest  // m may be the size of a batch
               ? Verdict{true, kOnTileUnit}
               : Verdict::no("fills tiles badly with so few columns or products");
  }

  std::size_t scratch_bytes() const override {
    const auto words = checked_add(a_.words(), packed_b_ ? 0 : b_.words());
    return gemm_.scratch_bytes() +
           static_cast<std::size_t>(checked_mul(checked_mul(group_, words), kTileWordBytes));
  }
  std::size_t resident_bytes() const override {
    return packed_b_ ? packed_b_->resident_bytes() : 0;
  }

  void run(const KernelArgs& args) override {
    auto* a = reinterpret_cast<TileWord*>(args.scratch + gemm_.scratch_bytes());
    auto* own_b = a + group_ * a_.words();
    const TileWord* ready_b = packed_b_ ? packed_b_->ready(args.in<float>(1), nullptr) : nullptr;
    const auto entries = std::ssize(g_.batch_a);
    for (std::int64_t first = 0; first < entries; first += group_) {
      const auto count = std::min(group_, entries - first);
      const auto start_of = [&](const std::vector<std::int64_t>& starts, std::int64_t i) {
        return starts[static_cast<std::size_t>(first + i)];
      };
      a_.pack_all(
          count, [&](auto i) { return args.in<float>(0) + start_of(g_.batch_a, i); }, a);
      if (ready_b == nullptr)
        b_.pack_all(
            count, [&](auto i) { return args.in<float>(1) + start_of(g_.batch_b, i); }, own_b);
      const auto product_at = [&](std::int64_t i) -> Gemm::Product {
        const TileWord* b = ready_b == nullptr
                                ? own_b + i * b_.words()
                                : ready_b + start_of(g_.batch_b, i) / (g_.k * g_.n) * b_.words();
        return {a + i * a_.words(), b};
      };
      const auto store = [&](std::int64_t i, const Gemm::Block& block) {
        const auto* from = block.values;
        float* to = args.out<float>(0) + (first + i) * g_.m * g_.n + block.n.begin;
        for (auto row = block.m.begin; row < block.m.end; ++row, from += block.stride)
          std::copy_n(from, block.n.size(), to + row * g_.n);
      };
      gemm_.run(count, product_at, store, args.scratch);
    }
  }

 private:
  static MatMulGeometry geometry_of(const KernelQuery& query) {
    return MatMulGeometry::merged(query.as<MatMul>(), query.inputs[0].spec, query.inputs[1].spec);
  }
  /// `k_first`: the matrix is [k, lines], else [lines, k].
  Factor factor(bool k_first, std::int64_t lines, bool of_b = false) const {
    return {lines, g_.k, k_first ? 1 : g_.k, k_first ? lines : 1, of_b};
  }

  MatMulGeometry g_;
  Factor a_, b_;
  std::int64_t group_;  ///< entries of the batch that are packed together
  Gemm gemm_;
  std::optional<BasicPackedOperand<float, TileWord>> packed_b_;  ///< when constant
};

}  // namespace

void add_matmul_tiles_kernels(KernelList& list) {
  list.push_back(kernel_entry<MatMulTiles>(MatMul::kName, "tiles"));
  list.back().worth = &MatMulTiles::worth;
}

}  // namespace triptych::cpu
