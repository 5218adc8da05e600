// SPDX-License-Identifier: Apache-2.0
#include "core/ops/optimizers.h"

#include <fmt/core.h>

#include <cmath>

#include "core/ops/elementwise.h"

namespace triptych {
namespace {

// The operands of an update: learning rate, step, then groups of n tensors: parameters, gradients
// and the moments, if any. Results: step + 1, parameters, moments.
constexpr int kFirstParameter = 2;

int tensors_per_group(std::string_view op, int input_count, int groups) {
  const auto tensors = input_count - kFirstParameter;
  if (tensors > 0 && tensors % groups == 0) return tensors / groups;
  throw_invalid(op, fmt::format("takes a learning rate, a step and {} tensors per parameter, got "
                                "{} inputs",
                                groups, input_count));
}

std::vector<TensorSpec> infer_update(std::string_view op, Specs inputs, int groups) {
  const auto count =
      static_cast<std::size_t>(tensors_per_group(op, static_cast<int>(inputs.size()), groups));
  require_dtype(op, inputs, 0, DType::F32);
  require_shape(op, inputs, 0, {});
  require_dtype(op, inputs, 1, DType::I64);
  require_shape(op, inputs, 1, {});
  std::vector<TensorSpec> outputs = {inputs[1]};
  for (std::size_t i = 0; i < inputs.size() - kFirstParameter; ++i) {
    const auto& parameter = inputs[kFirstParameter + i % count];
    require_dtype(op, inputs, kFirstParameter + i, DType::F32);
    require_shape(op, inputs, kFirstParameter + i, parameter.shape);
    const bool is_gradient = i / count == 1;
    if (!is_gradient) outputs.push_back(parameter);
  }
  return outputs;
}

/// The step, the parameters and the moments are updated. The gradients are not.
std::vector<std::pair<int, int>> updates_of(int count, int groups) {
  std::vector<std::pair<int, int>> pairs = {{0, 1}};
  for (int group = 0; group < groups; ++group) {
    if (group == 1) continue;
    for (int i = 0; i < count; ++i) {
      pairs.emplace_back(static_cast<int>(pairs.size()), kFirstParameter + group * count + i);
    }
  }
  return pairs;
}

double parameter_elements(Specs inputs, int count) {
  double elements = 0;
  for (const auto& parameter : inputs.subspan(kFirstParameter, static_cast<std::size_t>(count))) {
    elements += static_cast<double>(parameter.shape.elements());
  }
  return elements;
}

int sgd_groups(const SgdUpdate& op) { return op.momentum != 0 ? 3 : 2; }
constexpr int kAdamGroups = 4;

/// g + weight_decay p, g alone when it is 0.
double decayed(double g, double weight_decay, double p) { return g + weight_decay * p; }

void require_rate(std::string_view op, std::string_view name, float value, bool below_one) {
  if (value >= 0 && (!below_one || value < 1)) return;
  throw_invalid(op, fmt::format("{} is {}; it must be {}", name, value,
                                below_one ? "in [0, 1)" : "at least 0"));
}

}  // namespace

int SgdUpdate::parameter_count(int input_count) const {
  return tensors_per_group(kName, input_count, sgd_groups(*this));
}

std::vector<TensorSpec> SgdUpdate::infer(Specs inputs) const {
  require_rate(kName, "momentum", momentum, false);
  require_rate(kName, "weight_decay", weight_decay, false);
  if (nesterov && momentum == 0) throw_invalid(kName, "nesterov needs a momentum above 0");
  return infer_update(kName, inputs, sgd_groups(*this));
}

double SgdUpdate::flops(Specs inputs, Specs) const {
  const auto count = parameter_count(static_cast<int>(inputs.size()));
  const double flops =
      2 + 2 * (weight_decay != 0) + 2 * (momentum != 0) + 2 * static_cast<int>(nesterov);
  return flops * parameter_elements(inputs, count);
}

void SgdUpdate::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto n = static_cast<std::size_t>(parameter_count(static_cast<int>(inputs.size())));
  const double rate = inputs[0].values[0], step = inputs[1].values[0];
  outputs[0].values[0] = step + 1;
  for (std::size_t k = 0; k < n; ++k) {
    const auto &p = inputs[2 + k].values, &gradient = inputs[2 + n + k].values;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = decayed(gradient[i], weight_decay, p[i]);
      double direction = g;
      if (momentum != 0) {
        const double v = step == 0 ? g : momentum * inputs[2 + 2 * n + k].values[i] + g;
        outputs[1 + n + k].values[i] = v;
        direction = nesterov ? g + momentum * v : v;
      }
      outputs[1 + k].values[i] = p[i] - rate * direction;
    }
  }
}

// Sums of a few terms of size 1 that may cancel.
std::vector<std::pair<int, int>> SgdUpdate::updates(int input_count) const {
  return updates_of(parameter_count(input_count), sgd_groups(*this));
}

int AdamUpdate::parameter_count(int input_count) const {
  return tensors_per_group(kName, input_count, kAdamGroups);
}

std::vector<TensorSpec> AdamUpdate::infer(Specs inputs) const {
  require_rate(kName, "beta1", beta1, true);
  require_rate(kName, "beta2", beta2, true);
  require_rate(kName, "epsilon", epsilon, false);
  require_rate(kName, "weight_decay", weight_decay, false);
  return infer_update(kName, inputs, kAdamGroups);
}

double AdamUpdate::flops(Specs inputs, Specs) const {
  const auto count = parameter_count(static_cast<int>(inputs.size()));
  const double flops = 12 + 2 * (weight_decay != 0);
  return flops * parameter_elements(inputs, count);
}

void AdamUpdate::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto n = static_cast<std::size_t>(parameter_count(static_cast<int>(inputs.size())));
  const double rate = inputs[0].values[0], step = inputs[1].values[0];
  const auto t = to_int64(step + 1);
  const double step_size = rate / bias_correction(beta1, t);
  const double root_correction = std::sqrt(bias_correction(beta2, t));
  const double coupled_decay = decoupled ? 0 : weight_decay;
  const double kept = decoupled ? 1 - rate * weight_decay : 1;
  outputs[0].values[0] = step + 1;
  for (std::size_t k = 0; k < n; ++k) {
    const auto &p = inputs[2 + k].values, &gradient = inputs[2 + n + k].values;
    const auto &m_old = inputs[2 + 2 * n + k].values, &v_old = inputs[2 + 3 * n + k].values;
    auto &p_new = outputs[1 + k].values, &m = outputs[1 + n + k].values;
    auto& v = outputs[1 + 2 * n + k].values;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = decayed(gradient[i], coupled_decay, p[i]);
      m[i] = beta1 * m_old[i] + (1 - double{beta1}) * g;
      v[i] = beta2 * v_old[i] + (1 - double{beta2}) * g * g;
      p_new[i] = kept * p[i] - step_size * m[i] / (std::sqrt(v[i]) / root_correction + epsilon);
    }
  }
}

// The new parameter is one rounding of a number of size 1. The update, a few learning rates large,
// has a relative error of some units where m cancels no worse than v allows. The moments are sums
// of two terms of size 1.
std::vector<std::pair<int, int>> AdamUpdate::updates(int input_count) const {
  return updates_of(parameter_count(input_count), kAdamGroups);
}

void add_optimizers_ops(OpList& list) {
  list.push_back(make_op(SgdUpdate{}));
  list.push_back(make_op(AdamUpdate{}));
}

}  // namespace triptych
