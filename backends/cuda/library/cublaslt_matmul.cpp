// MatMul by cuBLASLt: under f32 on CUDA cores in float32, under bf16 on operands that are copied
// and rounded to bfloat16, products summed in float32.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "backends/cuda/device/gpu_device.h"
#include "backends/cuda/kernels/repack.h"
#include "backends/cuda/library/column_major.h"
#include "backends/cuda/library/cublaslt_calls.h"
#include "backends/cuda/library/cublaslt_rules.h"
#include "backends/cuda/library/library_kernels.h"

namespace triptych::cuda {
namespace {

using gpu::GpuDevice;

constexpr std::size_t kMostWorkspaceBytes = std::size_t{1} << 26;
constexpr int kMostAlgorithms = 16;

void check(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const auto message = fmt::format("cuBLASLt: {}: {}", doing, cublaslt().status_string(status));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) throw UnsupportedError(message);
  throw DeviceError(message);
}

/// One for each device.
class Handle {
 public:
  explicit Handle(GpuDevice&) { check(cublaslt().create(&raw_), "opening the library"); }
  ~Handle() { cublaslt().destroy(raw_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cublasLtHandle_t get() const { return raw_; }

 private:
  cublasLtHandle_t raw_ = nullptr;
};

/// A matrix [rows, columns], column-major and dense, once for each batch entry.
class MatrixLayout {
 public:
  MatrixLayout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t batch,
               std::int64_t batch_stride) {
    check(cublaslt().layout_create(&raw_, type, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
          "describing a matrix");
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch_stride);
  }
  ~MatrixLayout() { cublaslt().layout_destroy(raw_); }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  cublasLtMatrixLayout_t get() const { return raw_; }

 private:
  template <class T>
  void set(cublasLtMatrixLayoutAttribute_t name, T value) {
    check(cublaslt().layout_set(raw_, name, &value, sizeof(value)), "describing a matrix");
  }
  cublasLtMatrixLayout_t raw_ = nullptr;
};

class Operation {
 public:
  explicit Operation(const BlasProduct& product) {
    check(cublaslt().matmul_desc_create(&raw_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "describing a product");
    transpose(CUBLASLT_MATMUL_DESC_TRANSA, product.left);
    transpose(CUBLASLT_MATMUL_DESC_TRANSB, product.right);
  }
  ~Operation() { cublaslt().matmul_desc_destroy(raw_); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  cublasLtMatmulDesc_t get() const { return raw_; }

 private:
  void transpose(cublasLtMatmulDescAttributes_t name, const BlasFactor& factor) {
    const cublasOperation_t value = factor.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublaslt().matmul_desc_set(raw_, name, &value, sizeof(value)), "describing a product");
  }
  cublasLtMatmulDesc_t raw_ = nullptr;
};

/// Choice of the heuristic.
class Preference {
 public:
  Preference(Contract contract, std::uint32_t left_alignment, std::uint32_t right_alignment,
             std::uint32_t result_alignment) {
    check(cublaslt().preference_create(&raw_), "describing preferences");
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspaceBytes);
    // Partial sums in float32, added up in a fixed order.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    set(CUBLASLT_MATMUL_PREF_IMPL_MASK, allowed_implementations(contract));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, left_alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, right_alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, result_alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, result_alignment);
  }
  ~Preference() { cublaslt().preference_destroy(raw_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  cublasLtMatmulPreference_t get() const { return raw_; }

 private:
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t name, T value) {
    check(cublaslt().preference_set(raw_, name, &value, sizeof(value)), "describing preferences");
  }
  cublasLtMatmulPreference_t raw_ = nullptr;
};

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// A value that may lie inside of another one (a concat's part does not tell) starts at an element.
std::uint32_t alignment_of(const Operand& operand) {
  return operand.spec.shape.rank() > 0 && operand.spec.shape[0] > 1 ? 16 : 4;
}

class CublasLtMatMul : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (!cublaslt_problem().empty()) return Verdict::no(cublaslt_problem());
    if (!allowed_implementations(query.contract)) {
      return Verdict::no(fmt::format("no library states the order of its sums, as {} asks",
                                     to_string(query.contract)));
    }
    if (!query.dense()) return Verdict::no("needs dense operands");
    const auto problem = product_of(query).problem;
    return problem.empty() ? Verdict::yes() : Verdict::no(problem);
  }

  CublasLtMatMul(const KernelQuery& query, Device& device)
      : round_(query.contract == Contract::Bf16),
        handle_(dynamic_cast<GpuDevice&>(device).shared<Handle>()),
        product_(product_of(query)),
        elements_{query.inputs[1].spec.shape.elements(), query.inputs[0].spec.shape.elements()},
        operation_(product_),
        left_(layout_of(product_.left)),
        right_(layout_of(product_.right)),
        result_(CUDA_R_32F, product_.m, product_.n, product_.batch, product_.m * product_.n) {
    choose_algorithm(query);
  }

  std::size_t scratch_bytes() const override {
    return packed_bytes(0) + packed_bytes(1) + workspace_bytes_;
  }

  void run(const KernelArgs& args) override {
    const void* left = args.inputs[1];
    const void* right = args.inputs[0];
    if (round_) {
      const auto& f = gpu::repacking();
      f.round(args.stream, args.in<float>(1), args.scratch, elements_[0]);
      f.round(args.stream, args.in<float>(0), args.scratch + packed_bytes(0), elements_[1]);
      left = args.scratch;
      right = args.scratch + packed_bytes(0);
    }
    const float one = 1, zero = 0;
    float* y = args.out<float>(0);
    check(cublaslt().matmul(handle_.get(), operation_.get(), &one, left, left_.get(), right,
                            right_.get(), &zero, y, result_.get(), y, result_.get(), &algorithm_,
                            args.scratch + packed_bytes(0) + packed_bytes(1), workspace_bytes_,
                            static_cast<gpu::GpuStream*>(args.stream)->get()),
          "multiplying");
  }

 private:
  static BlasProduct product_of(const KernelQuery& query) {
    const auto& op = query.as<MatMul>();
    return blas_product(op, MatMulGeometry::of(op, query.inputs[0].spec, query.inputs[1].spec));
  }
  MatrixLayout layout_of(const BlasFactor& factor) const {
    return {round_ ? CUDA_R_16BF : CUDA_R_32F, factor.rows, factor.columns, product_.batch,
            factor.batch_stride};
  }
  /// Bytes of the rounded copy of the left (0) or the right (1) factor.
  std::size_t packed_bytes(int factor) const {
    return round_ ? aligned(static_cast<std::size_t>(elements_[factor]) * 2) : 0;
  }

  void choose_algorithm(const KernelQuery& query) {
    const Preference preference(query.contract, round_ ? 256 : alignment_of(query.inputs[1]),
                                round_ ? 256 : alignment_of(query.inputs[0]),
                                alignment_of(query.outputs[0]));
    cublasLtMatmulHeuristicResult_t found[kMostAlgorithms];
    int count = 0;
    check(cublaslt().algo_get_heuristic(handle_.get(), operation_.get(), left_.get(), right_.get(),
                                        result_.get(), result_.get(), preference.get(),
                                        kMostAlgorithms, found, &count),
          "asking the heuristic");
    for (int i = 0; i < count; ++i) {
      if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
      std::uint64_t flags = 0;
      std::size_t written = 0;
      check(cublaslt().algo_cap_get(&found[i].algo, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags,
                                    sizeof(flags), &written),
            "asking for an algorithm's arithmetic");
      if (!implementation_problem(flags, query.contract).empty()) continue;
      algorithm_ = found[i].algo;
      workspace_bytes_ = found[i].workspaceSize;
      return;
    }
    throw UnsupportedError(
        fmt::format("cuBLASLt has no algorithm for this product under {}; its heuristic named {}",
                    to_string(query.contract), count));
  }

  bool round_;
  Handle& handle_;
  BlasProduct product_;
  std::int64_t elements_[2];  ///< of the left factor, MatMul's b, and the right one
  Operation operation_;
  MatrixLayout left_, right_, result_;
  cublasLtMatmulAlgo_t algorithm_ = {};
  std::size_t workspace_bytes_ = 0;
};

}  // namespace

void add_cublaslt_kernels(std::vector<KernelEntry>& list) {
  list.push_back(kernel_entry<CublasLtMatMul>(MatMul::kName, "cublaslt", KernelRole::Library));
}

}  // namespace triptych::cuda
