// Matrix products: the rows of a stream past b. Gemm is accepted where the output unit can add c.
// Otherwise it is expanded into its parts.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"

#include <map>

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/stream_kernel.h"

namespace triptych::systolic {
namespace {

/// One of a product's operands as the other's stream or as the stationary matrix.
struct Side {
  std::size_t input;
  std::int64_t size;                       ///< rows of y, or columns
  std::int64_t stride, k_stride;           ///< elements between them, and along k
  std::int64_t y_stride;                   ///< between neighbours of this side in y
  const std::vector<std::int64_t>& batch;  ///< where each batch entry starts
};

class MatMulPlan {
 public:
  MatMulPlan(const MatMul& op, const KernelQuery& query, const PlanTarget& target)
      : target_(target),
        g_(MatMulGeometry::merged(op, query.inputs[0].spec, query.inputs[1].spec)),
        a_{0, g_.m, op.transpose_a ? 1 : g_.k, op.transpose_a ? g_.m : 1, g_.n, g_.batch_a},
        b_{1, g_.n, op.transpose_b ? g_.k : 1, op.transpose_b ? 1 : g_.n, 1, g_.batch_b},
        padded_(padded_channels(g_.k, target.group)) {}

  StreamPlan make() {
    for (std::size_t i = 0; i < g_.batch_a.size(); ++i) add_job(i);
    return std::move(plan_);
  }

 private:
  void add_job(std::size_t i) {
    const StreamProblem problem = {.x = {.in = a_.size, .out = a_.size},
                                   .channels = padded_,
                                   .group = target_.group,
                                   .columns = b_.size};
    plan_.jobs.push_back({.problem = problem,
                          .image = image_of(a_.batch[i]),
                          .matrix = matrix_of(b_.batch[i]),
                          .result = plan_.results.size()});
    ResultUnpacking result = {.offset = static_cast<std::int64_t>(i) * g_.m * g_.n,
                              .position_stride = a_.y_stride,
                              .positions = a_.size,
                              .stored_positions = a_.size};
    for (std::int64_t q = 0; q < b_.size; ++q) result.column_offsets.push_back(q * b_.y_stride);
    plan_.results.push_back(std::move(result));
  }

  std::size_t image_of(std::int64_t offset) {
    const auto [found, is_new] = images_.try_emplace(offset, plan_.images.size());
    if (is_new) {
      plan_.images.push_back({.input = a_.input,
                              .offset = offset,
                              .position_stride = a_.stride,
                              .channel_stride = a_.k_stride,
                              .positions = a_.size,
                              .channels = g_.k,
                              .padded = padded_});
    }
    return found->second;
  }

  std::size_t matrix_of(std::int64_t offset) {
    const auto [found, is_new] = matrices_.try_emplace(offset, plan_.matrices.size());
    if (is_new) {
      plan_.matrices.push_back({.input = b_.input,
                                .offset = offset,
                                .channel_stride = b_.k_stride,
                                .column_stride = b_.stride,
                                .channels = g_.k,
                                .padded = padded_,
                                .columns = b_.size});
    }
    return found->second;
  }

  PlanTarget target_;
  MatMulGeometry g_;
  Side a_, b_;
  std::int64_t padded_;
  std::map<std::int64_t, std::size_t> images_, matrices_;  ///< by where they start
  StreamPlan plan_;
};

struct MatMulPlanner {
  static Verdict accepts(const KernelQuery& query) {
    if (!query.dense()) return Verdict::no("needs dense operands");
    return accepts_contract(query);
  }
  static StreamPlan plan(const KernelQuery& query, const PlanTarget& target) {
    return MatMulPlan(query.as<MatMul>(), query, target).make();
  }
};

/// True when c is one value per column, or one for all.
bool is_column_bias(const Shape& c, const Shape& y) {
  return c.elements() == 1 || (c.elements() == y[1] && c[c.rank() - 1] == y[1]);
}

struct GemmPlanner {
  static Verdict accepts(const KernelQuery& query) {
    const auto& op = query.as<Gemm>();
    if (op.alpha != 1) return Verdict::no("does not scale by alpha; it is taken apart");
    if (query.inputs.size() > 2) {
      if (op.beta != 1) return Verdict::no("does not scale by beta; it is taken apart");
      if (!is_column_bias(query.inputs[2].spec.shape, query.outputs[0].spec.shape)) {
        return Verdict::no("adds one value per column only; it is taken apart");
      }
    }
    return MatMulPlanner::accepts(query);
  }

  static StreamPlan plan(const KernelQuery& query, const PlanTarget& target) {
    const auto& op = query.as<Gemm>();
    MatMul product;
    product.transpose_a = op.transA;
    product.transpose_b = op.transB;
    auto plan = MatMulPlan(product, query, target).make();
    if (query.inputs.size() < 3) return plan;
    const auto columns = query.outputs[0].spec.shape[1];
    const auto one = query.inputs[2].spec.shape.elements() == 1;
    plan.registers.push_back({.input = 2, .columns = columns, .repeat = one ? columns : 1});
    for (auto& job : plan.jobs) job.registers = 0;
    return plan;
  }
};

}  // namespace

void add_matmul_kernels(KernelLists& lists) {
  lists.bf16.push_back(stream_entry<MatMulPlanner>(MatMul::kName));
  lists.bf16.push_back(stream_entry<GemmPlanner>(Gemm::kName));
}

}  // namespace triptych::systolic
