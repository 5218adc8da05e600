// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/batch_statistics.h"

#include <algorithm>

#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"

namespace triptych::training {
namespace {

/// Sums over batches of one layer's means and variances.
struct Moments {
  std::vector<double> mean;    ///< of means
  std::vector<double> square;  ///< of variances and squared means
};

void add(Moments& moments, const Tensor& mean, const Tensor& variance) {
  const auto means = mean.as<float>(), variances = variance.as<float>();
  moments.mean.resize(means.size());
  moments.square.resize(means.size());
  for (std::size_t i = 0; i < means.size(); ++i) {
    const double m = means[i], square = m * m;
    moments.mean[i] += m;
    moments.square[i] += variances[i] + square;
  }
}

/// Total variance: the mean of the variances and the variance of the means.
void set(const Moments& moments, double batches, Tensor& mean, Tensor& variance) {
  for (std::size_t i = 0; i < moments.mean.size(); ++i) {
    const double m = moments.mean[i] / batches, square = m * m;
    mean.as<float>()[i] = static_cast<float>(m);
    variance.as<float>()[i] =
        static_cast<float>(std::max(0.0, moments.square[i] / batches - square));
  }
}

}  // namespace

BatchStatistics::BatchStatistics(const DeviceSet& machine, const ModelConfig& model,
                                 std::int64_t batch, Trainer& trainer)
    : machine_(machine), trainer_(trainer), graph_(build_statistics_graph(model, batch)) {
  for (const auto state : graph_.values_of(ValueKind::State)) {
    const auto& value = graph_.value(state);
    if (value.role == StateRole::Statistic) names_.push_back(value.name);
  }
}

Executor& BatchStatistics::executor() {
  if (!executor_) {
    auto plan =
        make_plan(optimize(std::move(graph_), {}), machine_.devices(), machine_.plan_options());
    executor_ = std::make_unique<Executor>(std::move(plan), trainer_.evaluation_states(),
                                           &trainer_.executor());
  }
  return *executor_;
}

TensorMap BatchStatistics::estimate(std::int64_t batches,
                                    const std::function<Tensor(std::int64_t)>& x,
                                    const std::function<bool()>& go_on) {
  auto& states = trainer_.evaluation_states();
  TensorMap statistics;
  for (const auto& name : names_) statistics.emplace(name, states.read(name));
  const ReplacedStates as_before(states, statistics);
  std::vector<Moments> moments(names_.size() / 2);
  for (std::int64_t i = 0; i < batches; ++i) {
    if (!go_on()) return {};
    executor().set_input("x", x(i));
    executor().run();
    for (std::size_t layer = 0; layer < moments.size(); ++layer)
      add(moments[layer], states.read(names_[2 * layer]), states.read(names_[2 * layer + 1]));
  }
  for (std::size_t layer = 0; layer < moments.size(); ++layer) {
    set(moments[layer], static_cast<double>(batches), statistics.at(names_[2 * layer]),
        statistics.at(names_[2 * layer + 1]));
  }
  return statistics;
}

ReplacedStates::ReplacedStates(StateStore& states, const TensorMap& values) : states_(states) {
  for (const auto& [name, value] : values) {
    before_.emplace(name, states.read(name));
    states.write(name, value);
  }
}

ReplacedStates::~ReplacedStates() {
  for (const auto& [name, value] : before_) states_.write(name, value);
}

}  // namespace triptych::training
