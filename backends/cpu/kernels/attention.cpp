// Attention without its scores in memory (Dao, "FlashAttention-2", 2023). A task owns a block of
// queries of a head and goes through the keys a block at a time. Their scores, which softmax turns
// into weights of the values, stay in the nearest caches. As larger scores come, the sums so far
// are scaled down (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). Keys
// and values are packed once for all queries.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention_gradient.h"

#include <algorithm>

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/microkernel.h"
#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/reduction.h"
#include "backends/cpu/simd.h"
#include "backends/host/parallel.h"
#include "core/base/exact_math.h"
#include "core/base/float16.h"

namespace triptych::cpu {
namespace {

/// Keys of a block, a multiple of every panel's width. Results depend on it.
constexpr std::int64_t kKeys = 256;
/// Tiles of rows of a block of queries: each block of keys and values is read for all of them.
constexpr std::int64_t kQueryTiles = 8;

/// The queries of a block and what is known of them so far. Memory of one thread.
struct QueryBlock {
  RowTiles tiles;
  std::int64_t first, count;  ///< queries of the head
  float* q;                   ///< packed, tile after tile
  float* weights;             ///< [query][kKeys]: scores, then weights
  float* sums;                ///< [query][padded value_size]: weighted values
  float* largest;             ///< score, by query
  float* total;               ///< of the weights, by query
};

class FlashAttention : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (query.contract == Contract::Bf16Exact) {
      return Verdict::no("sums keys block by block, which bf16-exact's stated sums are not");
    }
    if (!query.dense()) return Verdict::no("needs dense operands");
    return accepts_gemm(query);
  }

  FlashAttention(const KernelQuery& query, Device& device)
      : g_(geometry(query)),
        rounding_(rounding_of(query.contract)),
        threads_(device_threads(device)) {}

  std::size_t scratch_bytes() const override {
    const auto own = checked_mul(threads_, thread_floats());
    const auto shared = checked_mul(g_.batch * g_.kv_heads, checked_add(k_floats(), v_floats()));
    return static_cast<std::size_t>(checked_mul(checked_add(own, shared), sizeof(float)));
  }

  void run(const KernelArgs& args) override {
    auto* packed = reinterpret_cast<float*>(args.scratch);
    pack_heads(args, packed);
    auto* scratch = packed + g_.batch * g_.kv_heads * (k_floats() + v_floats());
    const auto blocks = ceil_div(g_.queries, block_queries());
    const auto products = block_queries() * g_.keys * (g_.head_size + g_.value_size);
    parallel_for(g_.batch * g_.heads * blocks, grain_of(products, kGrainMultiplies),
                 [&](std::int64_t begin, std::int64_t end) {
                   auto* own = scratch + thread_index() * thread_floats();
                   for (auto i = begin; i < end; ++i) {
                     run_block(args, i / blocks, i % blocks * block_queries(), packed, own);
                   }
                 });
  }

 private:
  static AttentionGeometry geometry(const KernelQuery& query) {
    std::vector<TensorSpec> specs;
    for (const auto& input : query.inputs) specs.push_back(input.spec);
    return AttentionGeometry::of(query.as<AttentionAttributes>(), specs);
  }

  static std::int64_t block_queries() { return kQueryTiles * microkernels().max_rows; }
  std::int64_t padded_values() const { return round_up(g_.value_size, microkernels().columns); }
  std::int64_t k_floats() const { return packed_columns(g_.keys, g_.head_size); }
  std::int64_t v_floats() const { return packed_columns(g_.value_size, g_.keys); }
  std::int64_t thread_floats() const {
    return round_up(block_queries() * (g_.head_size + kKeys + padded_values() + 2), 16);
  }

  /// Keys as panels [d][keys], then values as panels [key][columns], of every head of the two.
  void pack_heads(const KernelArgs& args, float* packed) const {
    const auto grain = grain_of(g_.keys * (g_.head_size + g_.value_size));
    parallel_for(g_.batch * g_.kv_heads, grain, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        const auto batch = i / g_.kv_heads, head = i % g_.kv_heads;
        auto* to = packed + i * (k_floats() + v_floats());
        pack_columns(args.in<float>(1) + batch * g_.k.batch + head * g_.k.head, g_.k.row, true,
                     {0, g_.head_size}, {0, g_.keys}, to, rounding_);
        pack_columns(args.in<float>(2) + batch * g_.v.batch + head * g_.v.head, g_.v.row, false,
                     {0, g_.keys}, {0, g_.value_size}, to + k_floats(), rounding_);
      }
    });
  }

  void run_block(const KernelArgs& args, std::int64_t entry, std::int64_t first,
                 const float* packed, float* own) const {
    const auto batch = entry / g_.heads, head = entry % g_.heads;
    const auto shared = batch * g_.kv_heads + head / (g_.heads / g_.kv_heads);
    const auto* k = packed + shared * (k_floats() + v_floats());
    auto block = prepared(first, own);
    const auto* q = args.in<float>(0) + batch * g_.q.batch + head * g_.q.head;
    for (std::int64_t t = 0; t < block.tiles.count(); ++t) {
      const auto row = block.tiles.begin(t);
      pack_tile({.data = q + (first + row) * g_.q.row,
                 .row_stride = g_.q.row,
                 .channel_stride = 1,
                 .channels = g_.head_size},
                block.tiles.height(t), block.q + row * g_.head_size, rounding_);
    }
    const auto seen = g_.seen(first + block.count - 1);
    for (std::int64_t key = 0; key < seen; key += kKeys) {
      const Range keys = {key, std::min(key + kKeys, seen)};
      score(block, k, keys);
      for (std::int64_t row = 0; row < block.count; ++row) weigh(block, row, keys);
      add_values(block, k + k_floats(), keys);
    }
    store(block, args.out<float>(0) + batch * g_.y.batch + head * g_.y.head + first * g_.y.row);
    if (args.outputs.size() > 1) store_sums(block, args.out<float>(1) + entry * g_.queries + first);
  }

  QueryBlock prepared(std::int64_t first, float* own) const {
    const auto count = std::min(block_queries(), g_.queries - first);
    QueryBlock block = {.tiles = RowTiles(count), .first = first, .count = count, .q = own};
    block.weights = block.q + block_queries() * g_.head_size;
    block.sums = block.weights + block_queries() * kKeys;
    block.largest = block.sums + block_queries() * padded_values();
    block.total = block.largest + block_queries();
    std::fill_n(block.sums, count * padded_values(), 0.0F);
    std::fill_n(block.largest, count, MaxOf<float>::kStart);
    std::fill_n(block.total, count, 0.0F);
    return block;
  }

  /// The products of the queries with some keys.
  void score(const QueryBlock& block, const float* k, Range keys) const {
    const auto& kernels = microkernels();
    for (auto key = keys.begin; key < keys.end; key += kernels.columns) {
      for (std::int64_t t = 0; t < block.tiles.count(); ++t) {
        const auto row = block.tiles.begin(t);
        kernels.run_tile(block.tiles.height(t),
                         MicroTile{.a = block.q + row * g_.head_size,
                                   .b = k + key * g_.head_size,
                                   .c = block.weights + row * kKeys + key - keys.begin,
                                   .c_stride = kKeys,
                                   .k_inner = g_.head_size,
                                   .b_inner = kernels.columns});
      }
    }
  }

  /// Scores become weights exp(score - largest), and earlier sums are scaled to the same largest
  /// score.
  void weigh(const QueryBlock& block, std::int64_t row, Range keys) const {
    auto* weights = block.weights + row * kKeys;
    const auto last = std::min(keys.end, g_.seen(block.first + row));
    const auto count = std::max<std::int64_t>(last - keys.begin, 0);
    std::fill(weights + count, weights + keys.size(), 0.0F);
    if (count == 0) return;
    float &largest = block.largest[row], &total = block.total[row];
    auto* sums = block.sums + row * padded_values();
    simd([=, &largest, &total, scale = g_.scale, width = padded_values(),
          round = rounding_ == Rounding::ToBf16] {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count; ++i) weights[i] = exact::canonical(weights[i] * scale);
      const float here = fold_block(
          count, [=](auto i) { return weights[i]; }, MaxOf<float>());
      const float top = MaxOf<float>()(largest, here);
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count; ++i) weights[i] = exact::exp(weights[i] - top);
      const float sum = fold_block(
          count, [=](auto i) { return weights[i]; }, SumOf<float>());
      const float shrink = top == largest ? 1.0F : exact::exp(largest - top);
      largest = top;
      total = total * shrink + sum;
      if (shrink != 1) {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < width; ++i) sums[i] *= shrink;
      }
      if (!round) return;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count; ++i) weights[i] = round_to_bf16(weights[i]);
    });
  }

  /// Adds the values of some keys by their weights.
  void add_values(const QueryBlock& block, const float* v, Range keys) const {
    const auto& kernels = microkernels();
    for (std::int64_t column = 0; column < g_.value_size; column += kernels.columns) {
      for (std::int64_t t = 0; t < block.tiles.count(); ++t) {
        const auto row = block.tiles.begin(t);
        kernels.run_tile(block.tiles.height(t),
                         MicroTile{.a = block.weights + row * kKeys,
                                   .b = v + column * g_.keys + keys.begin * kernels.columns,
                                   .c = block.sums + row * padded_values() + column,
                                   .c_stride = padded_values(),
                                   .k_inner = keys.size(),
                                   .a_row = kKeys,
                                   .b_inner = kernels.columns,
                                   .accumulate = true});
      }
    }
  }

  void store(const QueryBlock& block, float* y) const {
    for (std::int64_t row = 0; row < block.count; ++row, y += g_.y.row) {
      simd([=, sums = block.sums + row * padded_values(), total = block.total[row],
            size = g_.value_size] {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < size; ++i) y[i] = exact::canonical(sums[i] / total);
      });
    }
  }

  /// The logarithms of the sums of exp(score).
  static void store_sums(const QueryBlock& block, float* sums) {
    simd([=, count = block.count, largest = block.largest, total = block.total] {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count; ++i) sums[i] = largest[i] + exact::log(total[i]);
    });
  }

  AttentionGeometry g_;
  Rounding rounding_;
  int threads_;
};

}  // namespace

void add_attention_kernels(KernelList& list) {
  for (const auto op : {Attention::kName, AttentionWithSums::kName}) {
    list.push_back(kernel_entry<FlashAttention>(op, "flash"));
  }
}

}  // namespace triptych::cpu
