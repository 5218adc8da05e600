// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/import_graph.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/memory_budget.h"
#include "core/graph/reference.h"
#include "core/onnx/element_type.h"
#include "core/ops/assign.h"
#include "core/ops/dropout.h"
#include "core/ops/formula.h"
#include "core/ops/reshape.h"

namespace triptych::onnx {
namespace {

/// Elements of a value that is computed at load: shapes, and arithmetic with them.
constexpr std::int64_t kMostFolded = 1024;
constexpr double kMostFoldedFlops = 1e6;

constexpr std::int64_t kMostNodes = 1 << 16;
/// Two sizes can be multiplied, also of a tensor that is empty because of a third.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 31;

void require_sizes(const Shape& shape) {
  if (shape.rank() > kMaxRank) {
    throw InvalidArgument(fmt::format("{} dimensions; {} is the limit", shape.rank(), kMaxRank));
  }
  const auto fits = [](std::int64_t size) { return size <= kLargestSize; };
  if (std::ranges::all_of(shape.dims(), fits)) return;
  throw InvalidArgument(fmt::format("{} has a size above {}", to_string(shape), kLargestSize));
}

/// True when computing the result at load takes no time worth speaking of.
bool folds(const Op& op, Specs inputs, Specs outputs) {
  if (op.flops(inputs, outputs) > kMostFoldedFlops) return false;
  const auto small = [](const TensorSpec& spec) { return spec.shape.elements() <= kMostFolded; };
  return std::ranges::all_of(inputs, small) && std::ranges::all_of(outputs, small);
}

}  // namespace

ValueId ImportGraph::add_input(const std::string& name, TensorSpec spec, TensorPtr given) {
  require_sizes(spec.shape);
  const auto id = graph_.add_input(name, std::move(spec));
  if (given != nullptr && given->elements() <= kMostFolded) given_.emplace(id, std::move(given));
  return id;
}

void ImportGraph::require_room(const TensorSpec& spec) {
  memory_budget().require(spec.bytes(), fmt::format("a constant {}", to_string(spec)));
}

ValueId ImportGraph::add_constant(const std::string& name, TensorPtr value) {
  require_sizes(value->spec().shape);
  return graph_.add_constant(name, std::move(value));
}

ValueId ImportGraph::add_state(const std::string& name, TensorPtr initial, StateRole role) {
  require_sizes(initial->spec().shape);
  return graph_.add_state(name, std::move(initial), role);
}

ValueId ImportGraph::constant(Tensor value) {
  return add_constant(node_ + ".constant", std::make_shared<const Tensor>(std::move(value)));
}

void ImportGraph::mark_output(const std::string& name, ValueId value) {
  // A name of its own, regardless of any suffix.
  const auto own = graph_.add_node(make_op(Identity{}), std::vector{value}, "output." + name);
  graph_.mark_output(name, own.front());
}

std::vector<ValueId> ImportGraph::dropout(ValueId x, double ratio) {
  if (!seed_) throw UnsupportedError("training with a ratio that is not 0");
  if (!step_.valid()) {
    auto none = std::make_shared<const Tensor>(scalar_tensor<std::int64_t>(0));
    step_ = add_state("dropout.step", std::move(none), StateRole::Other);
  }
  Dropout op;
  op.ratio = static_cast<float>(ratio);
  op.training_mode = true;
  op.seed = *seed_;
  op.stream = dropouts_++;
  return emit(make_op(op), std::vector{x, step_});
}

void ImportGraph::count_run() {
  if (!step_.valid()) return;
  begin_node(graph_.value(step_).name);
  const auto next = Formula(*this).add(step_, 1.0);
  emit(make_op(Assign{}), std::vector{step_, next});
}

TensorPtr ImportGraph::known(ValueId value) const {
  if (is_constant(value)) return graph_.value(value).data;
  const auto found = given_.find(value);
  return found == given_.end() ? nullptr : found->second;
}

void ImportGraph::check(const Op& op, Specs inputs, Specs outputs) {
  if (std::ssize(graph_.nodes()) >= kMostNodes) {
    throw InvalidArgument(fmt::format("it becomes more than {} operators", kMostNodes));
  }
  for (const auto& output : outputs) {
    require_sizes(output.shape);
    memory_budget().require(output.bytes(),
                            fmt::format("[{}] its output {}", op.name(), to_string(output)));
  }
  const auto flops = op.flops(inputs, outputs);
  if (flops > flops_left_) {
    throw InvalidArgument(fmt::format("[{}] it takes {:.3g} operations", op.name(), flops));
  }
  flops_left_ -= flops;
}

std::vector<TensorPtr> ImportGraph::evaluate(const Op& op, Values inputs, Specs outputs) const {
  std::vector<RefTensor> values;
  for (const auto input : inputs) values.push_back(to_reference(*known(input)));
  std::vector<RefTensor> results;
  for (const auto& output : outputs) {
    results.push_back(
        {output, std::vector<double>(static_cast<std::size_t>(output.shape.elements()))});
  }
  op.reference(values, results);
  std::vector<TensorPtr> tensors;
  tensors.reserve(results.size());
  for (const auto& result : results) {
    tensors.push_back(std::make_shared<const Tensor>(from_reference(result)));
  }
  return tensors;
}

std::vector<ValueId> ImportGraph::emit(OpPtr op, Values inputs) {
  const auto specs = graph_.specs(inputs);
  const auto outputs = op->infer(specs);
  check(*op, specs, outputs);
  const auto is_known = [&](ValueId id) { return known(id) != nullptr; };
  const bool small = !inputs.empty() && folds(*op, specs, outputs);
  std::vector<TensorPtr> results;
  if (small && std::ranges::all_of(inputs, is_known)) results = evaluate(*op, inputs, outputs);
  const auto constant = [&](ValueId id) { return is_constant(id); };
  if (!results.empty() && std::ranges::all_of(inputs, constant)) {
    std::vector<ValueId> ids;
    ids.reserve(results.size());
    for (auto& result : results) ids.push_back(add_constant(node_, std::move(result)));
    return ids;
  }
  auto ids = graph_.add_node(std::move(op), inputs, node_);
  for (std::size_t i = 0; i < results.size(); ++i) given_.emplace(ids[i], std::move(results[i]));
  return ids;
}

}  // namespace triptych::onnx
