// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"

#include <algorithm>
#include <optional>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/host/parallel.h"

namespace triptych::cpu {
namespace {

/// A stack of matrices that all go through one b is one tall matrix.
MatMulGeometry merge_batch(const MatMul& op, MatMulGeometry g) {
  const auto batch = static_cast<std::int64_t>(g.batch_a.size());
  if (op.transpose_a) return g;
  for (std::size_t i = 0; i < g.batch_a.size(); ++i) {
    if (g.batch_b[i] != 0 || g.batch_a[i] != static_cast<std::int64_t>(i) * g.m * g.k) return g;
  }
  return {.m = batch * g.m, .n = g.n, .k = g.k, .batch_a = {0}, .batch_b = {0}};
}

/// y = op(a) op(b) by the blocked product; every matrix of `a` is packed before.
class MatMulGemm : public Kernel {
 public:
  MatMulGemm(const KernelQuery& query, Device& device)
      : op_(query.as<MatMul>()),
        g_(merge_batch(op_, MatMulGeometry::of(op_, query.inputs[0].spec, query.inputs[1].spec))),
        rounding_(rounding_of(query.contract)),
        gemm_({static_cast<std::int64_t>(g_.batch_a.size()), g_.m, g_.n, g_.k},
              device_threads(device)),
        a_(
            query.inputs[0].spec.shape.elements(),
            [this, count = query.inputs[0].spec.shape.elements() / (g_.m * g_.k)](
                const float* from, float* to) { pack_a(count, from, to); },
            constant_input(query, 0), device) {
    const auto* b = constant_input(query, 1);
    if (b == nullptr) return;
    const auto count = b->elements() / (g_.k * g_.n);
    b_.emplace(
        count * packed_columns(g_.n, g_.k),
        [this, count](const float* from, float* to) { pack_b(count, from, to); }, b, device);
  }

  static Verdict accepts(const KernelQuery& query) {
    if (!query.dense()) return Verdict::no("needs dense operands");
    return accepts_gemm(query);
  }

  std::size_t scratch_bytes() const override { return a_.scratch_bytes() + gemm_.scratch_bytes(); }
  std::size_t resident_bytes() const override {
    return a_.resident_bytes() + (b_ ? b_->resident_bytes() : 0);
  }

  void run(const KernelArgs& args) override {
    const Operands operands(*this, a_.ready(args.in<float>(0), args.scratch), args.in<float>(1),
                            args.out<float>(0));
    gemm_.run(operands, args.scratch + a_.scratch_bytes());
  }

 private:
  class Operands : public GemmOperands {
   public:
    Operands(const MatMulGemm& kernel, const float* a, const float* b, float* y)
        : kernel_(kernel),
          g_(kernel.g_),
          a_(a),
          b_(b),
          packed_b_(kernel.b_ ? kernel.b_->ready(b, nullptr) : nullptr),
          y_(y) {}

    const float* rows(std::int64_t batch) const override {
      return a_ + g_.batch_a[static_cast<std::size_t>(batch)];
    }
    const float* columns(std::int64_t batch) const override {
      if (packed_b_ == nullptr) return nullptr;
      const auto matrix = g_.batch_b[static_cast<std::size_t>(batch)] / (g_.k * g_.n);
      return packed_b_ + matrix * packed_columns(g_.n, g_.k);
    }
    void pack(std::int64_t batch, Range k, Range n, float* panels) const override {
      kernel_.pack_b_block(b_ + g_.batch_b[static_cast<std::size_t>(batch)], k, n, panels);
    }
    void store(std::int64_t batch, const GemmBlock& block) const override {
      float* y = y_ + batch * g_.m * g_.n;
      for (auto m = block.m.begin; m < block.m.end; ++m) {
        std::copy_n(block.values + (m - block.m.begin) * block.stride, block.n.size(),
                    y + m * g_.n + block.n.begin);
      }
    }

   private:
    const MatMulGemm& kernel_;
    const MatMulGeometry& g_;
    const float* a_;
    const float* b_;
    const float* packed_b_;
    float* y_;
  };

  void pack_a(std::int64_t count, const float* from, float* to) const {
    const auto size = g_.m * g_.k;
    parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        const RowSource source = {.data = from + i * size,
                                  .row_stride = op_.transpose_a ? 1 : g_.k,
                                  .channel_stride = op_.transpose_a ? g_.m : 1,
                                  .channels = g_.k};
        pack_rows(source, g_.m, to + i * size, rounding_);
      }
    });
  }

  void pack_b(std::int64_t count, const float* from, float* to) const {
    for (std::int64_t i = 0; i < count; ++i) {
      pack_b_block(from + i * g_.k * g_.n, {0, g_.k}, {0, g_.n},
                   to + i * packed_columns(g_.n, g_.k));
    }
  }

  void pack_b_block(const float* b, Range k, Range n, float* panels) const {
    pack_columns(b, op_.transpose_b ? g_.k : g_.n, op_.transpose_b, k, n, panels, rounding_);
  }

  MatMul op_;
  MatMulGeometry g_;
  Rounding rounding_;
  BlockedGemm gemm_;
  PackedOperand a_;
  std::optional<PackedOperand> b_;  ///< when constant
};

}  // namespace

void add_matmul_kernels(KernelList& list) {
  list.push_back(kernel_entry<MatMulGemm>(MatMul::kName, "gemm"));
}

}  // namespace triptych::cpu
