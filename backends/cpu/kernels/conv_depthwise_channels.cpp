// Convolutions of each channel by itself, with channels in the vectors: a few channels of an image
// are laid out side by side, with the padding. For small planes, whose rows would leave vectors
// partly empty. The chains are those of conv_depthwise.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/float_conv.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/windows/tap_chains.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {
namespace {

// Floats of a block of channels, with the padding: they stay in the second-level cache.
constexpr std::int64_t kMostFloats = 65536;
// Positions of a padded image up to which a block stays in the first-level cache.
constexpr std::int64_t kMostPositions = 512;

/// Rows (axis 0) or columns that the windows read.
std::int64_t padded_size(const Window& w, int axis) {
  return (w.out[axis] - 1) * w.stride[axis] + w.extent(axis);
}

class ConvDepthwiseChannels : public FloatConv {
 public:
  ConvDepthwiseChannels(const KernelQuery& query, Device& device)
      : FloatConv(query, device),
        columns_(padded_size(g_.window, 1)),
        weights_(
            blocks() * g_.taps() * kSideBySide,
            [this](const float* from, float* to) { pack_weights(from, to); },
            constant_input(query, 1), device) {
    const auto& w = g_.window;
    for (std::int64_t t = 0; t < w.taps(); ++t) {
      const auto row = t / w.kernel[1] * w.dilation[0], column = t % w.kernel[1] * w.dilation[1];
      taps_.push_back((row * columns_ + column) * kSideBySide);
    }
  }

  static Verdict accepts(const KernelQuery& query) {
    if (auto verdict = accepts_image_gemm(query); !verdict.accepted) return verdict;
    const auto g = geometry_of(query);
    if (g.groups == 1 || g.group_in() != 1 || g.group_out() != 1) {
      return Verdict::no("has no groups of one channel");
    }
    const auto most = kMostFloats / kSideBySide / padded_size(g.window, 1);
    if (padded_size(g.window, 0) > most) return Verdict::no("has large planes");
    return Verdict::yes();
  }

  /// Where channels fill the vectors.
  static Verdict worth(const KernelQuery& query) {
    const auto g = geometry_of(query);
    if (8 * g.out_channels < 5 * round_up(g.out_channels, kSideBySide)) {
      return Verdict::no("channels leave vectors partly empty");
    }
    const bool small = padded_size(g.window, 0) * padded_size(g.window, 1) <= kMostPositions;
    return small ? Verdict::yes() : Verdict::no("positions fill vectors as well");
  }

  std::size_t scratch_bytes() const override {
    const auto floats = checked_mul(threads_, thread_floats());
    return weights_.scratch_bytes() + static_cast<std::size_t>(checked_mul(floats, sizeof(float)));
  }
  std::size_t resident_bytes() const override { return weights_.resident_bytes(); }

  void run(const KernelArgs& args) override {
    const auto* weights = weights_.ready(args.in<float>(1), args.scratch);
    auto* scratch = reinterpret_cast<float*>(args.scratch + weights_.scratch_bytes());
    const auto work = kSlowOperation * g_.out_plane() * g_.taps() * kSideBySide;
    parallel_for(g_.batch * blocks(), grain_of(work, kGrainMultiplies),
                 [&](std::int64_t begin, std::int64_t end) {
                   auto* own = scratch + thread_index() * thread_floats();
                   std::fill_n(own, image_floats(), 0.0F);
                   for (auto i = begin; i < end; ++i) run_block(args, i, weights, own);
                 });
  }

 private:
  std::int64_t blocks() const { return ceil_div(g_.out_channels, kSideBySide); }
  Range channels(std::int64_t block) const {
    const auto first = block * kSideBySide;
    return {first, std::min(first + kSideBySide, g_.out_channels)};
  }
  std::int64_t image_floats() const { return padded_size(g_.window, 0) * columns_ * kSideBySide; }
  std::int64_t thread_floats() const { return image_floats() + g_.out_plane() * kSideBySide; }

  void pack_weights(const float* from, float* to) const {
    std::fill_n(to, blocks() * g_.taps() * kSideBySide, 0.0F);
    for (std::int64_t b = 0; b < blocks(); ++b, to += g_.taps() * kSideBySide) {
      const auto [first, end] = channels(b);
      const MatrixView filters = {from + first * w_stride_, w_stride_, end - first, g_.taps()};
      transpose_matrix(filters, to, kSideBySide, rounding_);
    }
  }

  /// The padding around `image` is zero already.
  void lay_out(const float* x, std::int64_t count, float* image) const {
    const auto& w = g_.window;
    const Range columns = {0, std::min(w.in[1], columns_ - w.pad_begin[1])};
    for (std::int64_t row = 0; row < w.in[0]; ++row) {
      const auto target = row + w.pad_begin[0];
      if (target >= padded_size(w, 0) || columns.size() <= 0) break;
      transpose_matrix({x + row * w.in[1], g_.in_plane(), count, columns.size()},
                       image + (target * columns_ + w.pad_begin[1]) * kSideBySide, kSideBySide,
                       rounding_);
    }
  }

  void run_block(const KernelArgs& args, std::int64_t index, const float* weights,
                 float* image) const {
    const auto n = index / blocks(), block = index % blocks();
    const auto [first, end] = channels(block);
    const auto& w = g_.window;
    lay_out(args.in<float>(0) + n * x_stride_ + first * g_.in_plane(), end - first, image);
    float* sums = image + image_floats();
    for (std::int64_t row = 0; row < w.out[0]; ++row) {
      multiply_channels(image + row * w.stride[0] * columns_ * kSideBySide, taps_,
                        weights + block * g_.taps() * kSideBySide, w.out[1],
                        w.stride[1] * kSideBySide, sums + row * w.out[1] * kSideBySide);
    }
    auto* y = args.out<float>(0) + n * y_stride_ + first * g_.out_plane();
    transpose_matrix({sums, kSideBySide, g_.out_plane(), end - first}, y, g_.out_plane(),
                     Rounding::None);
    const FloatFinish finish(args, first, relu_);
    for (auto c = first; c < end; ++c, y += g_.out_plane()) {
      finish_sums(finish, c - first, y, g_.out_plane());
    }
  }

  std::int64_t columns_;            ///< of a padded image
  std::vector<std::int64_t> taps_;  ///< floats from an output's first operand
  PackedOperand weights_;
};

}  // namespace

void add_conv_depthwise_channels_kernels(KernelList& list) {
  list.push_back(kernel_entry<ConvDepthwiseChannels>(Conv::kName, "depthwise-channels"));
  list.back().worth = &ConvDepthwiseChannels::worth;
}

}  // namespace triptych::cpu
