// Asynchronous copies: a pipeline of a thread with two stages, one of a block with producers and
// consumers, copies that a barrier awaits, copies of a group, and groups of copies.
// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

constexpr int kBlock = 64, kTiles = 5, kCount = kBlock * kTiles;

/// Adds the tiles, each of which is copied while the one before it is added.
__global__ void add_tiles(const float4* tiles, float4* sum, bool waits) {
  __shared__ float4 stages[2][kBlock];
  const auto shape = cuda::aligned_size_t<alignof(float4)>(sizeof(float4));
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  const auto fetch = [&](int tile) {
    pipe.producer_acquire();
    cuda::memcpy_async(&stages[tile % 2][threadIdx.x], &tiles[tile * kBlock + threadIdx.x], shape,
                       pipe);
    pipe.producer_commit();
  };
  fetch(0);
  float4 total = {};
  for (int tile = 0; tile < kTiles; ++tile) {
    if (tile + 1 < kTiles) {
      fetch(tile + 1);
      if (waits) cuda::pipeline_consumer_wait_prior<1>(pipe);
    } else {
      pipe.consumer_wait();
    }
    __syncthreads();
    const float4 other = stages[tile % 2][kBlock - 1 - threadIdx.x];  // read of a stage
    total.x += other.x;
    total.w += other.w;
    __syncthreads();
    pipe.consumer_release();
  }
  sum[threadIdx.x] = total;
}

/// The second half of the block copies, the first half adds.
__global__ void share_work(const int* tiles, int* sum) {
  constexpr int kStages = 3;
  __shared__ int stages[kStages][kBlock];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const auto block = cg::this_thread_block();
  const bool consumes = block.thread_rank() < kBlock;
  auto pipe = cuda::make_pipeline(
      block, &state, consumes ? cuda::pipeline_role::consumer : cuda::pipeline_role::producer);
  int total = 0;
  for (int tile = 0; tile < kTiles; ++tile) {
    if (consumes) {
      pipe.consumer_wait();
      total += stages[tile % kStages][kBlock - 1 - threadIdx.x];
      pipe.consumer_release();
    } else {
      const int at = threadIdx.x - kBlock;
      pipe.producer_acquire();
      cuda::memcpy_async(&stages[tile % kStages][at], &tiles[tile * kBlock + at], sizeof(int),
                         pipe);
      pipe.producer_commit();
    }
  }
  if (consumes) sum[threadIdx.x] = total;
}

/// Reverses a tile. Its halves are copied for a barrier and by a group.
__global__ void reverse(const int* tile, int* to) {
  __shared__ int part[kBlock];
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  const auto block = cg::this_thread_block();
  if (threadIdx.x == 0) init(&barrier, kBlock);
  block.sync();
  cuda::memcpy_async(block, part, tile, kBlock / 2 * sizeof(int), barrier);
  barrier.arrive_and_wait();
  cg::memcpy_async(block, part + kBlock / 2, tile + kBlock / 2, kBlock / 2 * sizeof(int));
  cg::wait(block);
  to[threadIdx.x] = part[kBlock - 1 - threadIdx.x];
}

/// Reverses a tile, by a group of whole copies and one whose second half is zeros.
__global__ void reverse_groups(const float4* tile, float4* to) {
  __shared__ float4 whole[kBlock], halves[kBlock];
  __pipeline_memcpy_async(&whole[threadIdx.x], &tile[threadIdx.x], sizeof(float4));
  __pipeline_commit();
  __pipeline_memcpy_async(&halves[threadIdx.x], &tile[threadIdx.x], 16, 8);
  __pipeline_commit();
  __pipeline_wait_prior(1);
  __syncthreads();
  float4 result = whole[kBlock - 1 - threadIdx.x];
  __pipeline_wait_prior(0);
  __syncthreads();
  result.y = halves[kBlock - 1 - threadIdx.x].x;
  result.z = halves[kBlock - 1 - threadIdx.x].w;
  to[threadIdx.x] = result;
}

int main(int argc, char** argv) {
  const bool waits = argc < 2 || std::strcmp(argv[1], "early") != 0;
  float4* quads;
  int *tiles, *sums;
  cudaMallocManaged(&quads, (kCount + 2 * kBlock) * sizeof(float4));
  cudaMallocManaged(&tiles, kCount * sizeof(int));
  cudaMallocManaged(&sums, 2 * kBlock * sizeof(int));
  for (int i = 0; i < kCount; ++i) {
    quads[i] = make_float4(i, 0, 0, 1);
    tiles[i] = i;
  }
  add_tiles<<<1, kBlock>>>(quads, quads + kCount, waits);
  share_work<<<1, 2 * kBlock>>>(tiles, sums);
  reverse<<<1, kBlock>>>(tiles, sums + kBlock);
  reverse_groups<<<1, kBlock>>>(quads, quads + kCount + kBlock);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < kBlock; ++i) {
    int expected = 0;
    for (int tile = 0; tile < kTiles; ++tile) expected += tile * kBlock + kBlock - 1 - i;
    wrong += quads[kCount + i].x != expected || quads[kCount + i].w != kTiles;
    wrong += sums[i] != expected;
    wrong += sums[kBlock + i] != kBlock - 1 - i;
    const float4 quad = quads[kCount + kBlock + i];
    wrong += quad.x != kBlock - 1 - i || quad.y != quad.x || quad.z != 0 || quad.w != 1;
  }
  std::printf("%d wrong\n", wrong);
}
