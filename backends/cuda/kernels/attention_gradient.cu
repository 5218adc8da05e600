// The gradient of attention without scores in global memory (Dao, "FlashAttention-2", 2023). The
// probabilities come back from q, k and the sums that the forward pass has stored. One kernel has
// blocks of 64 keys, which go through the queries for dk and dv. A second has blocks of 64 queries,
// which go through the keys for dq. So no two blocks add to one element, and the bits do not depend
// on their order. Seven products per pair of tiles in all. A thread owns 4 x 4 scores, and 4 rows
// of the gradients with every 16th column. Global memory, per block: q, dy (or k, v) once for each
// tile.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/attention.cuh"
#include "core/base/checked_math.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

template <int kHead>
struct GradientTile {
  HeadTile<kHead> q, dy, k, v;
  HeadTile<kFlashRows> weights;  // [query, key]: P, then dS
};

struct GradientProblem {
  AttentionGeometry g;
  Global<const float> q, k, v, dy;
  Global<const float> sums, mean;  ///< by query of all heads
  Global<float> dq, dk, dv;
};

/// Gradients of a thread: 4 rows, every 16th column.
template <int kHead>
using Gradients = float[4][kHead / kRowThreads];

/// Where this thread works in a tile.
struct ThreadPlace {
  int row = static_cast<int>(threadIdx.x) / kRowThreads * 4;
  int lane = static_cast<int>(threadIdx.x) % kRowThreads;
  __device__ int column() const { return lane * 4; }
};

/// A head of q, with the head of k and v that it shares.
struct HeadPair {
  std::int64_t number;  ///< of all heads of q
  std::int64_t q, k, v, y;

  __device__ HeadPair(const AttentionGeometry& g, std::int64_t head) : number(head) {
    const std::int64_t batch = head / g.heads, own = head % g.heads;
    const std::int64_t shared_head = own / (g.heads / g.kv_heads);
    q = batch * g.q.batch + own * g.q.head;
    k = batch * g.k.batch + shared_head * g.k.head;
    v = batch * g.v.batch + shared_head * g.v.head;
    y = batch * g.y.batch + own * g.y.head;
  }
};

template <int kHead>
__device__ void load_queries(const GradientProblem& problem, const HeadPair& head,
                             std::int64_t first, GradientTile<kHead>& tile) {
  const auto& g = problem.g;
  load_transposed<false>(problem.q.from(head.q + first * g.q.row), g.q.row, g.queries - first,
                         g.head_size, kHead, tile.q);
  load_transposed<false>(problem.dy.from(head.y + first * g.y.row), g.y.row, g.queries - first,
                         g.value_size, kHead, tile.dy);
}

template <int kHead>
__device__ void load_keys(const GradientProblem& problem, const HeadPair& head, std::int64_t first,
                          GradientTile<kHead>& tile) {
  const auto& g = problem.g;
  load_transposed<false>(problem.k.from(head.k + first * g.k.row), g.k.row, g.keys - first,
                         g.head_size, kHead, tile.k);
  load_transposed<false>(problem.v.from(head.v + first * g.v.row), g.v.row, g.keys - first,
                         g.value_size, kHead, tile.v);
}

/// P and dS of a thread's queries and keys.
struct PairWeights {
  float p[4][4] = {}, ds[4][4] = {};
};

template <int kHead>
__device__ PairWeights weigh(const GradientProblem& problem, const HeadPair& head,
                             GradientTile<kHead>& tile, std::int64_t query, std::int64_t key) {
  const auto& g = problem.g;
  const ThreadPlace place;
  PairWeights weights;
  score<2>(tile.q, tile.k, place.row, place.column(), static_cast<int>(g.head_size), weights.p);
  score<2>(tile.dy, tile.v, place.row, place.column(), static_cast<int>(g.value_size), weights.ds);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::int64_t row = query + place.row + i;
    const bool is_query = row < g.queries;
    const std::int64_t number = head.number * g.queries + row;
    float sum = 0, mean = 0;
    if (is_query) {
      sum = problem.sums[number];
      mean = problem.mean[number];
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::int64_t column = key + place.column() + j;
      const bool sees = is_query && column < g.keys && (!g.is_causal || column <= row);
      const float p = sees ? exact::exp(weights.p[i][j] * g.scale - sum) : 0;
      weights.p[i][j] = p;
      weights.ds[i][j] = sees ? p * (weights.ds[i][j] - mean) * g.scale : 0;
    }
  }
  return weights;
}

/// Shares weights with the block. Those before have been read by all when it begins.
template <class Tile>
__device__ void share(const float (&weights)[4][4], Tile& to) {
  const ThreadPlace place;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    Four row;
#pragma unroll
    for (int j = 0; j < 4; ++j) row[j] = weights[i][j];
    to.template store<4>(place.row + i, place.column(), row);
  }
  __syncthreads();
}

/// to += weights x for this thread's rows: queries that sum over keys, or keys (`kOfKeys`) that sum
/// over queries.
template <bool kOfKeys, int kHead, class Tile>
__device__ void add_products(HeadTile<kFlashRows>& weights, Tile& x, Gradients<kHead>& to) {
  const ThreadPlace place;
#pragma unroll 1  // registers for two blocks, with heads of 64
  for (int k = 0; k < kFlashRows; k += 4) {
    Four w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      w[i] = kOfKeys ? weights.template load<4>(k + i, place.row)
                     : weights.template load<4>(place.row + i, k);
    }
#pragma unroll
    for (int e = 0; e < kHead / kRowThreads; ++e) {
      const Four values = x.template load<4>(place.lane + e * kRowThreads, k);
#pragma unroll
      for (int row = 0; row < 4; ++row) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float weight = kOfKeys ? w[i][row] : w[row][i];
          to[row][e] = multiply_add(weight, values[i], to[row][e]);
        }
      }
    }
  }
}

/// Rows of a gradient: where they start, `rows` of them from the tile's first on.
struct GradientRows {
  std::int64_t start, stride, rows, size;
};

template <int kHead>
__device__ void store_gradients(const Gradients<kHead>& from, const GradientRows& to,
                                const Global<float>& gradient) {
  const ThreadPlace place;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (place.row + i >= to.rows) continue;
#pragma unroll
    for (int e = 0; e < kHead / kRowThreads; ++e) {
      const int d = place.lane + e * kRowThreads;
      if (d < to.size) {
        gradient[to.start + (place.row + i) * to.stride + d] = canonical(from[i][e]);
      }
    }
  }
}

/// Grid: (tiles of keys, batch entries and heads of k).
template <int kHead>
__global__ void __launch_bounds__(256, kHead == 64 ? 2 : 1)
    flash_attention_key_gradient_kernel(GradientProblem problem) {
  auto& tile = shared<GradientTile<kHead>>();
  const auto& g = problem.g;
  const std::int64_t group = g.heads / g.kv_heads;
  const std::int64_t first = std::int64_t{blockIdx.x} * kFlashRows;
  const HeadPair own(g, blockIdx.y * group);
  load_keys(problem, own, first, tile);
  Gradients<kHead> dk = {}, dv = {};
  for (std::int64_t i = 0; i < group; ++i) {
    const HeadPair head(g, blockIdx.y * group + i);
    // The tiles of keys and of queries begin alike: the first one that sees a key.
    for (std::int64_t query = g.is_causal ? first : 0; query < g.queries; query += kFlashRows) {
      load_queries(problem, head, query, tile);
      __syncthreads();
      const auto weights = weigh(problem, head, tile, query, first);
      share(weights.p, tile.weights);
      add_products<true, kHead>(tile.weights, tile.dy, dv);
      __syncthreads();
      share(weights.ds, tile.weights);
      add_products<true, kHead>(tile.weights, tile.q, dk);
      __syncthreads();
    }
  }
  const std::int64_t rows = g.keys - first;
  store_gradients<kHead>(dk, {own.k + first * g.k.row, g.k.row, rows, g.head_size}, problem.dk);
  store_gradients<kHead>(dv, {own.v + first * g.v.row, g.v.row, rows, g.value_size}, problem.dv);
}

/// Grid: (tiles of queries, batch entries and heads of q).
template <int kHead>
__global__ void __launch_bounds__(256, kHead == 64 ? 2 : 1)
    flash_attention_query_gradient_kernel(GradientProblem problem) {
  auto& tile = shared<GradientTile<kHead>>();
  const auto& g = problem.g;
  // The last queries see most keys: they start first.
  const std::int64_t first = (std::int64_t{gridDim.x} - 1 - blockIdx.x) * kFlashRows;
  const std::int64_t last = first + kFlashRows;
  const std::int64_t seen = g.is_causal && last < g.keys ? last : g.keys;
  const HeadPair head(g, blockIdx.y);
  load_queries(problem, head, first, tile);
  Gradients<kHead> dq = {};
  for (std::int64_t key = 0; key < seen; key += kFlashRows) {
    load_keys(problem, head, key, tile);
    __syncthreads();
    const auto weights = weigh(problem, head, tile, first, key);
    share(weights.ds, tile.weights);
    add_products<false, kHead>(tile.weights, tile.k, dq);
    __syncthreads();
  }
  store_gradients<kHead>(dq, {head.q + first * g.q.row, g.q.row, g.queries - first, g.head_size},
                         problem.dq);
}

/// mean[query] = the sum of dy y: of dP, by P. Half a warp owns a query.
__global__ void attention_mean_kernel(AttentionGeometry g, Global<const float> y,
                                      Global<const float> dy, Global<float> mean) {
  const ThreadPlace place;
  const std::int64_t row = (std::int64_t{blockIdx.x} * kFlashThreads + threadIdx.x) / kRowThreads;
  const bool is_query = row < g.batch * g.heads * g.queries;
  float sum = 0;
  if (is_query) {
    const HeadPair head(g, row / g.queries);
    const std::int64_t start = head.y + row % g.queries * g.y.row;
    for (std::int64_t d = place.lane; d < g.value_size; d += kRowThreads) {
      sum = multiply_add(dy[start + d], y[start + d], sum);
    }
  }
  sum = fold_row<SumOf<float>>(sum);
  if (is_query && place.lane == 0) mean[row] = sum;
}

class FlashAttentionGradient : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (query.contract != Contract::F32) {
      return Verdict::no("multiplies float32: under other contracts it is products");
    }
    if (query.inputs.size() <= AttentionGradient::kSums) {
      return Verdict::no("reads the sums of AttentionWithSums");
    }
    return accepts_heads(query);
  }

  FlashAttentionGradient(const KernelQuery& query, Device&) : g_(attention_geometry(query)) {
    for (const auto& input : query.inputs) elements_.push_back(input.spec.shape.elements());
  }

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(queries()) * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    auto* mean = reinterpret_cast<float*>(args.scratch);
    const Global<const float> y = {args.in<float>(3), elements_[3]},
                              dy = {args.in<float>(4), elements_[4]};
    launch(args.stream, "flash_attention_mean",
           {{static_cast<unsigned>(ceil_div(queries() * kRowThreads, kFlashThreads))},
            {kFlashThreads}},
           kInstance<attention_mean_kernel>, g_, y, dy, Global<float>{mean, queries()});
    const GradientProblem problem = {.g = g_,
                                     .q = {args.in<float>(0), elements_[0]},
                                     .k = {args.in<float>(1), elements_[1]},
                                     .v = {args.in<float>(2), elements_[2]},
                                     .dy = dy,
                                     .sums = {args.in<float>(AttentionGradient::kSums), queries()},
                                     .mean = {mean, queries()},
                                     .dq = {args.out<float>(0), elements_[0]},
                                     .dk = {args.out<float>(1), elements_[1]},
                                     .dv = {args.out<float>(2), elements_[2]}};
    g_.head_size <= 64 && g_.value_size <= 64 ? run_as<64>(args, problem)
                                              : run_as<128>(args, problem);
  }

 private:
  /// Queries of all heads.
  std::int64_t queries() const { return g_.batch * g_.heads * g_.queries; }

  template <int kHead>
  void run_as(const KernelArgs& args, const GradientProblem& problem) const {
    const auto tiles = [](std::int64_t rows) {
      return static_cast<unsigned>(ceil_div(rows, kFlashRows));
    };
    launch(args.stream, "flash_attention_key_gradient",
           {{tiles(g_.keys), static_cast<unsigned>(g_.batch * g_.kv_heads)},
            {kFlashThreads},
            sizeof(GradientTile<kHead>)},
           kInstance<flash_attention_key_gradient_kernel<kHead>>, problem);
    launch(args.stream, "flash_attention_query_gradient",
           {{tiles(g_.queries), static_cast<unsigned>(g_.batch * g_.heads)},
            {kFlashThreads},
            sizeof(GradientTile<kHead>)},
           kInstance<flash_attention_query_gradient_kernel<kHead>>, problem);
  }

  AttentionGeometry g_;
  std::vector<std::int64_t> elements_;  ///< of the inputs
};

}  // namespace

void add_attention_gradient_kernels(KernelList& list) {
  list.push_back(kernel_entry<FlashAttentionGradient>(AttentionGradient::kName, "flash"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
