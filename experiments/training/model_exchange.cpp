// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/model_exchange.h"

#include <algorithm>

#include "core/base/error.h"

namespace triptych::training {
namespace {

/// The first `count` of `values`, which keeps the rest.
std::span<const float> take(std::span<const float>& values, std::size_t count) {
  TRIPTYCH_ASSERT(count <= values.size());
  const auto first = values.first(count);
  values = values.subspan(count);
  return first;
}

}  // namespace

std::vector<float> ModelExchange::model() const {
  std::vector<float> values;
  for (const auto& name : exchange_.returned) {
    const Tensor state = states_.read(name);
    values.insert(values.end(), state.as<float>().begin(), state.as<float>().end());
  }
  return values;
}

void ModelExchange::set_model(std::span<const float> values) {
  for (const auto& name : exchange_.returned) {
    Tensor state = states_.read(name);
    std::ranges::copy(take(values, state.as<float>().size()), state.as<float>().begin());
    states_.write(name, state);
  }
}

void ModelExchange::contribute(std::span<const float> before, std::span<float> contribution) const {
  if (exchange_.contributed.empty()) {
    TRIPTYCH_ASSERT(before.size() == contribution.size());
    std::ranges::transform(model(), before, contribution.begin(), std::minus<>{});
    return;
  }
  for (const auto& name : exchange_.contributed) {
    const Tensor gradient = executor_.output(name);
    const auto values = gradient.as<float>();
    TRIPTYCH_ASSERT(values.size() <= contribution.size());
    std::ranges::copy(values, contribution.begin());
    contribution = contribution.subspan(values.size());
  }
}

void ModelExchange::apply(std::span<const float> contribution, float learning_rate, int workers,
                          const std::function<void()>& run) {
  if (exchange_.contributed.empty()) {
    auto values = model();
    TRIPTYCH_ASSERT(values.size() == contribution.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] += contribution[i] / static_cast<float>(workers);
    return set_model(values);
  }
  const auto& graph = executor_.plan().graph;
  for (const auto& name : exchange_.contributed) {
    const auto& shape = graph.spec(graph.find(name)).shape;
    const auto values = take(contribution, static_cast<std::size_t>(shape.elements()));
    executor_.set_input(name, Tensor(shape, values));
  }
  executor_.set_input("learning_rate", scalar_tensor(learning_rate));
  run();
}

}  // namespace triptych::training
