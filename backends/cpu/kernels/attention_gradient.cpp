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
/// Most elements between rows that products read as they lie.
constexpr std::int64_t kMostApart = 256;

/// The second factor of a product: rows as they lie, or panels of them.
struct Columns {
  const float* data = nullptr;
  std::int64_t row = 0, panel = 0;  ///< from a row, and from a panel, to the next

  Columns from_row(std::int64_t first) const { return {data + first * row, row, panel}; }
};

/// The first factor of a product with keys: rows as they lie, or tiles of them.
struct Rows {
  const float* data = nullptr;
  std::int64_t row = 0;  ///< from a row to the next
  bool packed = false;
};

/// A head of keys and values: packed columns of a product with queries, and rows of one with dS.
struct Keys {
  const float *keys, *values;
  Columns rows;
};

/// A head of queries and dy, as rows of a product with keys, and of one with P or dS.
struct Queries {
  Rows tiles, dy_tiles;
  Columns rows, dy_rows;
  const float* mean;  ///< of dP by P, by query
  const float* sums;  ///< of AttentionWithSums, by query
};

/// A product that is added to sums. Element (i, k) of A at a + i * a_row + k * a_step. One of the
/// two is 1.
struct AddedProduct {
  std::int64_t rows, depth;
  const float* a;
  std::int64_t a_row, a_step;
  Columns b;
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
  std::int64_t keys_floats() const { return key_rows_at() + packed_columns(g_.head_size, g_.keys); }
  std::int64_t queries_floats() const { return round_up(mean_at() + g_.queries, 16); }
  std::int64_t thread_floats() const {
    const auto of_keys = padded_head() + padded_values();
    const auto sums = owns_heads_ ? g_.queries * padded_head() + g_.keys * of_keys
                                  : std::max(block_queries() * padded_head(), kKeys * of_keys);
    return 2 * block_queries() * kKeys + sums;
  }

  /// True when a product reads rows as they lie: nothing is rounded, and they lie close together.
  bool rows_stay(std::int64_t row) const {
    return rounding_ == Rounding::None && row <= kMostApart;
  }
  /// The same of a second factor, whose panels must be whole.
  bool columns_stay(std::int64_t row, std::int64_t size) const {
    return rows_stay(row) && size % microkernels().columns == 0;
  }
  Rows tiles_of(const float* rows, std::int64_t row, const float* packed) const {
    return rows_stay(row) ? Rows{rows, row} : Rows{packed, 0, true};
  }
  static Columns panels_of(const float* packed, std::int64_t count) {
    const std::int64_t columns = microkernels().columns;
    return {packed, columns, columns * count};
  }
  static Columns rows_in_place(const float* rows, std::int64_t row) {
    return {rows, row, microkernels().columns};
  }

  /// A packed head of keys: columns of keys and of values, and rows of keys.
  float* key_space(const KernelArgs& args, std::int64_t set) const {
    return reinterpret_cast<float*>(args.scratch) + set * keys_floats();
  }
  std::int64_t values_at() const { return packed_columns(g_.keys, g_.head_size); }
  std::int64_t key_rows_at() const { return values_at() + packed_columns(g_.keys, g_.value_size); }
  Keys keys_of(const KernelArgs& args, std::int64_t set, std::int64_t entry) const {
    const auto* at = key_space(args, set);
    const auto* k =
        args.in<float>(1) + element_of(g_.k, entry / g_.kv_heads, entry % g_.kv_heads, 0);
    return {at, at + values_at(),
            columns_stay(g_.k.row, g_.head_size) ? rows_in_place(k, g_.k.row)
                                                 : panels_of(at + key_rows_at(), g_.keys)};
  }

  /// A packed head of queries: rows of q and dy, tiles of both, then their means.
  float* query_space(const KernelArgs& args, std::int64_t set) const {
    return reinterpret_cast<float*>(args.scratch) + key_sets() * keys_floats() +
           set * queries_floats();
  }
  std::int64_t dy_rows_at() const { return packed_columns(g_.head_size, g_.queries); }
  std::int64_t tiles_at() const { return dy_rows_at() + packed_columns(g_.value_size, g_.queries); }
  std::int64_t dy_tiles_at() const { return tiles_at() + g_.queries * g_.head_size; }
  std::int64_t mean_at() const { return dy_tiles_at() + g_.queries * g_.value_size; }
  Queries queries_of(const KernelArgs& args, std::int64_t set, std::int64_t entry) const {
    const auto batch = entry / g_.heads, head = entry % g_.heads;
    const auto* at = query_space(args, set);
    const auto* q = args.in<float>(0) + element_of(g_.q, batch, head, 0);
    const auto* dy = args.in<float>(4) + element_of(g_.y, batch, head, 0);
    return {.tiles = tiles_of(q, g_.q.row, at + tiles_at()),
            .dy_tiles = tiles_of(dy, g_.y.row, at + dy_tiles_at()),
            .rows = columns_stay(g_.q.row, g_.head_size) ? rows_in_place(q, g_.q.row)
                                                         : panels_of(at, g_.queries),
            .dy_rows = columns_stay(g_.y.row, g_.value_size)
                           ? rows_in_place(dy, g_.y.row)
                           : panels_of(at + dy_rows_at(), g_.queries),
            .mean = at + mean_at(),
            .sums = args.in<float>(AttentionGradient::kSums) + entry * g_.queries};
  }

  /// Memory of this thread: P, dS, then sums.
  float* own(const KernelArgs& args) const {
    return reinterpret_cast<float*>(args.scratch) + key_sets() * keys_floats() +
           query_sets() * queries_floats() + thread_index() * thread_floats();
  }

  void pack_keys(const KernelArgs& args, std::int64_t set, std::int64_t entry) const {
    const auto batch = entry / g_.kv_heads, head = entry % g_.kv_heads;
    const auto* k = args.in<float>(1) + element_of(g_.k, batch, head, 0);
    const auto* v = args.in<float>(2) + element_of(g_.v, batch, head, 0);
    auto* to = key_space(args, set);
    const Range keys = {0, g_.keys}, size = {0, g_.head_size};
    pack_columns(k, g_.k.row, true, size, keys, to, rounding_);
    pack_columns(v, g_.v.row, true, {0, g_.value_size}, keys, to + values_at(), rounding_);
    if (columns_stay(g_.k.row, g_.head_size)) return;
    pack_columns(k, g_.k.row, false, keys, size, to + key_rows_at(), rounding_);
  }

  void pack_queries(const KernelArgs& args, std::int64_t set, std::int64_t entry) const {
    const auto batch = entry / g_.heads, head = entry % g_.heads;
    const auto* q = args.in<float>(0) + element_of(g_.q, batch, head, 0);
    const auto *y = args.in<float>(3) + element_of(g_.y, batch, head, 0),
               *dy = args.in<float>(4) + element_of(g_.y, batch, head, 0);
    auto* to = query_space(args, set);
    const Range queries = {0, g_.queries}, size = {0, g_.head_size}, values = {0, g_.value_size};
    if (!columns_stay(g_.q.row, g_.head_size))
      pack_columns(q, g_.q.row, false, queries, size, to, rounding_);
    if (!columns_stay(g_.y.row, g_.value_size))
      pack_columns(dy, g_.y.row, false, queries, values, to + dy_rows_at(), rounding_);
    if (!rows_stay(g_.q.row)) pack_row_tiles(q, g_.q.row, g_.head_size, to + tiles_at());
    if (!rows_stay(g_.y.row)) pack_row_tiles(dy, g_.y.row, g_.value_size, to + dy_tiles_at());
    sum_products(dy, y, to + mean_at());
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
    pack_keys(args, thread_index(), entry);
    const auto keys = keys_of(args, thread_index(), entry);
    auto* p = own(args);
    GradientSums sums = {.dk = p + 2 * block_queries() * kKeys};
    sums.dv = sums.dk + g_.keys * padded_head();
    sums.dq = sums.dv + g_.keys * padded_values();
    std::fill(sums.dk, sums.dq, 0.0F);
    for (std::int64_t i = 0; i < group(); ++i) {
      const auto head = entry * group() + i;
      pack_queries(args, thread_index(), head);
      const auto queries = queries_of(args, thread_index(), head);
      std::fill_n(sums.dq, g_.queries * padded_head(), 0.0F);
      sweep(keys, queries, {0, g_.keys}, {0, g_.queries}, sums, p);
      store_queries(args, head, {0, g_.queries}, sums.dq);
    }
    store_keys(args, entry, {0, g_.keys}, sums);
  }

  void run_by_blocks(const KernelArgs& args) const {
    parallel_for(key_heads(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) pack_keys(args, i, i);
    });
    parallel_for(query_heads(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) pack_queries(args, i, i);
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
      sweep(keys_of(args, entry, entry), queries_of(args, head, head), keys, {0, g_.queries}, sums,
            p);
    }
    store_keys(args, entry, keys, sums);
  }

  void run_query_block(const KernelArgs& args, std::int64_t head, std::int64_t first) const {
    const Range queries = {first, std::min(first + block_queries(), g_.queries)};
    auto* p = own(args);
    const GradientSums sums = {.dq = p + 2 * block_queries() * kKeys, .first_query = first};
    std::fill_n(sums.dq, queries.size() * padded_head(), 0.0F);
    const auto entry = head / group();
    sweep(keys_of(args, entry, entry), queries_of(args, head, head), {0, g_.keys}, queries, sums,
          p);
    store_queries(args, head, queries, sums.dq);
  }

  /// Adds the terms of all blocks of some keys and queries.
  void sweep(const Keys& k, const Queries& q, Range keys, Range queries, const GradientSums& sums,
             float* p) const {
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
  static void multiply(const BlockPair& pair, const Rows& tiles, const float* columns,
                       std::int64_t depth, float* to) {
    const auto& kernels = microkernels();
    const RowTiles rows(pair.queries.size());
    for (auto key = pair.keys.begin; key < pair.keys.end; key += kernels.columns) {
      for (std::int64_t t = 0; t < rows.count(); ++t) {
        const auto row = rows.begin(t);
        const auto step = tiles.packed ? depth : tiles.row;
        kernels.run_tile(rows.height(t),
                         MicroTile{.a = tiles.data + (pair.queries.begin + row) * step,
                                   .b = columns + key * depth,
                                   .c = to + row * kKeys + key - pair.keys.begin,
                                   .c_stride = kKeys,
                                   .k_inner = depth,
                                   .a_row = tiles.packed ? 0 : tiles.row,
                                   .b_inner = kernels.columns});
      }
    }
  }

  /// Scores of query `i` become probabilities, and dP becomes dS.
  void differentiate(const BlockPair& pair, const Queries& q, std::int64_t i) const {
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
  void add_keys(const BlockPair& pair, const Queries& q, const GradientSums& sums) const {
    const auto first = pair.keys.begin - sums.first_key, query = pair.queries.begin;
    add({pair.keys.size(), pair.queries.size(), pair.p, 1, kKeys, q.dy_rows.from_row(query)},
        sums.dv + first * padded_values(), padded_values());
    add({pair.keys.size(), pair.queries.size(), pair.ds, 1, kKeys, q.rows.from_row(query)},
        sums.dk + first * padded_head(), padded_head());
  }

  /// dq of the queries of a pair.
  void add_queries(const BlockPair& pair, const Keys& k, const GradientSums& sums) const {
    const auto first = pair.queries.begin - sums.first_query, key = pair.keys.begin;
    add({pair.queries.size(), pair.keys.size(), pair.ds, kKeys, 1, k.rows.from_row(key)},
        sums.dq + first * padded_head(), padded_head());
  }

  static void add(const AddedProduct& product, float* to, std::int64_t width) {
    const auto& kernels = microkernels();
    const RowTiles tiles(product.rows);
    const auto* b = product.b.data;
    for (std::int64_t column = 0; column < width; column += kernels.columns) {
      for (std::int64_t t = 0; t < tiles.count(); ++t) {
        const auto row = tiles.begin(t);
        kernels.run_tile(tiles.height(t), MicroTile{.a = product.a + row * product.a_row,
                                                    .b = b,
                                                    .c = to + row * width + column,
                                                    .c_stride = width,
                                                    .k_inner = product.depth,
                                                    .a_step = product.a_step,
                                                    .a_row = product.a_row == 1 ? 0 : product.a_row,
                                                    .b_inner = product.b.row,
                                                    .accumulate = true});
      }
      b += product.b.panel;
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
