// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/random/grower.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "core/graph/reference.h"

namespace triptych::conformance {
namespace {

std::pair<double, double> default_range(DType dtype, double limit) {
  if (dtype == DType::Bool) return {0, 1};
  if (dtype == DType::U8) return {0, 8};
  const double high = std::min(limit, is_floating(dtype) ? 2.0 : 5.0);
  return {-high, high};
}

}  // namespace

Shape Grower::shape(std::int64_t min_rank, std::int64_t max_rank) {
  static const std::vector<std::int64_t> some_sizes = {1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9};
  Dims dims(static_cast<std::size_t>(between(min_rank, max_rank)));
  for (auto& size : dims) size = one_of(some_sizes) * stretch();
  while (Shape(dims).elements() > most_leaf_elements()) {
    auto& largest = *std::ranges::max_element(dims);
    largest = (largest + 1) / 2;
  }
  return Shape(std::move(dims));
}

Shape Grower::broadcast_variant(const Shape& shape) {
  Dims dims = shape.dims();
  for (auto& size : dims) {
    if (chance(0.3)) size = 1;
  }
  while (!dims.empty() && chance(0.25)) dims.erase(dims.begin());
  return Shape(std::move(dims));
}

bool Grower::broadcasts(const Shape& a, const Shape& b) const {
  try {
    return broadcast_shapes(a, b).elements() <= most_elements();
  } catch (const InvalidArgument&) {
    return false;
  }
}

double Grower::least(ValueId value) const { return *std::ranges::min_element(values(value)); }

ValueId Grower::existing(const std::function<bool(ValueId)>& suits) {
  std::vector<ValueId> list;
  for (const auto value : pool_) {
    const bool usable = !is_retired(value) && shape_of(value).elements() <= most_elements();
    if (usable && suits(value)) list.push_back(value);
  }
  if (list.empty()) return {};
  const auto last = std::ssize(list) - 1;
  return list[static_cast<std::size_t>(std::max(between(0, last), between(0, last)))];
}

ValueId Grower::operand(const Want& want) {
  const auto found = existing([&](ValueId value) {
    const auto rank = shape_of(value).rank();
    return std::ranges::find(want.dtypes, spec(value).dtype) != want.dtypes.end() &&
           rank >= want.min_rank && rank <= want.max_rank && largest_magnitude(value) <= want.limit;
  });
  if (found.valid() && chance(0.85)) return found;
  const auto dtype = one_of(want.dtypes);
  const auto [low, high] = default_range(dtype, want.limit);
  return leaf({dtype, shape(want.min_rank, want.max_rank)}, low, high);
}

ValueId Grower::operand_of(const TensorSpec& wanted, double limit) {
  const auto found = existing(
      [&](ValueId value) { return spec(value) == wanted && largest_magnitude(value) <= limit; });
  if (found.valid() && chance(0.8)) return found;
  const auto [low, high] = default_range(wanted.dtype, limit);
  return leaf(wanted, low, high);
}

ValueId Grower::partner(ValueId x) {
  const auto wanted = spec(x);
  const auto found = existing([&](ValueId value) {
    return spec(value).dtype == wanted.dtype && largest_magnitude(value) <= 32 &&
           broadcasts(shape_of(value), wanted.shape);
  });
  if (found.valid() && chance(0.75)) return found;
  return operand_of({wanted.dtype, broadcast_variant(wanted.shape)});
}

ValueId Grower::image(double limit) {
  const auto found = existing([&](ValueId value) {
    const auto rank = shape_of(value).rank();
    return spec(value).dtype == DType::F32 && (rank == 3 || rank == 4) &&
           largest_magnitude(value) <= limit;
  });
  if (found.valid() && chance(0.85)) return found;
  // Planes of 16 or 64 elements let concats be written in place.
  const auto side = one_of<std::int64_t>({1, 3, 4, 4, 5, 7, 8, 9}) * stretch();
  Dims dims = {between(1, 2), between(1, 6), side, chance(0.7) ? side : between(1, 9) * stretch()};
  if (chance(0.25)) dims.pop_back();
  const auto [low, high] = default_range(DType::F32, limit);
  return leaf({DType::F32, Shape(std::move(dims))}, low, high);
}

Tensor Grower::fill(const TensorSpec& wanted, double low, double high) {
  std::vector<double> data(static_cast<std::size_t>(wanted.shape.elements()));
  // A grid has equal values and zeros: ties, kinks and comparisons that hold.
  const bool on_grid = !options_.smooth && chance(0.3);
  for (auto& value : data) {
    const double uniform = random_.bits() * 0x1p-32;
    if (!is_floating(wanted.dtype)) {
      value = std::floor(low + (high - low + 1) * uniform);
    } else {
      value = low + (high - low) * uniform;
      if (on_grid) value = std::clamp(std::round(value * 4) / 4, low, high);
    }
  }
  return from_doubles(wanted, data);
}

ValueId Grower::leaf(const TensorSpec& wanted, double low, double high) {
  const auto draw = between(0, 9);
  if (draw < 2) return constant(wanted, low, high);
  if (draw < 4) return state(wanted, low, high);
  const auto data = fill(wanted, low, high);
  const auto id = graph_.add_input(fmt::format("x{}", leaf_count_++), wanted);
  inputs_[id] = to_reference(data);
  record(id, inputs_[id], true);
  return id;
}

ValueId Grower::constant(const TensorSpec& wanted, double low, double high) {
  auto data = std::make_shared<const Tensor>(fill(wanted, low, high));
  const auto id = graph_.add_constant(fmt::format("c{}", leaf_count_++), data);
  record(id, to_reference(*data), true);
  return id;
}

ValueId Grower::scalar(DType dtype, double value) {
  const TensorSpec wanted{dtype, {}};
  auto data = std::make_shared<const Tensor>(from_doubles(wanted, std::array{value}));
  const auto id = graph_.add_constant(fmt::format("c{}", leaf_count_++), data);
  record(id, to_reference(*data), false);
  return id;
}

ValueId Grower::state(const TensorSpec& wanted, double low, double high) {
  auto data = fill(wanted, low, high);
  auto values = to_reference(data);
  const auto id = graph_.add_state(fmt::format("s{}", leaf_count_++), std::move(data));
  record(id, std::move(values), true);
  return id;
}

void Grower::record(ValueId value, RefTensor tensor, bool usable) {
  double smallest = 1e300, largest = 0;
  for (const auto element : tensor.values) {
    if (!std::isfinite(element)) {
      throw std::logic_error("a maker made a value that is not finite:\n" + to_text(graph_));
    }
    smallest = std::min(smallest, std::fabs(element));
    largest = std::max(largest, std::fabs(element));
  }
  const auto count = value.index() + 1;
  values_.resize(count);
  magnitudes_.resize(count);
  version_.resize(count);
  retired_.resize(count, false);
  values_[value.index()] = std::move(tensor);
  magnitudes_[value.index()] = {smallest, largest};
  version_[value.index()] = value;
  if (usable) pool_.push_back(value);
}

std::vector<ValueId> Grower::add(const OpPtr& op, const std::vector<ValueId>& inputs) {
  std::vector<RefTensor> tensors;
  for (const auto input : inputs) tensors.push_back(values_[input.index()]);
  auto results = evaluate_reference(*op, tensors);
  auto outputs = graph_.add_node(op, inputs);
  const bool only_first = options_.smooth && !op->updates(static_cast<int>(inputs.size())).empty();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    record(outputs[i], std::move(results[i]), !only_first || i == 0);
  }
  if (op->view()) version_[outputs[0].index()] = version_[inputs[0].index()];
  for (const auto& update : graph_.nodes().back().updates()) retire(update.before);
  return outputs;
}

RandomGraph Grower::finish() {
  const auto consumers = graph_.consumers();
  for (const auto value : pool_) {
    if (is_retired(value)) continue;
    // Results of an update need not be read: the state shows them.
    const bool is_activation = graph_.value(value).kind == ValueKind::Activation;
    const bool updates =
        is_activation && !graph_.node(graph_.value(value).producer).updates().empty();
    const bool unread = consumers[value.index()].empty() && (!updates || chance(0.5));
    if (is_activation ? unread || chance(0.1) : chance(0.02)) {
      graph_.mark_output(fmt::format("y{}", graph_.outputs().size()), value);
    }
  }
  return {std::move(graph_), std::move(inputs_)};
}

}  // namespace triptych::conformance
