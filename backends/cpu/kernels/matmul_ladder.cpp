// The steps of the ladder (ladder/steps.h) as kernels, which run where they are forced. They see
// plain matrices: an operand that is transposed, or that the contract rounds, is copied first.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/ladder/steps.h"
#include "backends/cpu/ladder/traffic.h"
#include "core/ops/matmul.h"

namespace triptych::cpu {
namespace {

struct Naive {
  static constexpr std::string_view kName = "naive";
  static void run(const PlainProduct& product) { naive_product(product); }
  static std::vector<LevelTraffic> traffic(const ProductSizes& sizes, const Device& device) {
    return naive_traffic(sizes, Caches::of(device));
  }
};

struct Blocked {
  static constexpr std::string_view kName = "blocked";
  static void run(const PlainProduct& product) { blocked_product(product); }
  static std::vector<LevelTraffic> traffic(const ProductSizes& sizes, const Device& device) {
    return blocked_traffic(sizes, Caches::of(device));
  }
};

struct Vectorised {
  static constexpr std::string_view kName = "vectorised";
  static void run(const PlainProduct& product) { vectorised_product(product, {0, product.m}); }
  static std::vector<LevelTraffic> traffic(const ProductSizes& sizes, const Device& device) {
    return vectorised_traffic(sizes, Caches::of(device), 1);
  }
};

struct Threaded {
  static constexpr std::string_view kName = "threaded";
  static void run(const PlainProduct& product) { threaded_product(product); }
  static std::vector<LevelTraffic> traffic(const ProductSizes& sizes, const Device& device) {
    return vectorised_traffic(sizes, Caches::of(device), device_threads(device));
  }
};

struct OfEigen {
  static constexpr std::string_view kName = "eigen";
  static void run(const PlainProduct& product) { eigen_product(product); }
  static Verdict accepts(const KernelQuery& query) {
    return query.contract == Contract::F32
               ? Verdict::yes()
               : Verdict::no("is there to be compared under f32; Eigen promises no bits");
  }
};

template <class Step>
class LadderMatMul : public Kernel {
 public:
  LadderMatMul(const KernelQuery& query, Device&)
      : op_(query.as<MatMul>()),
        g_(geometry(query)),
        rounding_(rounding_of(query.contract)),
        a_elements_(query.inputs[0].spec.shape.elements()),
        b_elements_(query.inputs[1].spec.shape.elements()) {}

  static Verdict accepts(const KernelQuery& query) {
    if (!query.dense()) return Verdict::no("needs dense operands");
    if constexpr (requires { Step::accepts(query); }) {
      if (auto verdict = Step::accepts(query); !verdict.accepted) return verdict;
    }
    return accepts_gemm(query);
  }

  static std::vector<LevelTraffic> traffic(const KernelQuery& query, const Device& device) {
    const auto g = geometry(query);
    const ProductSizes sizes = {static_cast<double>(g.m), static_cast<double>(g.n),
                                static_cast<double>(g.k)};
    auto levels = Step::traffic(sizes, device);
    for (auto& level : levels) level.bytes *= static_cast<double>(g.batch_a.size());
    return levels;
  }

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(checked_add(copied_a(), copied_b())) * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    auto* scratch = reinterpret_cast<float*>(args.scratch);
    const float* a = args.in<float>(0);
    const float* b = args.in<float>(1);
    if (copied_a() > 0) {
      copy(a, a_elements_, op_.transpose_a, {.rows = g_.m, .columns = g_.k}, scratch);
      a = scratch;
    }
    if (copied_b() > 0) {
      copy(b, b_elements_, op_.transpose_b, {.rows = g_.k, .columns = g_.n}, scratch + copied_a());
      b = scratch + copied_a();
    }
    float* c = args.out<float>(0);
    for (std::size_t i = 0; i < g_.batch_a.size(); ++i, c += g_.m * g_.n) {
      Step::run({a + g_.batch_a[i], b + g_.batch_b[i], c, g_.m, g_.n, g_.k});
    }
  }

 private:
  static MatMulGeometry geometry(const KernelQuery& query) {
    return MatMulGeometry::of(query.as<MatMul>(), query.inputs[0].spec, query.inputs[1].spec);
  }

  std::int64_t copied(bool transposed, std::int64_t elements) const {
    return transposed || rounding_ != Rounding::None ? elements : 0;
  }
  std::int64_t copied_a() const { return copied(op_.transpose_a, a_elements_); }
  std::int64_t copied_b() const { return copied(op_.transpose_b, b_elements_); }

  /// All matrices among `elements`, each `plain.rows` x `plain.columns` afterwards.
  void copy(const float* from, std::int64_t elements, bool transposed, const MatrixView& plain,
            float* to) const {
    const auto size = plain.rows * plain.columns;
    for (std::int64_t done = 0; done < elements; done += size) {
      if (transposed) {
        transpose_matrix({from + done, plain.rows, plain.columns, plain.rows}, to + done,
                         plain.columns, rounding_);
      } else {
        copy_matrix({from + done, plain.columns, plain.rows, plain.columns}, to + done,
                    plain.columns, rounding_);
      }
    }
  }

  MatMul op_;
  MatMulGeometry g_;
  Rounding rounding_;
  std::int64_t a_elements_, b_elements_;
};

template <class Step>
void add_step(KernelList& list) {
  list.push_back(kernel_entry<LadderMatMul<Step>>(MatMul::kName, Step::kName, KernelRole::Lesson));
  if constexpr (requires { &Step::traffic; }) {
    list.back().traffic = &LadderMatMul<Step>::traffic;
  }
}

}  // namespace

void add_matmul_ladder_kernels(KernelList& list) {
  add_step<OfEigen>(list);
  add_step<Threaded>(list);
  add_step<Vectorised>(list);
  add_step<Blocked>(list);
  add_step<Naive>(list);
}

}  // namespace triptych::cpu
