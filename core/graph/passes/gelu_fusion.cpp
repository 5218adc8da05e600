// x / 2 (1 + erf(x / sqrt 2)), which exporters write operator by operator, as one Gelu.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <set>

#include "core/graph/passes/passes.h"
#include "core/graph/passes/rewrite.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace triptych {
namespace {

class GeluFusion {
 public:
  explicit GeluFusion(const Graph& graph) : graph_(graph), rewriter_(graph) {}

  Graph run() {
    for (const auto& node : graph_.nodes()) find(node);
    for (const auto& node : graph_.nodes()) {
      if (const auto found = argument_.find(node.id); found != argument_.end()) {
        const std::vector inputs = {rewriter_.mapped(found->second)};
        rewriter_.map(node.outputs[0],
                      rewriter_.append(node, make_op(Unary(UnaryKind::Gelu)), inputs)[0]);
      } else if (!inner_.contains(node.id)) {
        rewriter_.copy(node);
      }
    }
    return rewriter_.finish();
  }

 private:
  /// A node that multiplies two values, or adds them: and the operand beside `value`.
  std::optional<ValueId> beside(const Node* node, BinaryKind kind, ValueId value) const {
    const auto* binary = node == nullptr ? nullptr : op_cast<Binary>(*node->op);
    if (binary == nullptr || binary->kind != kind) return {};
    return node->inputs[0] == value ? node->inputs[1] : node->inputs[0];
  }

  bool is_number(ValueId value, double number) const {
    const auto& [kind, data] = std::pair(graph_.value(value).kind, graph_.value(value).data);
    return kind == ValueKind::Constant && data->spec().dtype == DType::F32 &&
           data->elements() == 1 && std::fabs(double{data->as<float>()[0]} - number) < 1e-6;
  }

  const Node* producer(ValueId value) const {
    const auto id = graph_.value(value).producer;
    return id.valid() ? &graph_.node(id) : nullptr;
  }

  /// The factor beside the number, where the node is their product.
  std::optional<ValueId> times(const Node* node, double number) const {
    for (const std::size_t i : {0, 1}) {
      if (node == nullptr || node->inputs.size() != 2 || !is_number(node->inputs[i], number))
        continue;
      if (beside(node, BinaryKind::Mul, node->inputs[i])) return node->inputs[1 - i];
    }
    return {};
  }

  /// x of x / sqrt(2).
  std::optional<ValueId> scaled(const Node* node) const {
    if (const auto x = times(node, 1 / std::numbers::sqrt2)) return x;
    const auto* binary = node == nullptr ? nullptr : op_cast<Binary>(*node->op);
    const bool divides = binary != nullptr && binary->kind == BinaryKind::Div &&
                         is_number(node->inputs[1], std::numbers::sqrt2);
    return divides ? std::optional(node->inputs[0]) : std::nullopt;
  }

  void find(const Node& erf) {
    const auto* unary = op_cast<Unary>(*erf.op);
    if (unary == nullptr || unary->kind != UnaryKind::Erf) return;
    const auto* scale = producer(erf.inputs[0]);
    const auto x = scaled(scale);
    if (!x || graph_.spec(*x).dtype != DType::F32 || rewriter_.only_reader(erf.inputs[0]) != &erf)
      return;
    const auto* sum = rewriter_.only_reader(erf.outputs[0]);
    const auto one = beside(sum, BinaryKind::Add, erf.outputs[0]);
    if (!one || !is_number(*one, 1)) return;
    const auto* product = rewriter_.only_reader(sum->outputs[0]);
    const auto other = beside(product, BinaryKind::Mul, sum->outputs[0]);
    if (!other || graph_.spec(product->outputs[0]) != graph_.spec(*x)) return;
    if (*other == *x) {
      const auto* last = rewriter_.only_reader(product->outputs[0]);
      if (times(last, 0.5) == product->outputs[0]) replace(*x, {scale, &erf, sum, product}, *last);
    } else if (const auto* half = producer(*other);
               times(half, 0.5) == *x && rewriter_.only_reader(*other) == product) {
      replace(*x, {scale, &erf, sum, half}, *product);
    }
  }

  void replace(ValueId x, const std::vector<const Node*>& inner, const Node& last) {
    argument_[last.id] = x;
    for (const auto* node : inner) inner_.insert(node->id);
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::map<NodeId, ValueId> argument_;  ///< x, by the last node
  std::set<NodeId> inner_;              ///< the other nodes, which nobody else reads
};

}  // namespace

Graph fuse_gelu(const Graph& graph) { return GeluFusion(graph).run(); }

}  // namespace triptych
