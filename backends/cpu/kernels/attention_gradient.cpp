// The gradient of attention without scores in memory (Dao, "FlashAttention-2", 2023). A block of
// queries meets a block of keys: their probabilities come back from the scores and the sums that
// the forward pass has stored, and five small products give the terms of dq, dk and dv. Blocks come
// in one order: all queries for a block of keys, then for the next. With many heads a task owns a
// head of keys. With few, tasks own blocks of keys first, for dk and dv, and then blocks of
// queries, for dq, which computes the probabilities twice. The sums, and so the bits, are the same.
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

/// Keys of a block, a multiple of every panel's width.
constexpr std::int64_t kKeys = 128;
/// Tiles of rows of a block of queries.
constexpr std::int64_t kQueryTiles = 8;

/// A head of keys and values, packed: columns of a product with queries, and rows of one with dS.
struct PackedKeys {
  float *keys, *values, *key_rows;
};

/// A head of queries and dy, packed as the tiles of a product with keys, and as rows of one with
/// P or dS.
struct PackedQueries {
  float *tiles, *dy_tiles, *rows, *dy_rows;
  float* mean;        ///< of dP by P, by query
  const float* sums;  ///< of AttentionWithSums, by query
};

/// Sums of a task from `first_query` and `first_key` on, in padded rows. nullptr: not its own.
struct GradientSums {
  float *dq, *dk, *dv;
  std::int64_t first_query, first_key;
};

/// A block of queries and one of keys. `p` and `ds`: [query][kKeys], of the thread.
struct BlockPair {
  Range queries, keys;
  float *p, *ds;
};

class FlashAttentionGradient : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (query.contract == Contract::Bf16Exact) {
      return Verdict::no("sums keys block by block, which bf16-exact's stated sums are not");
    }
    if (!query.dense()) return Verdict::no("needs dense operands");
    if (query.inputs.size() <= AttentionGradient::kSums) {
      return Verdict::no("reads the sums of AttentionWithSums");
    }
    return accepts_gemm(query);
  }

  FlashAttentionGradient(const KernelQuery& query, Device& device)
      : g_(geometry(query)),
        rounding_(rounding_of(query.contract)),
        threads_(device_threads(device)),
        owns_heads_(g_.batch * g_.kv_heads >= threads_) {}

  std::size_t scratch_bytes() const override {
    const auto keys = checked_mul(key_sets(), keys_floats());
    const auto queries = checked_mul(query_sets(), queries_floats());
    const auto own = checked_mul(threads_, thread_floats());
    return static_cast<std::size_t>(
        checked_mul(checked_add(checked_add(keys, queries), own), sizeof(float)));
  }

  void run(const KernelArgs& args) override {
    owns_heads_ ? run_by_heads(args) : run_by_blocks(args);
  }

 private:
  static AttentionGeometry geometry(const KernelQuery& query) {
    const TensorSpec specs[] = {query.inputs[0].spec, query.inputs[1].spec, query.inputs[2].spec};
    return AttentionGeometry::of(query.as<AttentionGradient>(), specs);
  }

  static std::int64_t block_queries() { return kQueryTiles * microkernels().max_rows; }
  static std::int64_t padded(std::int64_t size) { return round_up(size, microkernels().columns); }
  std::int64_t padded_head() const { return padded(g_.head_size); }
  std::int64_t padded_values() const { return padded(g_.value_size); }
  std::int64_t group() const { return g_.heads / g_.kv_heads; }
  std::int64_t key_heads() const { return g_.batch * g_.kv_heads; }
  std::int64_t query_heads() const { return g_.batch * g_.heads; }

  /// Heads that are packed at a time.
  std::int64_t key_sets() const { return owns_heads_ ? threads_ : key_heads(); }
  std::int64_t query_sets() const { return owns_heads_ ? threads_ : query_heads(); }
  std::int64_t keys_floats() const {
    return packed_columns(g_.keys, g_.head_size) + packed_columns(g_.keys, g_.value_size) +
           packed_columns(g_.head_size, g_.keys);
  }
  std::int64_t queries_floats() const {
    return round_up(g_.queries * (g_.head_size + g_.value_size + 1), 16) +
           packed_columns(g_.head_size, g_.queries) + packed_columns(g_.value_size, g_.queries);
  }
  std::int64_t thread_floats() const {
    const auto of_keys = padded_head() + padded_values();
    const auto sums = owns_heads_ ? g_.queries * padded_head() + g_.keys * of_keys
                                  : std::max(block_queries() * padded_head(), kKeys * of_keys);
    return 2 * block_queries() * kKeys + sums;
  }

  PackedKeys packed_keys(const KernelArgs& args, std::int64_t set) const {
    auto* at = reinterpret_cast<float*>(args.scratch) + set * keys_floats();
    auto* values = at + packed_columns(g_.keys, g_.head_size);
    return {at, values, values + packed_columns(g_.keys, g_.value_size)};
  }
  PackedQueries packed_queries(const KernelArgs& args, std::int64_t set, std::int64_t head) const {
    auto* at = reinterpret_cast<float*>(args.scratch) + key_sets() * keys_floats() +
               set * queries_floats();
    PackedQueries to = {.rows = at};
    to.dy_rows = to.rows + packed_columns(g_.head_size, g_.queries);
    to.tiles = to.dy_rows + packed_columns(g_.value_size, g_.queries);
    to.dy_tiles = to.tiles + g_.queries * g_.head_size;
    to.mean = to.dy_tiles + g_.queries * g_.value_size;
    to.sums = args.in<float>(AttentionGradient::kSums) + head * g_.queries;
    return to;
  }
  /// Memory of this thread: P, dS, then sums.
  float* own(const KernelArgs& args) const {
    return reinterpret_cast<float*>(args.scratch) + key_sets() * keys_floats() +
           query_sets() * queries_floats() + thread_index() * thread_floats();
  }

  void pack_keys(const KernelArgs& args, std::int64_t entry, const PackedKeys& to) const {
    const auto batch = entry / g_.kv_heads, head = entry % g_.kv_heads;
    const auto* k = args.in<float>(1) + element_of(g_.k, batch, head, 0);
    const auto* v = args.in<float>(2) + element_of(g_.v, batch, head, 0);
    const Range keys = {0, g_.keys}, size = {0, g_.head_size};
    pack_columns(k, g_.k.row, true, size, keys, to.keys, rounding_);
    pack_columns(v, g_.v.row, true, {0, g_.value_size}, keys, to.values, rounding_);
    pack_columns(k, g_.k.row, false, keys, size, to.key_rows, rounding_);
  }

  void pack_queries(const KernelArgs& args, std::int64_t entry, const PackedQueries& to) const {
    const auto batch = entry / g_.heads, head = entry % g_.heads;
    const auto* q = args.in<float>(0) + element_of(g_.q, batch, head, 0);
    const auto *y = args.in<float>(3) + element_of(g_.y, batch, head, 0),
               *dy = args.in<float>(4) + element_of(g_.y, batch, head, 0);
    pack_columns(q, g_.q.row, false, {0, g_.queries}, {0, g_.head_size}, to.rows, rounding_);
    pack_columns(dy, g_.y.row, false, {0, g_.queries}, {0, g_.value_size}, to.dy_rows, rounding_);
    pack_row_tiles(q, g_.q.row, g_.head_size, to.tiles);
    pack_row_tiles(dy, g_.y.row, g_.value_size, to.dy_tiles);
    sum_products(dy, y, to.mean);
  }

  /// mean[i] = the sum over the columns of dy y.
  void sum_products(const float* dy, const float* y, float* mean) const {
    simd([=, row = g_.y.row, queries = g_.queries, size = g_.value_size,
          rounds = rounding_ == Rounding::ToBf16] {
      for (std::int64_t i = 0; i < queries; ++i) {
        const auto *a = dy + i * row, *b = y + i * row;
        float sum = 0;
        for (std::int64_t d = 0; d < size; d += kReductionBlock) {
          sum += fold_block(
              std::min(kReductionBlock, size - d),
              [=](auto e) { return (rounds ? round_to_bf16(a[d + e]) : a[d + e]) * b[d + e]; },
              SumOf<float>());
        }
        mean[i] = sum;
      }
    });
  }

  /// Rows of all queries, block by block as tiles.
  void pack_row_tiles(const float* data, std::int64_t stride, std::int64_t size, float* to) const {
    for (std::int64_t first = 0; first < g_.queries; first += block_queries()) {
      const RowTiles tiles(std::min(block_queries(), g_.queries - first));
      for (std::int64_t t = 0; t < tiles.count(); ++t) {
        const auto row = first + tiles.begin(t);
        pack_tile({.data = data + row * stride,
                   .row_stride = stride,
                   .channel_stride = 1,
                   .channels = size},
                  tiles.height(t), to + row * size, rounding_);
      }
    }
  }

  void run_by_heads(const KernelArgs& args) const {
    parallel_for(key_heads(), grain_of(work(g_.keys) * group(), kGrainMultiplies),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto entry = begin; entry < end; ++entry) run_head(args, entry);
                 });
  }

  /// Multiplications of all queries of a head with some keys.
  std::int64_t work(std::int64_t keys) const {
    return g_.queries * keys * (3 * g_.head_size + 2 * g_.value_size);
  }

  void run_head(const KernelArgs& args, std::int64_t entry) const {
    const auto keys = packed_keys(args, thread_index());
    pack_keys(args, entry, keys);
    auto* p = own(args);
    GradientSums sums = {.dk = p + 2 * block_queries() * kKeys};
    sums.dv = sums.dk + g_.keys * padded_head();
    sums.dq = sums.dv + g_.keys * padded_values();
    std::fill(sums.dk, sums.dq, 0.0F);
    for (std::int64_t i = 0; i < group(); ++i) {
      const auto head = entry * group() + i;
      const auto queries = packed_queries(args, thread_index(), head);
      pack_queries(args, head, queries);
      std::fill_n(sums.dq, g_.queries * padded_head(), 0.0F);
      sweep(keys, queries, {0, g_.keys}, {0, g_.queries}, sums, p);
      store_queries(args, head, {0, g_.queries}, sums.dq);
    }
    store_keys(args, entry, {0, g_.keys}, sums);
  }

  void run_by_blocks(const KernelArgs& args) const {
    parallel_for(key_heads(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) pack_keys(args, i, packed_keys(args, i));
    });
    parallel_for(query_heads(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) pack_queries(args, i, packed_queries(args, i, i));
    });
    const auto key_blocks = ceil_div(g_.keys, kKeys);
    const auto query_blocks = ceil_div(g_.queries, block_queries());
    parallel_for(key_heads() * key_blocks, grain_of(work(kKeys) * group(), kGrainMultiplies),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto i = begin; i < end; ++i) {
                     run_key_block(args, i / key_blocks, i % key_blocks * kKeys);
                   }
                 });
    parallel_for(query_heads() * query_blocks,
                 grain_of(work(g_.keys) / query_blocks, kGrainMultiplies),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto i = begin; i < end; ++i) {
                     run_query_block(args, i / query_blocks, i % query_blocks * block_queries());
                   }
                 });
  }

  void run_key_block(const KernelArgs& args, std::int64_t entry, std::int64_t first) const {
    const Range keys = {first, std::min(first + kKeys, g_.keys)};
    auto* p = own(args);
    GradientSums sums = {.dk = p + 2 * block_queries() * kKeys, .first_key = first};
    sums.dv = sums.dk + kKeys * padded_head();
    std::fill_n(sums.dk, kKeys * (padded_head() + padded_values()), 0.0F);
    for (std::int64_t i = 0; i < group(); ++i) {
      const auto head = entry * group() + i;
      sweep(packed_keys(args, entry), packed_queries(args, head, head), keys, {0, g_.queries}, sums,
            p);
    }
    store_keys(args, entry, keys, sums);
  }

  void run_query_block(const KernelArgs& args, std::int64_t head, std::int64_t first) const {
    const Range queries = {first, std::min(first + block_queries(), g_.queries)};
    auto* p = own(args);
    const GradientSums sums = {.dq = p + 2 * block_queries() * kKeys, .first_query = first};
    std::fill_n(sums.dq, queries.size() * padded_head(), 0.0F);
    sweep(packed_keys(args, head / group()), packed_queries(args, head, head), {0, g_.keys},
          queries, sums, p);
    store_queries(args, head, queries, sums.dq);
  }

  /// Adds the terms of all blocks of some keys and queries.
  void sweep(const PackedKeys& k, const PackedQueries& q, Range keys, Range queries,
             const GradientSums& sums, float* p) const {
    for (auto key = keys.begin; key < keys.end; key += kKeys) {
      for (auto query = queries.begin; query < queries.end; query += block_queries()) {
        const BlockPair pair = {.queries = {query, std::min(query + block_queries(), queries.end)},
                                .keys = {key, std::min(key + kKeys, keys.end)},
                                .p = p,
                                .ds = p + block_queries() * kKeys};
        if (g_.seen(pair.queries.end - 1) <= key) continue;
        multiply(pair, q.tiles, k.keys, g_.head_size, pair.p);
        multiply(pair, q.dy_tiles, k.values, g_.value_size, pair.ds);
        for (auto i = query; i < pair.queries.end; ++i) differentiate(pair, q, i);
        if (sums.dk != nullptr) add_keys(pair, q, sums);
        if (sums.dq != nullptr) add_queries(pair, k, sums);
      }
    }
  }

  /// Products of the rows of some queries with columns for some keys.
  static void multiply(const BlockPair& pair, const float* tiles, const float* columns,
                       std::int64_t depth, float* to) {
    const auto& kernels = microkernels();
    const RowTiles rows(pair.queries.size());
    for (auto key = pair.keys.begin; key < pair.keys.end; key += kernels.columns) {
      for (std::int64_t t = 0; t < rows.count(); ++t) {
        const auto row = rows.begin(t);
        kernels.run_tile(rows.height(t), MicroTile{.a = tiles + (pair.queries.begin + row) * depth,
                                                   .b = columns + key * depth,
                                                   .c = to + row * kKeys + key - pair.keys.begin,
                                                   .c_stride = kKeys,
                                                   .k_inner = depth,
                                                   .b_inner = kernels.columns});
      }
    }
  }

  /// Scores of query `i` become probabilities, and dP becomes dS.
  void differentiate(const BlockPair& pair, const PackedQueries& q, std::int64_t i) const {
    auto* p = pair.p + (i - pair.queries.begin) * kKeys;
    auto* ds = pair.ds + (i - pair.queries.begin) * kKeys;
    const auto last = std::min(pair.keys.end, g_.seen(i));
    const auto count = std::max<std::int64_t>(last - pair.keys.begin, 0);
    std::fill(p + count, p + pair.keys.size(), 0.0F);
    std::fill(ds + count, ds + pair.keys.size(), 0.0F);
    simd([=, scale = g_.scale, sum = q.sums[i], mean = q.mean[i],
          round = rounding_ == Rounding::ToBf16] {
#pragma GCC ivdep
      for (std::int64_t j = 0; j < count; ++j) {
        const float probability = exact::exp(p[j] * scale - sum);
        p[j] = probability;
        ds[j] = probability * (ds[j] - mean) * scale;
      }
      if (!round) return;
#pragma GCC ivdep
      for (std::int64_t j = 0; j < count; ++j) {
        p[j] = round_to_bf16(p[j]);
        ds[j] = round_to_bf16(ds[j]);
      }
    });
  }

  /// dk and dv of the keys of a pair.
  void add_keys(const BlockPair& pair, const PackedQueries& q, const GradientSums& sums) const {
    const auto first = pair.keys.begin - sums.first_key;
    add_transposed(pair, pair.p, q.dy_rows, sums.dv + first * padded_values(), padded_values());
    add_transposed(pair, pair.ds, q.rows, sums.dk + first * padded_head(), padded_head());
  }

  /// to += weights' rows, for the queries of a pair.
  void add_transposed(const BlockPair& pair, const float* weights, const float* rows, float* to,
                      std::int64_t width) const {
    const auto& kernels = microkernels();
    const RowTiles tiles(pair.keys.size());
    for (std::int64_t column = 0; column < width; column += kernels.columns) {
      for (std::int64_t t = 0; t < tiles.count(); ++t) {
        const auto key = tiles.begin(t);
        kernels.run_tile(tiles.height(t), MicroTile{.a = weights + key,
                                                    .b = rows + column * g_.queries +
                                                         pair.queries.begin * kernels.columns,
                                                    .c = to + key * width + column,
                                                    .c_stride = width,
                                                    .k_inner = pair.queries.size(),
                                                    .a_step = kKeys,
                                                    .b_inner = kernels.columns,
                                                    .accumulate = true});
      }
    }
  }

  /// dq of the queries of a pair.
  void add_queries(const BlockPair& pair, const PackedKeys& k, const GradientSums& sums) const {
    const auto& kernels = microkernels();
    const RowTiles tiles(pair.queries.size());
    const auto width = padded_head();
    auto* to = sums.dq + (pair.queries.begin - sums.first_query) * width;
    for (std::int64_t column = 0; column < width; column += kernels.columns) {
      for (std::int64_t t = 0; t < tiles.count(); ++t) {
        const auto row = tiles.begin(t);
        kernels.run_tile(tiles.height(t), MicroTile{.a = pair.ds + row * kKeys,
                                                    .b = k.key_rows + column * g_.keys +
                                                         pair.keys.begin * kernels.columns,
                                                    .c = to + row * width + column,
                                                    .c_stride = width,
                                                    .k_inner = pair.keys.size(),
                                                    .a_row = kKeys,
                                                    .b_inner = kernels.columns,
                                                    .accumulate = true});
      }
    }
  }

  void store_queries(const KernelArgs& args, std::int64_t head, Range queries,
                     const float* dq) const {
    auto* to =
        args.out<float>(0) + element_of(g_.q, head / g_.heads, head % g_.heads, queries.begin);
    store(dq, padded_head(), queries.size(), {to, g_.q.row, g_.head_size});
  }

  void store_keys(const KernelArgs& args, std::int64_t entry, Range keys,
                  const GradientSums& sums) const {
    const auto batch = entry / g_.kv_heads, head = entry % g_.kv_heads;
    store(sums.dk, padded_head(), keys.size(),
          {args.out<float>(1) + element_of(g_.k, batch, head, keys.begin), g_.k.row, g_.head_size});
    store(
        sums.dv, padded_values(), keys.size(),
        {args.out<float>(2) + element_of(g_.v, batch, head, keys.begin), g_.v.row, g_.value_size});
  }

  /// Rows of `size` elements in a tensor.
  struct Destination {
    float* data;
    std::int64_t stride, size;
  };

  static void store(const float* from, std::int64_t width, std::int64_t rows,
                    const Destination& to) {
    simd([=] {
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto* source = from + row * width;
        auto* target = to.data + row * to.stride;
#pragma GCC ivdep
        for (std::int64_t i = 0; i < to.size; ++i) target[i] = exact::canonical(source[i]);
      }
    });
  }

  AttentionGeometry g_;
  Rounding rounding_;
  std::int64_t threads_;
  bool owns_heads_;
};

}  // namespace

void add_attention_gradient_kernels(KernelList& list) {
  list.push_back(kernel_entry<FlashAttentionGradient>(AttentionGradient::kName, "flash"));
}

}  // namespace triptych::cpu
