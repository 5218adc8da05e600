// Attention without its scores in global memory (Dao et al., "FlashAttention", 2022, with the loops
// of Dao, "FlashAttention-2", 2023). A block owns 64 queries of a head and goes through the keys 64
// at a time: their scores, which softmax turns into weights of the values, stay in registers and
// shared memory. As larger scores come, the sums so far are scaled down (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018). Each of 16 x 16 threads owns 4 queries:
// scores against 4 keys, and 4 or 8 columns of the output. Global memory: q and y once, k and v
// once for every 64 queries, the scores never.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/attention.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

inline constexpr int kQueries = kFlashRows, kKeys = kFlashRows;
inline constexpr float kUnseen = -exact::kInfinity;

template <int kHead>
struct FlashTile {
  HeadTile<kHead> q;              // [d, query]
  HeadTile<kHead> k;              // [d, key], then the weights [query, key]
  Shared<float, kKeys, kHead> v;  // [key, d]
};

struct AttentionProblem {
  AttentionGeometry g;
  Global<const float> q, k, v;
  Global<float> y;
  bool has_sums = false;
  Global<float> sums;  ///< logarithms of the sums of exp(score), by query
};

/// One head: where its rows start, and the queries of this block.
struct FlashPlace {
  std::int64_t q, k, v, y;
  std::int64_t first;  ///< query
  std::int64_t seen;   ///< keys that some query of the block sees
};

__device__ FlashPlace flash_place(const AttentionProblem& problem) {
  const auto& g = problem.g;
  const std::int64_t batch = blockIdx.y / g.heads, head = blockIdx.y % g.heads;
  const std::int64_t shared_head = head / (g.heads / g.kv_heads);
  // The last queries see most keys: they start first.
  const std::int64_t first = (std::int64_t{gridDim.x} - 1 - blockIdx.x) * kQueries;
  const std::int64_t last = first + kQueries;
  return {batch * g.q.batch + head * g.q.head,
          batch * g.k.batch + shared_head * g.k.head,
          batch * g.v.batch + shared_head * g.v.head,
          batch * g.y.batch + head * g.y.head,
          first,
          g.is_causal && last < g.keys ? last : g.keys};
}

/// to[key, d] = v[key, d], zeros beyond.
template <bool kRound, int kHead, class Tile>
__device__ void load_values(const Global<const float>& v, std::int64_t row_stride,
                            std::int64_t rows, std::int64_t size, Tile& to) {
  for (int i = static_cast<int>(threadIdx.x); i < kKeys * kHead; i += kFlashThreads) {
    const int key = i / kHead, d = i % kHead;
    float value = 0;
    if (key < rows && d < size) value = operand<kRound>(v[key * row_stride + d]);
    to(key, d) = value;
  }
}

/// State of a thread for its 4 queries: the largest score so far, the sum of the weights relative
/// to it, and its columns of the sum of weighted values.
template <int kHead>
struct FlashRows {
  static constexpr int kPieces = kHead / (4 * kRowThreads);
  float largest[4], sum[4];
  float values[4][kPieces][4];

  __device__ FlashRows() {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      largest[i] = kUnseen;
      sum[i] = 0;
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
        for (int e = 0; e < 4; ++e) values[i][piece][e] = 0;
      }
    }
  }
};

/// Scores become weights exp(score - largest), and earlier sums are rescaled to the same largest
/// score.
template <int kHead>
__device__ void weigh(FlashRows<kHead>& rows, float (&s)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float largest = rows.largest[i];
#pragma unroll
    for (int j = 0; j < 4; ++j) largest = MaxOf<float>()(largest, s[i][j]);
    largest = fold_row<MaxOf<float>>(largest);
    const float shrink = exact::exp(rows.largest[i] - largest);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      s[i][j] = exact::exp(s[i][j] - largest);
      sum += s[i][j];
    }
    rows.largest[i] = largest;
    rows.sum[i] = multiply_add(rows.sum[i], shrink, fold_row<SumOf<float>>(sum));
#pragma unroll
    for (int piece = 0; piece < FlashRows<kHead>::kPieces; ++piece) {
#pragma unroll
      for (int e = 0; e < 4; ++e) rows.values[i][piece][e] *= shrink;
    }
  }
}

/// Adds the values of the keys of a tile by their weights.
template <int kHead>
__device__ void add_values(FlashTile<kHead>& tile, int row, int column, FlashRows<kHead>& rows) {
#pragma unroll 2
  for (int key = 0; key < kKeys; key += 4) {
    Four weights[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) weights[i] = tile.k.template load<4>(row + i, key);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int piece = 0; piece < FlashRows<kHead>::kPieces; ++piece) {
        const Four v = tile.v.template load<4>(key + j, column + piece * 4 * kRowThreads);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            rows.values[i][piece][e] = multiply_add(weights[i][j], v[e], rows.values[i][piece][e]);
          }
        }
      }
    }
  }
}

template <int kHead>
__device__ void store_rows(const AttentionProblem& problem, const FlashPlace& place, int row,
                           int column, const FlashRows<kHead>& rows) {
  const auto& g = problem.g;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (place.first + row + i >= g.queries) continue;
    if (problem.has_sums && column == 0) {
      const std::int64_t query = std::int64_t{blockIdx.y} * g.queries + place.first + row + i;
      problem.sums[query] = canonical(rows.largest[i] + exact::log(rows.sum[i]));
    }
    const std::int64_t start = place.y + (place.first + row + i) * g.y.row;
#pragma unroll
    for (int piece = 0; piece < FlashRows<kHead>::kPieces; ++piece) {
      const int d = column + piece * 4 * kRowThreads;
      Four out;
#pragma unroll
      for (int e = 0; e < 4; ++e) out[e] = canonical(rows.values[i][piece][e] / rows.sum[i]);
      if (g.value_size % 4 == 0) {
        if (d < g.value_size) problem.y.store<4>(start + d, out);
      } else {
        for (int e = 0; e < 4 && d + e < g.value_size; ++e) problem.y[start + d + e] = out[e];
      }
    }
  }
}

/// Grid: (tiles of queries, batch entries and heads).
template <bool kRound, int kHead>
__global__ void __launch_bounds__(256, 2) flash_attention_kernel(AttentionProblem problem) {
  auto& tile = shared<FlashTile<kHead>>();
  const auto& g = problem.g;
  const FlashPlace place = flash_place(problem);
  const int row = static_cast<int>(threadIdx.x) / kRowThreads * 4;
  const int column = static_cast<int>(threadIdx.x) % kRowThreads * 4;
  const int size = static_cast<int>(g.head_size);
  load_transposed<kRound>(problem.q.from(place.q + place.first * g.q.row), g.q.row,
                          g.queries - place.first, size, size, tile.q);
  FlashRows<kHead> rows;
  for (std::int64_t key = 0; key < place.seen; key += kKeys) {
    load_transposed<kRound>(problem.k.from(place.k + key * g.k.row), g.k.row, g.keys - key, size,
                            size, tile.k);
    load_values<kRound, kHead>(problem.v.from(place.v + key * g.v.row), g.v.row, g.keys - key,
                               g.value_size, tile.v);
    __syncthreads();
    float s[4][4] = {};  // [query, key]
    score<4>(tile.q, tile.k, row, column, size, s);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const std::int64_t number = key + column + j, query = place.first + row + i;
        const bool sees = number < g.keys && (!g.is_causal || number <= query);
        s[i][j] = sees ? s[i][j] * g.scale : kUnseen;
      }
    }
    weigh(rows, s);
    __syncthreads();  // the keys are read: their place is free for the weights
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      Four weights;
#pragma unroll
      for (int j = 0; j < 4; ++j) weights[j] = operand<kRound>(s[i][j]);
      tile.k.template store<4>(row + i, column, weights);
    }
    __syncthreads();
    add_values(tile, row, column, rows);
    __syncthreads();
  }
  store_rows(problem, place, row, column, rows);
}

class FlashAttention : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (query.contract == Contract::Int8) {
      return Verdict::no("multiplies floating-point operands, not int8");
    }
    if (query.contract == Contract::Bf16Exact) {
      return Verdict::no("sums keys tile by tile, which bf16-exact's stated sums are not");
    }
    return accepts_heads(query);
  }

  FlashAttention(const KernelQuery& query, Device&)
      : g_(attention_geometry(query)),
        has_sums_(query.outputs.size() > 1),
        round_(rounds_operands(query.contract)) {
    for (const auto& input : query.inputs) elements_.push_back(input.spec.shape.elements());
    elements_.push_back(query.outputs[0].spec.shape.elements());
  }

  void run(const KernelArgs& args) override {
    const bool small = g_.head_size <= 64 && g_.value_size <= 64;
    if (round_) {
      small ? run_as<true, 64>(args) : run_as<true, 128>(args);
    } else {
      small ? run_as<false, 64>(args) : run_as<false, 128>(args);
    }
  }

 private:
  template <bool kRound, int kHead>
  void run_as(const KernelArgs& args) const {
    AttentionProblem problem = {.g = g_,
                                .q = {args.in<float>(0), elements_[0]},
                                .k = {args.in<float>(1), elements_[1]},
                                .v = {args.in<float>(2), elements_[2]},
                                .y = {args.out<float>(0), elements_[3]}};
    if (has_sums_) {
      problem.has_sums = true;
      problem.sums = {args.out<float>(1), g_.batch * g_.heads * g_.queries};
    }
    const auto tiles = (g_.queries + kQueries - 1) / kQueries;
    launch(args.stream, "flash_attention",
           {{static_cast<unsigned>(tiles), static_cast<unsigned>(g_.batch * g_.heads)},
            {kFlashThreads},
            sizeof(FlashTile<kHead>)},
           kInstance<flash_attention_kernel<kRound, kHead>>, problem);
  }

  AttentionGeometry g_;
  bool has_sums_, round_;
  std::vector<std::int64_t> elements_;  ///< of q, k, v and y
};

}  // namespace

void add_attention_kernels(KernelList& list) {
  for (const auto op : {Attention::kName, AttentionWithSums::kName}) {
    list.push_back(kernel_entry<FlashAttention>(op, "flash"));
  }
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
