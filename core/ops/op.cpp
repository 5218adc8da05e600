// SPDX-License-Identifier: Apache-2.0
#include "core/ops/op.h"

#include <fmt/core.h>

namespace triptych {

std::vector<ValueId> Op::gradient(const GradientContext&) const {
  throw InvalidArgument(fmt::format("[{}] has no gradient", name()));
}

std::vector<Sharding> Op::shardings(Specs, Specs, std::int64_t) const { return {}; }

double Op::flops(Specs, Specs) const { return 0; }

Cost Op::cost(Specs inputs, Specs outputs) const {
  Cost cost{.flops = flops(inputs, outputs)};
  for (const auto& spec : inputs) cost.bytes += static_cast<double>(spec.bytes());
  for (const auto& spec : outputs) cost.bytes += static_cast<double>(spec.bytes());
  return cost;
}

ErrorBound Op::error_bound(Specs) const { return {}; }

std::vector<ValueId> Op::expand(OpEmitter&, Values) const {
  throw InvalidArgument(fmt::format("[{}] is a primitive and has no expansion", name()));
}

std::vector<std::pair<int, int>> Op::updates(int) const { return {}; }

bool Op::may_overwrite(int) const { return false; }

std::string to_string(const Op& op) {
  std::string text(op.name());
  const auto attributes = op.attributes();
  if (attributes.empty()) return text;
  text += "(";
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    if (i > 0) text += ", ";
    text += to_string(attributes[i]);
  }
  return text + ")";
}

void require_inputs(std::string_view op, Specs inputs, std::size_t low, std::size_t high) {
  if (inputs.size() >= low && inputs.size() <= high) return;
  const auto wanted = low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
  throw_invalid(op, fmt::format("takes {} inputs, got {}", wanted, inputs.size()));
}

void require_dtype(std::string_view op, Specs inputs, std::size_t index, DType dtype) {
  if (inputs[index].dtype == dtype) return;
  throw_invalid(op, fmt::format("input {} is {}; its dtype must be {}", index,
                                to_string(inputs[index]), to_string(dtype)));
}

void require_rank(std::string_view op, Specs inputs, std::size_t index, std::int64_t rank) {
  if (inputs[index].shape.rank() == rank) return;
  throw_invalid(op, fmt::format("input {} is {}; its rank must be {}", index,
                                to_string(inputs[index]), rank));
}

void require_shape(std::string_view op, Specs inputs, std::size_t index, const Shape& shape) {
  if (inputs[index].shape == shape) return;
  throw_invalid(op, fmt::format("input {} is {}; its shape must be {}", index,
                                to_string(inputs[index]), to_string(shape)));
}

}  // namespace triptych
