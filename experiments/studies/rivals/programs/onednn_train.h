// U-Net's training step as a oneDNN chain: forward, binary cross-entropy, backward, SGD with
// momentum. Batch normalisation and ReLU are fused both ways, with layouts of the library's choice.
//
// Each layer adds its forward primitives and returns its output with a function that adds the
// backward ones: from the gradient of its output to that of its input.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <memory>

#include "onednn_chain.h"

namespace triptych::rivals {

using dnnl::memory;
using dnnl::prop_kind;

struct Training : Chain {
  using Back = std::function<memory(memory)>;

  struct Parameter {
    memory weight, gradient;
    std::vector<float> velocity;
  };

  std::int64_t batch;
  Algorithm wide;  // of the 3x3 convolutions
  double loss = 0;
  std::vector<std::shared_ptr<Parameter>> parameters;

  Training(const Model& model, std::int64_t batch, Algorithm wide) : batch(batch), wide(wide) {
    const memory image = random(plain(1, model.size), 1);
    std::vector<memory> skips(model.depth);
    std::vector<Back> downs(model.depth), pools(model.depth), doubles(model.depth),
        ups(model.depth);
    Back bottom, head;
    memory x = image;
    for (std::int64_t i = 0, in = 1; i < model.depth; in = model.base << i++) {
      x = skips[i] = block(x, in, model.base << i, model.size >> i, downs[i]);
      x = pool(x, model.base << i, model.size >> i, pools[i]);
    }
    const std::int64_t widest = model.base << model.depth;
    x = block(x, widest / 2, widest, model.size >> model.depth, bottom);
    for (std::int64_t i = model.depth; i-- > 0;) {
      const std::int64_t channels = model.base << i, size = model.size >> i;
      x = double_size(x, 2 * channels, channels, size / 2, doubles[i]);
      x = concat(skips[i], in_layout(x, skips[i].get_desc()));
      x = block(x, 2 * channels, channels, size, ups[i]);
    }
    x = in_layout(convolve(x, {model.base, 1, model.size, 1}, head), plain(1, model.size));
    memory gradient = head(cross_entropy(x, image));
    std::vector<memory> of_skips(model.depth);
    for (std::int64_t i = 0; i < model.depth; ++i) {
      gradient = ups[i](gradient);
      const memory upper = part(gradient, skips[i], 1);
      of_skips[i] = part(gradient, skips[i], 0);
      gradient = doubles[i](upper);
    }
    gradient = bottom(gradient);
    for (std::int64_t i = model.depth; i-- > 0;) {
      gradient = downs[i](sum(in_layout(pools[i](gradient), skips[i].get_desc()), of_skips[i]));
    }
    steps.emplace_back([this] { descend(); });
  }

  Desc plain(std::int64_t channels, std::int64_t size) const {
    return {{batch, channels, size, size}, kF32, Tag::nchw};
  }

  memory parameter(const memory& weight) {
    parameters.push_back(std::make_shared<Parameter>(
        Parameter{weight, zeros(weight.get_desc()), std::vector<float>(count(weight), 0.0F)}));
    return weight;
  }

  /// Sets the gradient to the result, or to a copy in the layout of the weight.
  void set_gradient(const std::shared_ptr<Parameter>& of, const memory& made) {
    of->gradient = in_layout(made, of->weight.get_desc());
  }

  struct Shape {
    std::int64_t in, out, size, window;
  };

  /// 'same' padding. A window of 1 has a bias, one of 3 has none: the normalisation follows.
  memory convolve(const memory& x, const Shape& shape, Back& back) {
    const auto& [in, out, size, window] = shape;
    const bool has_bias = window == 1;
    const Desc x_desc = any_layout({batch, in, size, size}),
               w_desc = any_layout({out, in, window, window}),
               b_desc = has_bias ? Desc({out}, kF32, Tag::a) : Desc(),
               y_desc = any_layout({batch, out, size, size});
    const Dims one = {1, 1}, padding = {window / 2, window / 2};
    Algorithm algorithm = window == 3 ? wide : Algorithm::convolution_direct;
    const auto forward = made_by(algorithm, [&](Algorithm by) {
      return dnnl::convolution_forward::primitive_desc(
          {prop_kind::forward_training, by, x_desc, w_desc, b_desc, y_desc, one, padding, padding},
          cpu);
    });
    const memory from = in_layout(x, forward.src_desc()), y = zeros(forward.dst_desc());
    const float scale = std::sqrt(6.0F / static_cast<float>(in * window * window));
    const memory w = parameter(random(forward.weights_desc(), scale));
    const auto of_w = parameters.back();
    Arguments arguments = {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
    if (has_bias) arguments[DNNL_ARG_BIAS] = parameter(zeros(b_desc));
    const auto of_b = parameters.back();
    add(dnnl::convolution_forward(forward), arguments);
    back = [=, this](const memory& dy) -> memory {
      auto by_weights = algorithm, by_data = algorithm;
      const auto to_w = made_by(by_weights, [&](Algorithm by) {
        return dnnl::convolution_backward_weights::primitive_desc(
            {by, x_desc, w_desc, b_desc, y_desc, one, padding, padding}, cpu, forward);
      });
      add_weights_gradient<dnnl::convolution_backward_weights>(to_w, from, dy, of_w,
                                                               has_bias ? of_b : nullptr);
      if (in == 1) return {};  // the image's gradient is of no use
      const auto to_x = made_by(by_data, [&](Algorithm by) {
        return dnnl::convolution_backward_data::primitive_desc(
            {by, x_desc, w_desc, y_desc, one, padding, padding}, cpu, forward);
      });
      return add_data_gradient<dnnl::convolution_backward_data>(to_x, w, dy);
    };
    return y;
  }

  /// The transposed 2x2 convolution with stride 2 and a bias.
  memory double_size(const memory& x, std::int64_t in, std::int64_t out, std::int64_t size,
                     Back& back) {
    const Desc x_desc = any_layout({batch, in, size, size}), w_desc = any_layout({out, in, 2, 2}),
               b_desc({out}, kF32, Tag::a), y_desc = any_layout({batch, out, 2 * size, 2 * size});
    const Dims two = {2, 2}, zero = {0, 0};
    const auto by = Algorithm::deconvolution_direct;
    const dnnl::deconvolution_forward::primitive_desc forward(
        {prop_kind::forward_training, by, x_desc, w_desc, b_desc, y_desc, two, zero, zero}, cpu);
    const memory from = in_layout(x, forward.src_desc()), y = zeros(forward.dst_desc());
    const float scale = std::sqrt(3.0F / static_cast<float>(in));
    const memory w = parameter(random(forward.weights_desc(), scale));
    const auto of_w = parameters.back();
    const memory b = parameter(zeros(b_desc));
    const auto of_b = parameters.back();
    add(dnnl::deconvolution_forward(forward),
        {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_BIAS, b}, {DNNL_ARG_DST, y}});
    back = [=, this](const memory& dy) {
      const dnnl::deconvolution_backward_weights::primitive_desc to_w(
          {by, x_desc, w_desc, b_desc, y_desc, two, zero, zero}, cpu, forward);
      add_weights_gradient<dnnl::deconvolution_backward_weights>(to_w, from, dy, of_w, of_b);
      const dnnl::deconvolution_backward_data::primitive_desc to_x(
          {by, x_desc, w_desc, y_desc, two, zero, zero}, cpu, forward);
      return add_data_gradient<dnnl::deconvolution_backward_data>(to_x, w, dy);
    };
    return y;
  }

  template <class Primitive>
  void add_weights_gradient(const typename Primitive::primitive_desc& made, const memory& x,
                            const memory& dy, const std::shared_ptr<Parameter>& weight,
                            const std::shared_ptr<Parameter>& bias) {
    const memory dw = zeros(made.diff_weights_desc());
    Arguments arguments = {{DNNL_ARG_SRC, in_layout(x, made.src_desc())},
                           {DNNL_ARG_DIFF_DST, in_layout(dy, made.diff_dst_desc())},
                           {DNNL_ARG_DIFF_WEIGHTS, dw}};
    if (bias) arguments[DNNL_ARG_DIFF_BIAS] = bias->gradient;
    add(Primitive(made), arguments);
    set_gradient(weight, dw);
  }

  template <class Primitive>
  memory add_data_gradient(const typename Primitive::primitive_desc& made, const memory& w,
                           const memory& dy) {
    memory dx = zeros(made.diff_src_desc());
    const memory weight = in_layout(w, made.weights_desc());
    const memory gradient = in_layout(dy, made.diff_dst_desc());
    add(Primitive(made),
        {{DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_DIFF_SRC, dx}});
    return dx;
  }

  memory normalise(const memory& x, std::int64_t channels, Back& back) {
    const auto flags =
        dnnl::normalization_flags::use_scale_shift | dnnl::normalization_flags::fuse_norm_relu;
    const dnnl::batch_normalization_forward::primitive_desc forward(
        {prop_kind::forward_training, x.get_desc(), 1e-5F, flags}, cpu);
    const memory y = zeros(forward.dst_desc());
    const memory scale_shift = parameter(zeros({{2, channels}, kF32, Tag::nc}));
    std::fill_n(floats(scale_shift), channels, 1.0F);
    const auto of_scale_shift = parameters.back();
    const Arguments shared = {{DNNL_ARG_SRC, x},
                              {DNNL_ARG_SCALE_SHIFT, scale_shift},
                              {DNNL_ARG_MEAN, zeros(forward.mean_desc())},
                              {DNNL_ARG_VARIANCE, zeros(forward.variance_desc())},
                              {DNNL_ARG_WORKSPACE, memory(forward.workspace_desc(), cpu)}};
    Arguments arguments = shared;
    arguments[DNNL_ARG_DST] = y;
    add(dnnl::batch_normalization_forward(forward), arguments);
    back = [=, this](const memory& dy) {
      const dnnl::batch_normalization_backward::primitive_desc backward(
          {prop_kind::backward, x.get_desc(), x.get_desc(), 1e-5F, flags}, cpu, forward);
      const memory dx = zeros(backward.diff_src_desc());
      Arguments all = shared;
      all[DNNL_ARG_DIFF_DST] = in_layout(dy, x.get_desc());
      all[DNNL_ARG_DIFF_SRC] = dx;
      all[DNNL_ARG_DIFF_SCALE_SHIFT] = of_scale_shift->gradient;
      add(dnnl::batch_normalization_backward(backward), all);
      return dx;
    };
    return y;
  }

  memory block(const memory& x, std::int64_t in, std::int64_t out, std::int64_t size, Back& back) {
    Back first, first_norm, second, second_norm;
    memory y = normalise(convolve(x, {in, out, size, 3}, first), out, first_norm);
    y = normalise(convolve(y, {out, out, size, 3}, second), out, second_norm);
    back = [=](const memory& dy) { return first(first_norm(second(second_norm(dy)))); };
    return y;
  }

  memory pool(const memory& x, std::int64_t channels, std::int64_t size, Back& back) {
    const Desc y_desc = any_layout({batch, channels, size / 2, size / 2});
    const Dims two = {2, 2}, zero = {0, 0};
    const auto max = Algorithm::pooling_max;
    const dnnl::pooling_forward::primitive_desc forward(
        {prop_kind::forward_training, max, x.get_desc(), y_desc, two, two, zero, zero}, cpu);
    const memory y = zeros(forward.dst_desc()), places(forward.workspace_desc(), cpu);
    add(dnnl::pooling_forward(forward),
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}, {DNNL_ARG_WORKSPACE, places}});
    back = [=, this](const memory& dy) {
      const memory from = in_layout(dy, forward.dst_desc());
      const dnnl::pooling_backward::primitive_desc backward(
          {max, x.get_desc(), forward.dst_desc(), two, two, zero, zero}, cpu, forward);
      const memory dx = zeros(backward.diff_src_desc());
      add(dnnl::pooling_backward(backward),
          {{DNNL_ARG_DIFF_DST, from}, {DNNL_ARG_WORKSPACE, places}, {DNNL_ARG_DIFF_SRC, dx}});
      return dx;
    };
    return y;
  }

  /// Half of a concatenation's gradient, by channels, in the layout of `like`.
  memory part(const memory& gradient, const memory& like, std::int64_t half) {
    const Dims dims = like.get_desc().dims(), offset = {0, half * dims[1], 0, 0};
    memory whole = gradient;
    try {
      whole.get_desc().submemory_desc(dims, offset);
    } catch (const dnnl::error&) {  // a block of channels cannot be split
      whole = in_layout(whole, {whole.get_desc().dims(), kF32, Tag::nhwc});
    }
    const memory from(whole.get_desc().submemory_desc(dims, offset), cpu, floats(whole));
    const memory copy = zeros(like.get_desc());
    add(dnnl::reorder(from, copy), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, copy}});
    kept.push_back(whole);
    return copy;
  }
  std::vector<memory> kept;  // the target of views

  memory sum(const memory& a, const memory& b) {
    const dnnl::sum::primitive_desc both({1, 1}, {a.get_desc(), b.get_desc()}, cpu);
    const memory y = zeros(both.dst_desc());
    add(dnnl::sum(both),
        {{DNNL_ARG_MULTIPLE_SRC, a}, {DNNL_ARG_MULTIPLE_SRC + 1, b}, {DNNL_ARG_DST, y}});
    return y;
  }

  /// The target is the sign of the image, which a network can learn. Returns the gradient.
  memory cross_entropy(const memory& logits, const memory& image) {
    const memory gradient = zeros(logits.get_desc());
    steps.emplace_back([=, this] {
      queue.wait();
      const float *z = floats(logits), *pixels = floats(image);
      float* out = floats(gradient);
      const auto n = static_cast<std::int64_t>(count(logits));
      double total = 0;
#pragma omp parallel for reduction(+ : total)
      for (std::int64_t i = 0; i < n; ++i) {
        const float target = pixels[i] > 0 ? 1 : 0;
        total += std::fmax(z[i], 0.0F) - z[i] * target + std::log1p(std::exp(-std::fabs(z[i])));
        out[i] = (1 / (1 + std::exp(-z[i])) - target) / static_cast<float>(n);
      }
      loss = total / static_cast<double>(n);
    });
    return gradient;
  }

  void descend() {
    queue.wait();
    for (const auto& parameter : parameters) {
      float *w = floats(parameter->weight), *v = parameter->velocity.data();
      const float* g = floats(parameter->gradient);
      const auto n = static_cast<std::int64_t>(parameter->velocity.size());
#pragma omp parallel for simd if (n > 65536)
      for (std::int64_t i = 0; i < n; ++i) {
        v[i] = 0.9F * v[i] + g[i];
        w[i] -= 0.01F * v[i];
      }
    }
  }
};

}  // namespace triptych::rivals
