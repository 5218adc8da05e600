// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"

#include "backends/cuda/kernels/device_table.h"
#include "backends/cuda/kernels/gemm.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// a [m, k] and b [k, n], each perhaps transposed in memory; y dense.
template <bool kRound, bool kTransposeA, bool kTransposeB>
struct MatMulProblem {
  using Value = float;
  static constexpr bool kRowsAlongK = !kTransposeA, kColumnsAlongN = !kTransposeB;

  GemmSizes sizes;
  Global<const float> left, right;
  Global<float> y;
  Global<const std::int64_t> offsets;  ///< of a, then of b, by batch entry

  __device__ float a(std::int64_t batch, std::int64_t m, std::int64_t k) const {
    const std::int64_t first = offsets[batch];
    return operand<kRound>(left[first + (kTransposeA ? k * sizes.m + m : m * sizes.k + k)]);
  }
  __device__ float b(std::int64_t batch, std::int64_t k, std::int64_t n) const {
    const std::int64_t first = offsets[sizes.batch + batch];
    return operand<kRound>(right[first + (kTransposeB ? n * sizes.k + k : k * sizes.n + n)]);
  }
  __device__ void store(std::int64_t batch, std::int64_t m, std::int64_t n, float sum) const {
    y[(batch * sizes.m + m) * sizes.n + n] = sum;
  }
};

class MatMulKernel : public Kernel {
 public:
  MatMulKernel(const KernelQuery& query, Device& device)
      : op_(query.as<MatMul>()),
        geometry_(MatMulGeometry::of(op_, query.inputs[0].spec, query.inputs[1].spec)),
        a_elements_(query.inputs[0].spec.shape.elements()),
        b_elements_(query.inputs[1].spec.shape.elements()),
        round_(rounds_operands(query.contract)),
        offsets_(copy_to_device(device, both(geometry_.batch_a, geometry_.batch_b))) {}

  static Verdict accepts(const KernelQuery& query) {
    if (!query.dense()) return Verdict::no("needs dense operands");
    const auto g =
        MatMulGeometry::of(query.as<MatMul>(), query.inputs[0].spec, query.inputs[1].spec);
    return accepts_gemm({static_cast<std::int64_t>(g.batch_a.size()), g.m, g.n, g.k},
                        query.contract);
  }

  std::size_t resident_bytes() const override { return offsets_->size(); }

  void run(const KernelArgs& args) override {
    round_ ? run_rounded<true>(args) : run_rounded<false>(args);
  }

 private:
  static std::vector<std::int64_t> both(std::vector<std::int64_t> a,
                                        const std::vector<std::int64_t>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  std::size_t batch() const { return geometry_.batch_a.size(); }

  template <bool kRound>
  void run_rounded(const KernelArgs& args) const {
    if (op_.transpose_a) {
      op_.transpose_b ? run_as<kRound, true, true>(args) : run_as<kRound, true, false>(args);
    } else {
      op_.transpose_b ? run_as<kRound, false, true>(args) : run_as<kRound, false, false>(args);
    }
  }

  template <bool kRound, bool kTransposeA, bool kTransposeB>
  void run_as(const KernelArgs& args) const {
    const auto& g = geometry_;
    const auto entries = static_cast<std::int64_t>(batch());
    const MatMulProblem<kRound, kTransposeA, kTransposeB> problem = {
        {entries, g.m, g.n, g.k},
        {args.in<float>(0), a_elements_},
        {args.in<float>(1), b_elements_},
        {args.out<float>(0), entries * g.m * g.n},
        {reinterpret_cast<const std::int64_t*>(offsets_->data()), 2 * entries}};
    launch_gemm(args.stream, "matmul", problem);
  }

  MatMul op_;
  MatMulGeometry geometry_;
  std::int64_t a_elements_, b_elements_;
  bool round_;
  std::unique_ptr<DeviceBuffer> offsets_;
};

}  // namespace

void add_matmul_kernels(KernelList& list) {
  list.push_back(kernel_entry<MatMulKernel>(MatMul::kName, "tiled"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
