// SPDX-License-Identifier: Apache-2.0
#include "core/ops/batch_normalization.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/ops/binary.h"
#include "core/ops/conv.h"
#include "core/ops/elementwise.h"
#include "core/ops/formula.h"
#include "core/ops/sharding.h"
#include "core/ops/unary.h"

namespace triptych {
namespace {

/// Throws unless x is a non-empty [N, C, ...], each input of `vectors` is [C], and all are f32.
void require_per_channel(std::string_view op, Specs inputs, std::span<const std::size_t> vectors) {
  for (std::size_t i = 0; i < inputs.size(); ++i) require_dtype(op, inputs, i, DType::F32);
  const auto& x = inputs[0].shape;
  if (x.rank() < 2 || x.elements() == 0) {
    throw_invalid(op, fmt::format("x is {}; it must be [N, C, ...] with no size 0", to_string(x)));
  }
  for (const auto i : vectors) require_shape(op, inputs, i, {x[1]});
}

void require_activation(std::string_view op, const std::string& activation) {
  if (activation.empty() || activation == "relu") return;
  throw_invalid(op, fmt::format("activation is \"{}\"; it must be empty or \"relu\"", activation));
}

/// The channel of each element of a tensor [N, C, ...], and how many elements a channel has.
class Channels {
 public:
  explicit Channels(const Shape& x)
      : count_(static_cast<std::size_t>(x[1])),
        plane_(static_cast<std::size_t>(x.elements_between(2, x.rank()))),
        elements_(static_cast<std::size_t>(x.elements())) {}

  std::size_t of(std::size_t element) const { return element / plane_ % count_; }
  double elements_each() const {
    const auto each = elements_ / count_;
    return static_cast<double>(each);
  }
  /// Per channel, the sum of term(i) over its elements i.
  template <class Term>
  std::vector<double> sum(const Term& term) const {
    std::vector<double> sums(count_, 0.0);
    for (std::size_t i = 0; i < elements_; ++i) sums[of(i)] += term(i);
    return sums;
  }

 private:
  std::size_t count_, plane_, elements_;
};

/// Rounding in a sum over `elements` values of size 1, where cancellation leaves no magnitude to
/// measure it by.
double sum_error(Specs inputs) { return 1e-5 + 1e-7 * Channels(inputs[0].shape).elements_each(); }

/// A value per channel as [C, 1, ...], to broadcast against x.
ValueId per_channel(const Formula& formula, ValueId vector, ValueId x) {
  Dims dims(static_cast<std::size_t>(formula.shape(x).rank()) - 1, 1);
  dims[0] = formula.shape(vector)[0];
  return formula.reshape(vector, Shape(std::move(dims)));
}

/// Gradients of the inference form, an affine function of x with the statistics as inputs.
std::vector<ValueId> inference_gradient(const GradientContext& context, float epsilon) {
  const Formula f(context.emitter);
  const auto x = context.inputs[0];
  const auto scale = context.inputs[1];
  const auto dy = context.output_gradients[0];
  const auto deviation = f.apply(UnaryKind::Sqrt, f.add(context.inputs[4], double{epsilon}));
  const auto factor = f.div(scale, deviation);
  std::vector<ValueId> gradients(5);
  if (context.wanted[0]) gradients[0] = f.mul(dy, per_channel(f, factor, x));
  if (context.wanted[2] || context.wanted[3]) gradients[2] = channel_sum(context.emitter, dy);
  if (context.wanted[3]) {
    gradients[3] = f.apply(UnaryKind::Neg, f.mul(gradients[2], factor));
  }
  if (context.wanted[1] || context.wanted[4]) {
    const auto centered = f.sub(x, per_channel(f, context.inputs[3], x));
    gradients[1] = f.div(channel_sum(context.emitter, f.mul(dy, centered)), deviation);
  }
  if (context.wanted[4]) {
    const auto per_variance = f.div(scale, f.add(context.inputs[4], double{epsilon}));
    gradients[4] = f.mul(f.mul(gradients[1], per_variance), -0.5);
  }
  return gradients;
}

}  // namespace

std::vector<TensorSpec> BatchNormalization::infer(Specs inputs) const {
  require_inputs(kName, inputs, 5, 5);
  require_activation(kName, activation);
  constexpr std::size_t vector_inputs[] = {1, 2, 3, 4};
  require_per_channel(kName, inputs, vector_inputs);
  std::vector<TensorSpec> outputs = {inputs[0]};
  if (training_mode) outputs.insert(outputs.end(), 4, inputs[1]);
  return outputs;
}

std::vector<ValueId> BatchNormalization::gradient(const GradientContext& context) const {
  const auto dy = context.output_gradients[0];
  if (!dy.valid()) return std::vector<ValueId>(5);
  if (!training_mode) return inference_gradient(context, epsilon);
  auto gradients =
      context.emitter.emit(make_op(BatchNormalizationGradient{}),
                           std::vector<ValueId>{context.inputs[0], dy, context.inputs[1],
                                                context.outputs[3], context.outputs[4]});
  gradients.resize(5);
  return gradients;
}

std::vector<ValueId> BatchNormalization::expand(OpEmitter& emitter, Values inputs) const {
  auto plain = *this;
  plain.activation.clear();
  auto outputs = emitter.emit(make_op(std::move(plain)), inputs);
  outputs[0] = emitter.emit_one(make_op(Unary(UnaryKind::Relu)), {outputs[0]});
  return outputs;
}

double BatchNormalization::flops(Specs inputs, Specs) const {
  const double per_element = training_mode ? 6 : 2;
  return per_element * static_cast<double>(inputs[0].shape.elements());
}

std::vector<Sharding> BatchNormalization::shardings(Specs inputs, Specs outputs,
                                                    std::int64_t) const {
  return channel_shardings(inputs, outputs);
}

void BatchNormalization::reference(std::span<const RefTensor> inputs,
                                   std::span<RefTensor> outputs) const {
  const auto& x = inputs[0].values;
  const Channels channels(inputs[0].spec.shape);
  const auto m = channels.elements_each();
  auto mean = inputs[3].values;
  auto variance = inputs[4].values;
  if (training_mode) {
    mean = channels.sum([&](auto i) { return x[i] / m; });
    variance = channels.sum([&](auto i) { return std::pow(x[i] - mean[channels.of(i)], 2) / m; });
  }
  auto inverse = variance;
  for (auto& value : inverse) value = 1 / std::sqrt(value + double{epsilon});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto c = channels.of(i);
    // In the kernels' order, so that a repetition from saved statistics gives the same bits.
    const double factor = inputs[1].values[c] * inverse[c];
    auto& y = outputs[0].values[i];
    y = (x[i] - mean[c]) * factor + inputs[2].values[c];
    if (!activation.empty() && y <= 0) y = 0;
  }
  if (!training_mode) return;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const double kept = momentum;
    outputs[1].values[c] = kept * inputs[3].values[c] + (1 - kept) * mean[c];
    outputs[2].values[c] = kept * inputs[4].values[c] + (1 - kept) * variance[c];
    outputs[3].values[c] = mean[c];
    outputs[4].values[c] = inverse[c];
  }
}

ErrorBound BatchNormalization::error_bound(Specs inputs) const {
  return {.ulps = 16, .absolute = training_mode ? sum_error(inputs) : 1e-5};
}

std::vector<std::pair<int, int>> BatchNormalization::updates(int) const {
  if (!training_mode) return {};
  return {{1, 3}, {2, 4}};
}

ValueId normalize_again(OpEmitter& emitter, const SavedNormalization& saved) {
  const TensorSpec spec = emitter.spec(saved.scale);
  const std::vector<float> ones(static_cast<std::size_t>(spec.shape.elements()), 1.0F);
  BatchNormalization norm;
  norm.epsilon = 0;
  const auto factor =
      emitter.emit_one(make_op(Binary(BinaryKind::Mul)), {saved.scale, saved.inverse_deviation});
  const auto one = emitter.constant(Tensor(spec.shape, ones));
  return emitter.emit_one(make_op(norm), {saved.x, factor, saved.bias, saved.mean, one});
}

std::vector<TensorSpec> BatchNormalizationGradient::infer(Specs inputs) const {
  const std::size_t count = activation.empty() ? 5 : 6;
  require_inputs(kName, inputs, count, count);
  require_activation(kName, activation);
  constexpr std::size_t vector_inputs[] = {2, 3, 4, 5};
  require_per_channel(kName, inputs, std::span(vector_inputs).first(count - 2));
  require_shape(kName, inputs, 1, inputs[0].shape);
  return {inputs[0], inputs[2], inputs[2]};
}

std::vector<ValueId> BatchNormalizationGradient::expand(OpEmitter& emitter, Values inputs) const {
  std::vector<ValueId> plain(inputs.begin(), inputs.end() - 1);
  const auto y = normalize_again(emitter, {.x = inputs[0],
                                           .scale = inputs[2],
                                           .bias = inputs[5],
                                           .mean = inputs[3],
                                           .inverse_deviation = inputs[4]});
  plain[1] = emitter.emit_one(make_op(Binary(BinaryKind::ReluGradient)), {inputs[1], y});
  return emitter.emit(make_op(BatchNormalizationGradient{}), plain);
}

double BatchNormalizationGradient::flops(Specs inputs, Specs) const {
  return 10 * static_cast<double>(inputs[0].shape.elements());
}

std::vector<Sharding> BatchNormalizationGradient::shardings(Specs inputs, Specs outputs,
                                                            std::int64_t) const {
  return channel_shardings(inputs, outputs);
}

void BatchNormalizationGradient::reference(std::span<const RefTensor> inputs,
                                           std::span<RefTensor> outputs) const {
  auto dy = inputs[1].values;
  const auto& scale = inputs[2].values;
  const auto& inverse = inputs[4].values;
  const Channels channels(inputs[0].spec.shape);
  const auto m = channels.elements_each();
  const auto normalized = [&](std::size_t i) {
    const auto c = channels.of(i);
    return (inputs[0].values[i] - inputs[3].values[c]) * inverse[c];
  };
  for (std::size_t i = 0; i < dy.size() && !activation.empty(); ++i) {
    const auto c = channels.of(i);
    if (normalized(i) * scale[c] + inputs[5].values[c] <= 0) dy[i] = 0;
  }
  const auto dscale = channels.sum([&](auto i) { return dy[i] * normalized(i); });
  const auto dbias = channels.sum([&](auto i) { return dy[i]; });
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const auto c = channels.of(i);
    const double projected = dbias[c] / m + normalized(i) * dscale[c] / m;
    outputs[0].values[i] = scale[c] * inverse[c] * (dy[i] - projected);
  }
  outputs[1].values = dscale;
  outputs[2].values = dbias;
}

ErrorBound BatchNormalizationGradient::error_bound(Specs inputs) const {
  return {.ulps = 16, .absolute = sum_error(inputs)};
}

void add_batch_normalization_ops(OpList& list) {
  list.push_back(make_op(BatchNormalization{}));
  list.push_back(make_op(BatchNormalizationGradient{}));
}

}  // namespace triptych
