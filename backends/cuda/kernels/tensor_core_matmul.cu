// MatMul on the tensor cores: both operands are rounded to rows along k first.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/bf16_matrices.h"
#include "backends/cuda/kernels/tensor_core_gemm.cuh"
#include "backends/cuda/kernels/tensor_core_kernels.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// a [m, k] and b [n, k], y [m, n].
struct RoundedProblem {
  static constexpr bool kRowsAlongK = true, kColumnsAlongN = false;

  GemmSizes sizes;  ///< k: of a row, zeros behind it included
  Global<const BFloat16> left, right;
  Global<float> y;
  Global<const std::int64_t> offsets;  ///< of a, then of b, by batch entry

  struct Entry {
    GemmSizes sizes;
    Global<const BFloat16> left, right;
    MatrixOutput y;
    std::int64_t batch;

    __device__ PiecePlace at_a(std::int64_t m, std::int64_t k) const {
      return {m * sizes.k + k, m < sizes.m && k < sizes.k};
    }
    __device__ PiecePlace at_b(std::int64_t k, std::int64_t n) const {
      return {n * sizes.k + k, n < sizes.n && k < sizes.k};
    }
    __device__ void store(std::int64_t m, std::int64_t n, float sum) const {
      y.store(batch, m, n, sum);
    }
    __device__ void store_inside(std::int64_t m, std::int64_t n, float first, float second) const {
      y.store_inside(batch, m, n, first, second);
    }
  };
  __device__ Entry entry(std::int64_t batch) const {
    const std::int64_t of_left = offsets[batch], of_right = offsets[sizes.batch + batch];
    return {sizes, left.from(of_left), right.from(of_right), {y, sizes.m, sizes.n}, batch};
  }
};

class TensorCoreMatMul : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (!query.dense()) return Verdict::no("needs dense operands");
    return accepts_tensor_core(RoundedMatrices::sizes_of(query), query.contract);
  }

  TensorCoreMatMul(const KernelQuery& query, Device& device) : matrices_(query, device) {}

  std::size_t resident_bytes() const override { return matrices_.resident_bytes(); }
  std::size_t scratch_bytes() const override {
    return matrices_.bytes() + partial_bytes(matrices_.sizes());
  }

  void run(const KernelArgs& args) override {
    const auto& sizes = matrices_.sizes();
    matrices_.round(args);
    const RoundedProblem problem = {sizes,
                                    matrices_.left(args),
                                    matrices_.right(args),
                                    {args.out<float>(0), sizes.batch * sizes.m * sizes.n},
                                    matrices_.offsets()};
    launch_tensor_core_gemm(args.stream, "tensor-core", problem, args.scratch + matrices_.bytes());
  }

 private:
  RoundedMatrices matrices_;
};

}  // namespace

void add_tensor_core_matmul_kernels(KernelList& list) {
  add_for_bf16(list, kernel_entry<TensorCoreMatMul>(MatMul::kName, "tensor-core"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
