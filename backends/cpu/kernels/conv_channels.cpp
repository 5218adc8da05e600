// Convolution as a product patches x weights: [positions, K] x [K, O], K over kernel row, kernel
// column, channel. For small planes: their positions would leave vectors partly empty, which output
// channels fill. The chains are those of the product in conv.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cpu/gemm/gemm_blocks.h"
#include "backends/cpu/gemm/prefetch.h"
#include "backends/cpu/kernels/float_conv.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {
namespace {

// Sums of a block of output channels: they stay in the second-level cache together with its
// patches.
constexpr std::int64_t kBlockFloats = 65536;
// Patches of all images that the caches hold.
constexpr std::int64_t kPatchFloats = 2'000'000;
// Blocks for each thread that threads of unequal speed share well.
constexpr std::int64_t kBlocksPerThread = 4;

class ConvChannels : public FloatConv {
 public:
  ConvChannels(const KernelQuery& query, Device& device)
      : FloatConv(query, device),
        grid_(patch_grid(g_)),
        taps_(all_taps(g_)),
        depth_(g_.group_in() * g_.taps()),
        tiles_(g_.out_plane(), std::min<std::int64_t>(microkernels().max_rows, lanes())),
        panels_(ceil_div(g_.group_out(), columns())),
        block_panels_(panels_of_a_block()),
        weights_(
            g_.groups * group_weights(),
            [this](const float* from, float* to) { pack_weights(from, to); },
            constant_input(query, 1), device) {}

  static Verdict accepts(const KernelQuery& query) { return accepts_image_gemm(query); }

  /// Where it computes a tenth less, and the patches of all images fit the caches.
  static Verdict worth(const KernelQuery& query) {
    const auto g = geometry_of(query);
    const auto by_position = g.group_out() * round_up(g.out_plane(), lanes());
    const auto by_channel = g.out_plane() * round_up(g.group_out(), columns());
    const auto patches = g.batch * g.groups * g.group_in() * g.taps() * g.out_plane();
    if (10 * by_channel > 9 * by_position) return Verdict::no("positions fill vectors as well");
    return patches <= kPatchFloats ? Verdict::yes() : Verdict::no("has too many patches");
  }

  std::size_t scratch_bytes() const override {
    const auto own = checked_mul(threads_, thread_floats());
    const auto floats = checked_add(checked_mul(entries(), entry_patches()), own);
    return weights_.scratch_bytes() + static_cast<std::size_t>(checked_mul(floats, sizeof(float)));
  }
  std::size_t resident_bytes() const override { return weights_.resident_bytes(); }

  void run(const KernelArgs& args) override {
    const float* weights = weights_.ready(args.in<float>(1), args.scratch);
    auto* patches = reinterpret_cast<float*>(args.scratch + weights_.scratch_bytes());
    parallel_for(entries() * tiles_.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        pack_tile(args, i / tiles_.count(), i % tiles_.count(), patches);
      }
    });
    float* scratch = patches + entries() * entry_patches();
    const auto blocks = ceil_div(panels_, block_panels_);
    parallel_for(entries() * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      float* own = scratch + thread_index() * thread_floats();
      for (auto i = begin; i < end; ++i) {
        const auto first = i % blocks * block_panels_;
        const Range panels = {first, std::min(first + block_panels_, panels_)};
        run_block(args, i / blocks, panels, {weights, patches, own});
      }
    });
  }

 private:
  struct Memory {
    const float* weights = nullptr;
    const float* patches = nullptr;
    float* own = nullptr;  ///< the thread's scratch
  };

  static std::int64_t lanes() { return microkernels().narrow_columns; }
  static std::int64_t columns() { return microkernels().columns; }

  /// Products: one for each group of each image.
  std::int64_t entries() const { return g_.batch * g_.groups; }
  /// Patches of one: for each tile [k][lanes].
  std::int64_t entry_patches() const {
    return checked_mul(tiles_.count(), checked_mul(depth_, lanes()));
  }
  /// Weights of a group: panels [k][columns].
  std::int64_t group_weights() const {
    return checked_mul(panels_, checked_mul(depth_, columns()));
  }
  std::int64_t panels_of_a_block() const {
    const auto fit = std::max<std::int64_t>(1, kBlockFloats / (g_.out_plane() * columns()));
    const auto blocks = std::max(ceil_div(panels_, fit),
                                 threads_ == 1 ? 1
                                               : ceil_div(kBlocksPerThread * threads_,
                                                          std::max<std::int64_t>(1, entries())));
    return std::max<std::int64_t>(1, ceil_div(panels_, blocks));
  }
  /// Sums of a block, [position][channel], and of a panel, [channel][position].
  std::int64_t block_floats() const { return g_.out_plane() * block_panels_ * columns(); }
  std::int64_t row_floats() const { return round_up(g_.out_plane(), lanes()); }
  std::int64_t thread_floats() const {
    return round_up(checked_add(block_floats(), columns() * row_floats()), 16);
  }

  void pack_weights(const float* from, float* to) const {
    parallel_for(g_.groups * panels_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        const auto first = i % panels_ * columns();
        const RowSource source = {.data = from + (i / panels_ * g_.group_out() + first) * w_stride_,
                                  .row_stride = w_stride_,
                                  .channel_stride = g_.taps(),
                                  .channels = g_.group_in(),
                                  .tap_offsets = taps_};
        pack_panel(source, std::min(columns(), g_.group_out() - first),
                   to + i * depth_ * columns());
      }
    });
  }

  /// [k][columns]. The first `valid` come from the source and the others are 0.
  void pack_panel(const RowSource& source, std::int64_t valid, float* to) const {
    float* packed = to + (columns() - valid) * depth_;  // spreads to the front without overlap
    cpu::pack_tile(source, valid, packed, rounding_);
    if (valid == columns()) return;
    for (std::int64_t k = 0; k < depth_; ++k, packed += valid, to += columns()) {
      std::memmove(to, packed, static_cast<std::size_t>(valid) * sizeof(float));
      std::fill(to + valid, to + columns(), 0.0F);
    }
  }

  void pack_tile(const KernelArgs& args, std::int64_t entry, std::int64_t tile,
                 float* patches) const {
    const float* x = args.in<float>(0) + entry / g_.groups * x_stride_ +
                     entry % g_.groups * g_.group_in() * g_.in_plane();
    const Range n = {tiles_.begin(tile), tiles_.begin(tile + 1)};
    pack_patch_tile(grid_, x, n, patches + entry * entry_patches() + tile * depth_ * lanes(),
                    rounding_);
  }

  void run_block(const KernelArgs& args, std::int64_t entry, Range panels,
                 const Memory& memory) const {
    const float* weights = memory.weights + entry % g_.groups * group_weights();
    const float* patches = memory.patches + entry * entry_patches();
    for (std::int64_t k = 0; k < depth_; k += kGemmDepth) {
      const Range depth = {k, std::min(depth_, k + kGemmDepth)};
      for (auto panel = panels.begin; panel < panels.end; ++panel) {
        multiply(weights, panel, patches, depth, memory.own + (panel - panels.begin) * columns());
      }
    }
    for (auto panel = panels.begin; panel < panels.end; ++panel) {
      store(args, entry, panel, memory.own + (panel - panels.begin) * columns(),
            memory.own + block_floats());
    }
  }

  /// A panel of weights with all tiles of patches. Each tile prefetches a part of the next panel.
  void multiply(const float* weights, std::int64_t panel, const float* patches, Range k,
                float* sums) const {
    const float* b = weights + (panel * depth_ + k.begin) * columns();
    const auto stride = block_panels_ * columns();
    const auto share = ceil_div(k.size(), tiles_.count());
    const TilePrefetch<float> ahead = {
        .fetches = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(share))),
        .next = panel + 1 < panels_ ? b + depth_ * columns() : nullptr,
        .panel_step = share * columns(),
        .fetch_step = columns()};
    for (std::int64_t tile = 0; tile < tiles_.count(); ++tile) {
      MicroTile now = {.a = patches + (tile * depth_ + k.begin) * lanes(),
                       .b = b,
                       .c = sums + tiles_.begin(tile) * stride,
                       .c_stride = stride,
                       .k_inner = k.size(),
                       .a_step = lanes(),
                       .b_inner = columns(),
                       .accumulate = k.begin > 0};
      ahead.add_to(now, tile);
      microkernels().run_tile(tiles_.height(tile), now);
    }
  }

  void store(const KernelArgs& args, std::int64_t entry, std::int64_t panel, const float* sums,
             float* rows) const {
    const auto first = panel * columns(), group = entry % g_.groups * g_.group_out();
    const Range m = {first, std::min(first + columns(), g_.group_out())};
    transpose_matrix({sums, block_panels_ * columns(), g_.out_plane(), m.size()}, rows,
                     row_floats(), Rounding::None);
    const ChannelStore<FloatFinish> store = {
        .y = args.out<float>(0) + entry / g_.groups * y_stride_ + group * g_.out_plane(),
        .plane = g_.out_plane(),
        .finish = {args, group, relu_}};
    store.store({m, {0, g_.out_plane()}, rows, row_floats()});
  }

  PatchGrid grid_;
  std::vector<std::int64_t> taps_;
  std::int64_t depth_;   ///< K
  RowTiles tiles_;       ///< of the positions
  std::int64_t panels_;  ///< of a group's output channels
  std::int64_t block_panels_;
  PackedOperand weights_;
};

}  // namespace

void add_conv_channels_kernels(KernelList& list) {
  list.push_back(kernel_entry<ConvChannels>(Conv::kName, "gemm-channels"));
  list.back().worth = &ConvChannels::worth;
}

}  // namespace triptych::cpu
