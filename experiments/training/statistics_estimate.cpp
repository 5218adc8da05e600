// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/statistics_estimate.h"

#include <algorithm>

#include "core/nn/models.h"
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

void set_model_inputs(Executor& executor, const segmentation::Batch& batch) {
  executor.set_input(model_input_name(0), batch.x);
  for (std::size_t i = 0; i < batch.others.size(); ++i)
    executor.set_input(model_input_name(i + 1), batch.others[i]);
}

std::vector<std::string> statistic_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto state : graph.values_of(ValueKind::State)) {
    const auto& value = graph.value(state);
    if (value.role == StateRole::Statistic) names.push_back(value.name);
  }
  return names;
}

TensorMap estimate_statistics(Executor& executor, std::int64_t batches,
                              const std::function<segmentation::Batch(std::int64_t)>& batch,
                              const std::function<bool()>& go_on) {
  const auto names = statistic_names(executor.plan().graph);
  const auto& states = executor.states();
  std::vector<Moments> moments(names.size() / 2);
  for (std::int64_t i = 0; i < batches; ++i) {
    if (!go_on()) return {};
    set_model_inputs(executor, batch(i));
    executor.run();
    for (std::size_t layer = 0; layer < moments.size(); ++layer)
      add(moments[layer], states.read(names[2 * layer]), states.read(names[2 * layer + 1]));
  }
  TensorMap statistics;
  for (const auto& name : names) statistics.emplace(name, states.read(name));
  for (std::size_t layer = 0; layer < moments.size(); ++layer) {
    set(moments[layer], static_cast<double>(batches), statistics.at(names[2 * layer]),
        statistics.at(names[2 * layer + 1]));
  }
  return statistics;
}

}  // namespace triptych::training
