// U-Net's forward pass as a oneDNN chain: batch normalisation folded into weights and biases (which
// are random: only the time counts), ReLU fused into the convolutions, layouts of the library's
// choice.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "onednn_chain.h"

namespace triptych::rivals {

struct Inference : Chain {
  std::int64_t batch;
  Algorithm wide;  // of the 3x3 convolutions

  Inference(const Model& model, std::int64_t batch, Algorithm wide) : batch(batch), wide(wide) {
    dnnl::memory x = random({{batch, 1, model.size, model.size}, kF32, Tag::nchw}, 1);
    std::vector<dnnl::memory> skips;
    std::int64_t inputs = 1;
    for (std::int64_t level = 0; level < model.depth; ++level) {
      skips.push_back(block(x, inputs, model.base << level, model.size >> level));
      inputs = model.base << level;
      x = pool(skips.back(), inputs, model.size >> level);
    }
    x = block(x, inputs, 2 * inputs, model.size >> model.depth);
    for (std::int64_t level = model.depth; level-- > 0;) {
      const std::int64_t channels = model.base << level;
      const dnnl::memory up = double_size(x, 2 * channels, channels, model.size >> (level + 1));
      x = block(concat(skips[level], like(up, skips[level])), 2 * channels, channels,
                model.size >> level);
    }
    convolve(x, model.base, 1, model.size, 1);
  }

  dnnl::memory block(const dnnl::memory& x, std::int64_t in, std::int64_t out, std::int64_t size) {
    return convolve(convolve(x, in, out, size, 3), out, out, size, 3);
  }

  dnnl::memory convolve(const dnnl::memory& x, std::int64_t in, std::int64_t out, std::int64_t size,
                        std::int64_t window) {
    dnnl::primitive_attr attributes;
    if (window == 3) {
      dnnl::post_ops relu;
      relu.append_eltwise(1, Algorithm::eltwise_relu, 0, 0);
      attributes.set_post_ops(relu);
    }
    const Dims one = {1, 1}, padding = {window / 2, window / 2};
    const Desc bias_desc({out}, kF32, Tag::a);
    Algorithm algorithm = window == 3 ? wide : Algorithm::convolution_direct;
    const auto made = made_by(algorithm, [&](Algorithm by) {
      return dnnl::convolution_forward::primitive_desc(
          {dnnl::prop_kind::forward_inference, by, any_layout({batch, in, size, size}),
           any_layout({out, in, window, window}), bias_desc, any_layout({batch, out, size, size}),
           one, padding, padding},
          attributes, cpu);
    });
    return finish<dnnl::convolution_forward>(x, made, in * window * window);
  }

  /// The transposed 2x2 convolution with stride 2.
  dnnl::memory double_size(const dnnl::memory& x, std::int64_t in, std::int64_t out,
                           std::int64_t size) {
    const Dims two = {2, 2}, zero = {0, 0};
    const dnnl::deconvolution_forward::primitive_desc made(
        {dnnl::prop_kind::forward_inference,
         Algorithm::deconvolution_direct,
         any_layout({batch, in, size, size}),
         any_layout({out, in, 2, 2}),
         {{out}, kF32, Tag::a},
         any_layout({batch, out, 2 * size, 2 * size}),
         two,
         zero,
         zero},
        cpu);
    return finish<dnnl::deconvolution_forward>(x, made, in);
  }

  template <class Primitive>
  dnnl::memory finish(const dnnl::memory& x, const typename Primitive::primitive_desc& made,
                      std::int64_t summands) {
    const float scale = std::sqrt(6.0F / static_cast<float>(summands));
    dnnl::memory y = zeros(made.dst_desc());
    const dnnl::memory from = in_layout(x, made.src_desc());
    add(Primitive(made), {{DNNL_ARG_SRC, from},
                          {DNNL_ARG_WEIGHTS, random(made.weights_desc(), scale)},
                          {DNNL_ARG_BIAS, random(made.bias_desc(), 0.1F)},
                          {DNNL_ARG_DST, y}});
    return y;
  }

  dnnl::memory pool(const dnnl::memory& x, std::int64_t channels, std::int64_t size) {
    const Dims two = {2, 2}, zero = {0, 0};
    const dnnl::pooling_forward::primitive_desc made(
        {dnnl::prop_kind::forward_inference, Algorithm::pooling_max, x.get_desc(),
         any_layout({batch, channels, size / 2, size / 2}), two, two, zero, zero},
        cpu);
    dnnl::memory y = zeros(made.dst_desc());
    add(dnnl::pooling_forward(made), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
    return y;
  }

  /// x in the layout of `other`.
  dnnl::memory like(const dnnl::memory& x, const dnnl::memory& other) {
    return in_layout(x, other.get_desc());
  }
};

}  // namespace triptych::rivals
