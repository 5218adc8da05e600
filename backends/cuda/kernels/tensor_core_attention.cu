// Attention as in attention.cu, on the tensor cores (FlashAttention-2's division of the work). A
// block of four warps owns 64 queries of a head, and a warp owns 16 of them, with their rows of
// scores and of the output in its registers. Keys and values come 64 at a time by asynchronous
// copies, two stages deep. The scores of a warp are, as they lie, the operand that weighs the
// values: nothing but keys and values passes through shared memory.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/bf16_operands.h"
#include "backends/cuda/kernels/reduction.cuh"
#include "backends/cuda/kernels/tensor_core_gemm.cuh"
#include "backends/cuda/kernels/tensor_core_kernels.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

inline constexpr int kTile = 64;  ///< queries, keys, and columns of a chunk
inline constexpr int kFlashThreads = 128, kStages = 2;

/// kChunks chunks of 64 columns, each 64 rows: of the queries, and of keys and values by stage.
template <int kChunks>
struct HeadTiles {
  Swizzled<kChunks * kTile> q;
  Swizzled<kStages * kChunks * kTile> k, v;
};

/// A rounded tensor: rows of `width` elements, whole in pieces, and the elements from one row,
/// head and batch entry to the next.
struct RoundedHeads {
  Global<const BFloat16> data;
  std::int64_t width = 0;
  HeadStrides strides;
};

struct FlashProblem {
  AttentionGeometry g;
  RoundedHeads q, k, v;
  Global<float> y;
};

/// Asks for 64 rows of a head, `rows` of them there.
template <int kChunks, class Tile>
__device__ void copy_rows(CopyQueue& queue, Tile& to, int stage, const RoundedHeads& from,
                          std::int64_t start, std::int64_t rows) {
  const int thread = static_cast<int>(threadIdx.x), piece = thread % 8;
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const std::int64_t column = chunk * kTile + piece * 8;
#pragma unroll
    for (int row = 0; row < kTile; row += kFlashThreads / 8) {
      const int r = row + thread / 8;
      queue.copy(to, (stage * kChunks + chunk) * kTile + r, piece, from.data,
                 start + r * from.strides.row + column, r < rows && column < from.width);
    }
  }
}

/// State of a lane for its two queries, rows g and g + 8 of the warp's 16.
template <int kChunks>
struct WarpRows {
  float largest[2] = {-exact::kInfinity, -exact::kInfinity}, sum[2] = {};
  FragmentC values[kChunks * 8];
};

/// Folds the values of the four lanes that hold a row.
template <class Combine>
__device__ float fold_four(float value) {
  value = Combine()(value, __shfl_xor_sync(kWholeWarp, value, 1));
  return Combine()(value, __shfl_xor_sync(kWholeWarp, value, 2));
}

/// Scores become weights relative to the largest score so far, and earlier sums are rescaled
/// accordingly.
template <int kChunks>
__device__ void weigh(WarpRows<kChunks>& rows, FragmentC (&s)[8]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = rows.largest[half], sum = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      largest = MaxOf<float>()(largest, s[j].sums[2 * half]);
      largest = MaxOf<float>()(largest, s[j].sums[2 * half + 1]);
    }
    largest = fold_four<MaxOf<float>>(largest);
    const float shrink = exact::exp(rows.largest[half] - largest);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& score = s[j].sums[2 * half + e];
        score = exact::exp(score - largest);
        sum += score;
      }
    }
    rows.largest[half] = largest;
    rows.sum[half] = multiply_add(rows.sum[half], shrink, fold_four<SumOf<float>>(sum));
#pragma unroll
    for (int j = 0; j < kChunks * 8; ++j) {
      rows.values[j].sums[2 * half] *= shrink;
      rows.values[j].sums[2 * half + 1] *= shrink;
    }
  }
}

/// s = q k' of the warp's 16 queries and the 64 keys of a stage.
template <int kChunks>
__device__ void score(HeadTiles<kChunks>& tiles, int stage, const FragmentA (&q)[kChunks * 4],
                      FragmentC (&s)[8]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int k = 0; k < kChunks * 4; ++k) {
    const int first = (stage * kChunks + k / 4) * kTile;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      Pair pairs[4];
      load_matrices(tiles.k, first + 16 * j + lane / 16 * 8 + lane % 8, k % 4 * 2 + lane / 8 % 2,
                    pairs);
      multiply(s[2 * j], q[k], {{pairs[0], pairs[1]}});
      multiply(s[2 * j + 1], q[k], {{pairs[2], pairs[3]}});
    }
  }
}

/// values += weights v, 64 keys.
template <int kChunks>
__device__ void add_values(HeadTiles<kChunks>& tiles, int stage, const FragmentC (&s)[8],
                           WarpRows<kChunks>& rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const FragmentC &low = s[2 * k], &high = s[2 * k + 1];
    const FragmentA weights = {
        {rounded_pair(low.sums[0], low.sums[1]), rounded_pair(low.sums[2], low.sums[3]),
         rounded_pair(high.sums[0], high.sums[1]), rounded_pair(high.sums[2], high.sums[3])}};
#pragma unroll
    for (int j = 0; j < kChunks * 4; ++j) {
      const int row = (stage * kChunks + j / 4) * kTile + 16 * k + lane / 8 % 2 * 8 + lane % 8;
      Pair pairs[4];
      load_matrices_transposed(tiles.v, row, j % 4 * 2 + lane / 16, pairs);
      multiply(rows.values[2 * j], weights, {{pairs[0], pairs[1]}});
      multiply(rows.values[2 * j + 1], weights, {{pairs[2], pairs[3]}});
    }
  }
}

/// Scales scores. -inf for keys that are not there, or that a query does not see.
__device__ inline void mask(const FlashProblem& problem, std::int64_t query, std::int64_t key,
                            FragmentC (&s)[8]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t row = query + i / 2 * 8 + lane / 4;
      const std::int64_t column = key + 8 * j + lane % 4 * 2 + i % 2;
      const bool sees = column < problem.g.keys && (!problem.g.is_causal || column <= row);
      s[j].sums[i] = sees ? s[j].sums[i] * problem.g.scale : -exact::kInfinity;
    }
  }
}

template <int kChunks>
__device__ void store_rows(const FlashProblem& problem, std::int64_t start, std::int64_t query,
                           const WarpRows<kChunks>& rows) {
  const auto& g = problem.g;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = query + half * 8 + lane / 4;
    if (row >= g.queries) continue;
#pragma unroll
    for (int j = 0; j < kChunks * 8; ++j) {
      const std::int64_t d = 8 * j + lane % 4 * 2, at = start + row * g.y.row + d;
      const float first = canonical(rows.values[j].sums[2 * half] / rows.sum[half]);
      const float second = canonical(rows.values[j].sums[2 * half + 1] / rows.sum[half]);
      if (g.value_size % 2 == 0) {
        if (d < g.value_size) problem.y.store<2>(at, {{first, second}});
        continue;
      }
      if (d < g.value_size) problem.y[at] = first;
      if (d + 1 < g.value_size) problem.y[at + 1] = second;
    }
  }
}

/// Grid: (tiles of queries, batch entries and heads).
template <int kChunks>
__global__ void __launch_bounds__(128, 2) tensor_core_attention_kernel(FlashProblem problem) {
  auto& tiles = shared<HeadTiles<kChunks>>();
  const auto& g = problem.g;
  const std::int64_t batch = blockIdx.y / g.heads, head = blockIdx.y % g.heads;
  const std::int64_t kv_head = head / (g.heads / g.kv_heads);
  const auto start = [&](const HeadStrides& of, std::int64_t number) {
    return batch * of.batch + number * of.head;
  };
  // The last queries see most keys: they start first.
  const std::int64_t first = (std::int64_t{gridDim.x} - 1 - blockIdx.x) * kTile;
  const std::int64_t seen = g.is_causal && first + kTile < g.keys ? first + kTile : g.keys;
  CopyQueue queue;
  const auto copy_stage = [&](std::int64_t key) {
    if (key < seen) {
      const int stage = static_cast<int>(key / kTile) % kStages;
      copy_rows<kChunks>(queue, tiles.k, stage, problem.k,
                         start(problem.k.strides, kv_head) + key * problem.k.strides.row,
                         g.keys - key);
      copy_rows<kChunks>(queue, tiles.v, stage, problem.v,
                         start(problem.v.strides, kv_head) + key * problem.v.strides.row,
                         g.keys - key);
    }
    queue.commit();  // an empty group too: wait counts them
  };
  copy_rows<kChunks>(queue, tiles.q, 0, problem.q,
                     start(problem.q.strides, head) + first * problem.q.strides.row,
                     g.queries - first);
  copy_stage(0);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 * 16;
  FragmentA q[kChunks * 4];
  WarpRows<kChunks> rows;
  for (std::int64_t key = 0; key < seen; key += kTile) {
    copy_stage(key + kTile);
    queue.wait<1>();
    __syncthreads();
    if (key == 0) {
#pragma unroll
      for (int k = 0; k < kChunks * 4; ++k) {
        load_matrices(tiles.q, k / 4 * kTile + row + lane % 16, k % 4 * 2 + lane / 16, q[k].pairs);
      }
    }
    const int stage = static_cast<int>(key / kTile) % kStages;
    FragmentC s[8];
    score(tiles, stage, q, s);
    mask(problem, first + row, key, s);
    weigh(rows, s);
    add_values(tiles, stage, s, rows);
    __syncthreads();  // all have read the stage that is filled next
  }
  store_rows(problem, start(g.y, head), first + row, rows);
}

class TensorCoreAttention : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (query.contract != Contract::Bf16) {
      return Verdict::no("multiplies bfloat16 in the tensor cores' order: for the contract bf16");
    }
    return accepts_heads(query);
  }

  TensorCoreAttention(const KernelQuery& query, Device&) : g_(attention_geometry(query)) {
    const std::int64_t sizes[] = {g_.head_size, g_.head_size, g_.value_size};
    for (std::size_t i = 0; i < 3; ++i) {
      inputs_[i] = {query.inputs[i].spec.shape.elements() / sizes[i], sizes[i]};
    }
    y_elements_ = query.outputs[0].spec.shape.elements();
  }

  std::size_t scratch_bytes() const override {
    return inputs_[0].bytes() + inputs_[1].bytes() + inputs_[2].bytes();
  }

  void run(const KernelArgs& args) override {
    if (g_.head_size <= kTile && g_.value_size <= kTile) {
      run_as<1>(args);
    } else {
      run_as<2>(args);
    }
  }

 private:
  /// An input as rows of all heads.
  struct Rows {
    std::int64_t count = 0, size = 0;

    std::size_t bytes() const {
      constexpr std::size_t kLine = 128;
      const auto all = static_cast<std::size_t>(count * padded(size)) * sizeof(BFloat16);
      return (all + kLine - 1) / kLine * kLine;
    }
    HeadStrides rounded(const HeadStrides& of) const {
      const auto scaled = [&](std::int64_t stride) { return stride / size * padded(size); };
      return {scaled(of.batch), scaled(of.head), scaled(of.row)};
    }
  };

  RoundedHeads round(const KernelArgs& args, std::size_t i, const HeadStrides& strides,
                     std::byte*& to) const {
    const auto& rows = inputs_[i];
    auto* rounded = reinterpret_cast<BFloat16*>(to);
    const auto elements = rows.count * padded(rows.size);
    round_rows(args.stream, {args.in<float>(i), rows.count * rows.size}, {rounded, elements},
               rows.count, rows.size);
    to += rows.bytes();
    return {{rounded, elements}, padded(rows.size), rows.rounded(strides)};
  }

  template <int kChunks>
  void run_as(const KernelArgs& args) const {
    auto* scratch = args.scratch;
    FlashProblem problem = {.g = g_};
    problem.q = round(args, 0, g_.q, scratch);
    problem.k = round(args, 1, g_.k, scratch);
    problem.v = round(args, 2, g_.v, scratch);
    problem.y = {args.out<float>(0), y_elements_};
    launch(args.stream, "flash_attention_tensor_core",
           {{static_cast<unsigned>(ceil_div(g_.queries, kTile)),
             static_cast<unsigned>(g_.batch * g_.heads)},
            {kFlashThreads},
            sizeof(HeadTiles<kChunks>)},
           kInstance<tensor_core_attention_kernel<kChunks>>, problem);
  }

  AttentionGeometry g_;
  Rows inputs_[3];
  std::int64_t y_elements_ = 0;
};

}  // namespace

void add_tensor_core_attention_kernels(KernelList& list) {
  add_for_bf16(list, kernel_entry<TensorCoreAttention>(Attention::kName, "flash-tensor-core"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
