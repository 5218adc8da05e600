// Matrix products of bfloat16 pairs (gemm/dot_unit.h). All of A is packed first, B block by block.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/cpu/gemm/dot_unit.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/packed_gemm.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/base/checked_math.h"
#include "core/ops/matmul.h"

namespace triptych::cpu {
namespace {

class MatMulDots : public Kernel {
 public:
  MatMulDots(const KernelQuery& query, Device& device)
      : op_(query.as<MatMul>()),
        g_(geometry_of(query)),
        gemm_({std::ssize(g_.batch_a), g_.m, g_.n, dot_depth(g_.k)}, device_threads(device)) {}

  static Verdict accepts(const KernelQuery& query) {
    return query.dense() ? accepts_dots(query) : Verdict::no("needs dense operands");
  }
  static Verdict worth(const KernelQuery& query) {
    const auto g = geometry_of(query);
    return worth_on_dots(g.m, g.k);
  }

  std::size_t scratch_bytes() const override {
    const auto words = checked_mul(std::ssize(g_.batch_a), round_up(matrix_words(), 16));
    return static_cast<std::size_t>(checked_mul(words, sizeof(DotWord))) + gemm_.scratch_bytes();
  }

  void run(const KernelArgs& args) override {
    auto* a = reinterpret_cast<DotWord*>(args.scratch);
    const auto step = round_up(matrix_words(), 16);
    for (std::size_t i = 0; i < g_.batch_a.size(); ++i) {
      const RowSource source = {.data = args.in<float>(0) + g_.batch_a[i],
                                .row_stride = op_.transpose_a ? 1 : g_.k,
                                .channel_stride = op_.transpose_a ? g_.m : 1,
                                .channels = g_.k};
      pack_dot_rows(source, g_.m, a + static_cast<std::int64_t>(i) * step);
    }
    const Operands operands(*this, a, args.in<float>(1), args.out<float>(0));
    gemm_.run(operands, args.scratch + std::ssize(g_.batch_a) * step * sizeof(DotWord));
  }

 private:
  class Operands : public BasicGemmOperands<DotWord> {
   public:
    Operands(const MatMulDots& kernel, const DotWord* a, const float* b, float* y)
        : kernel_(kernel), g_(kernel.g_), a_(a), b_(b), y_(y) {}

    const DotWord* rows(std::int64_t batch) const override {
      return a_ + batch * round_up(kernel_.matrix_words(), 16);
    }
    void pack(std::int64_t batch, Range k, Range n, DotWord* panels) const override {
      const bool transposed = kernel_.op_.transpose_b;
      pack_dot_columns(b_ + g_.batch_b[static_cast<std::size_t>(batch)], transposed ? g_.k : g_.n,
                       transposed, g_.k, k, n, panels);
    }
    void store(std::int64_t batch, const GemmBlock& block) const override {
      const auto* from = block.values;
      float* to = y_ + batch * g_.m * g_.n + block.n.begin;
      for (auto row = block.m.begin; row < block.m.end; ++row, from += block.stride)
        std::copy_n(from, block.n.size(), to + row * g_.n);
    }

   private:
    const MatMulDots& kernel_;
    const MatMulGeometry& g_;
    const DotWord* a_;
    const float* b_;
    float* y_;
  };

  static MatMulGeometry geometry_of(const KernelQuery& query) {
    return MatMulGeometry::merged(query.as<MatMul>(), query.inputs[0].spec, query.inputs[1].spec);
  }
  std::int64_t matrix_words() const { return checked_mul(g_.m, dot_depth(g_.k)); }

  MatMul op_;
  MatMulGeometry g_;
  PackedGemm gemm_;
};

}  // namespace

void add_matmul_dots_kernels(KernelList& list) {
  list.push_back(kernel_entry<MatMulDots>(MatMul::kName, "dots"));
  list.back().worth = &MatMulDots::worth;
}

}  // namespace triptych::cpu
