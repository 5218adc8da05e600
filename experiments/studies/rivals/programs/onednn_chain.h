// A list of oneDNN primitives that run one after the other: the library's ceiling, without a
// framework around it. For oneDNN 2.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#if DNNL_VERSION_MAJOR != 2
#error "written for oneDNN 2; its descriptors are different in later versions"
#endif

namespace triptych::rivals {

using Algorithm = dnnl::algorithm;
using Arguments = std::unordered_map<int, dnnl::memory>;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
constexpr auto kF32 = dnnl::memory::data_type::f32;

inline std::string onednn_version() {
  const auto* version = dnnl::version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

inline float* floats(const dnnl::memory& memory) {
  return static_cast<float*>(memory.get_data_handle());
}

inline std::size_t count(const dnnl::memory& memory) {
  return memory.get_desc().get_size() / sizeof(float);
}

/// A tensor in the layout that the library likes best.
inline Desc any_layout(const Dims& dims) { return {dims, kF32, Tag::any}; }

/// Result of make(algorithm). By plain sums, then also in `algorithm`, where there is no other
/// kernel for the shape.
template <class Make>
auto made_by(Algorithm& algorithm, const Make& make) {
  try {
    return make(algorithm);
  } catch (const dnnl::error&) {
    algorithm = Algorithm::convolution_direct;
    return make(algorithm);
  }
}

struct Chain {
  dnnl::engine cpu{dnnl::engine::kind::cpu, 0};
  dnnl::stream queue{cpu};
  std::vector<std::function<void()>> steps;
  unsigned seed = 7;

  void add(const dnnl::primitive& primitive, const Arguments& arguments) {
    steps.emplace_back([this, primitive, arguments] { primitive.execute(queue, arguments); });
  }

  void run() {
    for (const auto& step : steps) step();
    queue.wait();
  }

  dnnl::memory zeros(const Desc& desc) const {
    dnnl::memory made(desc, cpu);
    std::fill_n(floats(made), count(made), 0.0F);
    return made;
  }

  /// Uniform in -scale to scale.
  dnnl::memory random(const Desc& desc, float scale) {
    dnnl::memory made(desc, cpu);
    std::generate_n(floats(made), count(made), [&] {
      seed = seed * 1664525U + 1013904223U;
      return scale * (static_cast<float>(seed >> 8) * (2.0F / (1 << 24)) - 1);
    });
    return made;
  }

  /// x itself, or a copy of it in that layout, made again in every run.
  dnnl::memory in_layout(dnnl::memory x, const Desc& desc) {
    if (x.get_desc() == desc) return x;
    dnnl::memory copy = zeros(desc);
    add(dnnl::reorder(x, copy), {{DNNL_ARG_FROM, x}, {DNNL_ARG_TO, copy}});
    return copy;
  }

  /// Concatenation by channels, with b in the layout of a.
  dnnl::memory concat(const dnnl::memory& a, const dnnl::memory& b) {
    const dnnl::concat::primitive_desc both(1, {a.get_desc(), b.get_desc()}, cpu);
    dnnl::memory y = zeros(both.dst_desc());
    add(dnnl::concat(both),
        {{DNNL_ARG_MULTIPLE_SRC, a}, {DNNL_ARG_MULTIPLE_SRC + 1, b}, {DNNL_ARG_DST, y}});
    return y;
  }
};

/// U-Net S, M and L.
struct Model {
  std::int64_t base, depth, size;
};

inline Model model_of(const std::string& name) {
  if (name == "unet-s") return {8, 3, 64};
  return name == "unet-m" ? Model{32, 4, 128} : Model{64, 4, 256};
}

}  // namespace triptych::rivals
