// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"

#include <algorithm>
#include <optional>
#include <set>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/gemm_traffic.h"
#include "backends/cpu/gemm/in_place_gemm.h"
#include "backends/cpu/kernels/kernels.h"

namespace triptych::cpu {
namespace {

/// True when the microkernel may read rows of b as they lie.
bool reads_plain(const MatMul& op, Rounding rounding) {
  return !op.transpose_b && rounding == Rounding::None;
}

/// y = op(a) op(b) by the blocked product. A constant b is packed before.
class MatMulGemm : public Kernel {
 public:
  MatMulGemm(const KernelQuery& query, Device& device)
      : op_(query.as<MatMul>()),
        g_(MatMulGeometry::merged(op_, query.inputs[0].spec, query.inputs[1].spec)),
        rounding_(rounding_of(query.contract)),
        gemm_({static_cast<std::int64_t>(g_.batch_a.size()), g_.m, g_.n, g_.k},
              device_threads(device)) {
    if (const auto* b = constant_input(query, 1)) {
      const auto count = b->elements() / (g_.k * g_.n);
      b_.emplace(
          count * packed_columns(g_.n, g_.k),
          [this, count](const float* from, float* to) { pack_b(count, from, to); }, b, device);
    }
  }

  static Verdict accepts(const KernelQuery& query) {
    if (!query.dense()) return Verdict::no("needs dense operands");
    return accepts_gemm(query);
  }
  static std::vector<LevelTraffic> traffic(const KernelQuery& query, const Device& device) {
    const auto& op = query.as<MatMul>();
    const auto g = MatMulGeometry::merged(op, query.inputs[0].spec, query.inputs[1].spec);
    const std::set<std::int64_t> distinct_a(g.batch_a.begin(), g.batch_a.end());
    auto product = packed_product(
        {std::ssize(g.batch_a), g.m, g.n, g.k}, device_threads(device),
        {.source = g.k * g.n, .distinct_a = std::ssize(distinct_a), .in_place = true});
    const auto rounding = rounding_of(query.contract);
    product.fused = reads_plain(op, rounding);
    if (constant_input(query, 1) != nullptr || (product.fused && product.small_b))
      product.packings = 0;
    const bool plain_a = product.few_panels && rounding == Rounding::None && !op.transpose_a;
    product.tile_packings = plain_a ? 0 : product.column_blocks;
    return packed_traffic(product, Caches::of(device));
  }

  std::size_t scratch_bytes() const override { return gemm_.scratch_bytes(); }
  std::size_t resident_bytes() const override { return b_ ? b_->resident_bytes() : 0; }

  void run(const KernelArgs& args) override {
    const Operands operands(*this, args.in<float>(0), args.in<float>(1), args.out<float>(0));
    gemm_.run(operands, args.scratch);
  }

 private:
  class Operands : public InPlaceOperands {
   public:
    Operands(const MatMulGemm& kernel, const float* a, const float* b, float* y)
        : kernel_(kernel),
          g_(kernel.g_),
          a_(a),
          b_(b),
          packed_b_(kernel.b_ ? kernel.b_->ready(b, nullptr) : nullptr),
          y_(y) {}

    GemmFactor a(std::int64_t batch) const override {
      const auto* a = a_ + g_.batch_a[static_cast<std::size_t>(batch)];
      return kernel_.op_.transpose_a ? GemmFactor{a, 1, g_.m} : GemmFactor{a, g_.k, 1};
    }
    bool is_plain(const GemmFactor& a) const override {
      return a.column_stride == 1 && kernel_.rounding_ == Rounding::None;
    }
    void pack_tile(std::int64_t batch, Range m, Range k, float* to) const override {
      const auto from = a(batch);
      const RowSource source = {.data = from.at(m.begin, k.begin),
                                .row_stride = from.row_stride,
                                .channel_stride = from.column_stride,
                                .channels = k.size()};
      cpu::pack_tile(source, m.size(), to, kernel_.rounding_);
    }
    const float* packed_b(std::int64_t batch) const override {
      if (packed_b_ == nullptr) return nullptr;
      const auto matrix = g_.batch_b[static_cast<std::size_t>(batch)] / (g_.k * g_.n);
      return packed_b_ + matrix * packed_columns(g_.n, g_.k);
    }
    GemmFactor plain_b(std::int64_t batch) const override {
      if (!reads_plain(kernel_.op_, kernel_.rounding_)) return {};
      return {b_ + g_.batch_b[static_cast<std::size_t>(batch)], g_.n, 1};
    }
    void pack(std::int64_t batch, Range k, Range n, float* panels) const override {
      kernel_.pack_b_block(b_ + g_.batch_b[static_cast<std::size_t>(batch)], k, n, panels);
    }
    GemmTarget c(std::int64_t batch) const override { return {y_ + batch * g_.m * g_.n, g_.n}; }

   private:
    const MatMulGemm& kernel_;
    const MatMulGeometry& g_;
    const float* a_;
    const float* b_;
    const float* packed_b_;
    float* y_;
  };

  void pack_b(std::int64_t count, const float* from, float* to) const {
    for (std::int64_t i = 0; i < count; ++i, from += g_.k * g_.n) {
      for (std::int64_t k = 0; k < g_.k; k += kGemmDepth) {
        const Range depth = {k, std::min(g_.k, k + kGemmDepth)};
        pack_b_block(from, depth, {0, g_.n}, to);
        to += packed_columns(g_.n, depth.size());
      }
    }
  }

  void pack_b_block(const float* b, Range k, Range n, float* panels) const {
    pack_columns(b, op_.transpose_b ? g_.k : g_.n, op_.transpose_b, k, n, panels, rounding_);
  }

  MatMul op_;
  MatMulGeometry g_;
  Rounding rounding_;
  InPlaceGemm gemm_;
  std::optional<PackedOperand> b_;  ///< when constant
};

}  // namespace

void add_matmul_kernels(KernelList& list) {
  list.push_back(kernel_entry<MatMulGemm>(MatMul::kName, "gemm"));
  list.back().traffic = &MatMulGemm::traffic;
}

}  // namespace triptych::cpu
