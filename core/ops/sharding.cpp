// SPDX-License-Identifier: Apache-2.0
#include "core/ops/sharding.h"

namespace triptych {

std::vector<Sharding> elementwise_shardings(Specs inputs, Specs outputs) {
  std::vector<Sharding> rules;
  const auto rank = outputs[0].shape.rank();
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    auto& rule = rules.emplace_back(Sharding{.outputs = {axis}});
    for (const auto& input : inputs) {
      const auto own = axis - (rank - input.shape.rank());  // broadcasting aligns last axes
      rule.inputs.push_back(own >= 0 && input.shape[own] != 1 ? own : Sharding::kWhole);
    }
  }
  return rules;
}

std::vector<Sharding> channel_shardings(Specs inputs, Specs outputs) {
  const auto axes = [](Specs specs) {
    std::vector<std::int64_t> channels;
    for (const auto& spec : specs) channels.push_back(spec.shape.rank() > 1 ? 1 : 0);
    return channels;
  };
  return {{.inputs = axes(inputs), .outputs = axes(outputs)}};
}

Sharding linear_sharding() { return {.inputs = {Sharding::kTerm}, .outputs = {Sharding::kTerm}}; }

std::vector<Sharding> product_shardings(const ProductAxes& axes, bool has_bias,
                                        bool has_activation) {
  using Where = Sharding::Where;
  const bool has_rows = axes.a_rows >= 0;
  std::vector<Sharding> rules;
  if (!has_bias && !has_activation) {
    rules.push_back({.inputs = {axes.a_sum, axes.b_sum},
                     .outputs = {Sharding::kTerm},
                     .where = Where::WeightsAreCut,
                     .cuts_weights = has_rows});
  }
  Sharding columns = {.inputs = {Sharding::kWhole, axes.b_columns},
                      .outputs = {axes.y_columns},
                      .where = Where::WeightsAreCut,
                      .cuts_weights = true};
  if (has_bias) columns.inputs.push_back(0);
  rules.push_back(std::move(columns));
  if (has_rows) {
    rules.push_back({.inputs = {axes.a_rows, Sharding::kWhole},
                     .outputs = {axes.y_rows},
                     .where = Where::ResultIsCut});
  }
  return rules;
}

}  // namespace triptych
