// Rounding with a direction, a tile of more than a warp, shuffles of structures, an own lerp, a
// class of the C++ library in a kernel, and constant pointers to memory of the GPU.
// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <execution>
#include <optional>
#include <random>
#include <stdexcept>

namespace cg = cooperative_groups;

inline __host__ __device__ float lerp(float a, float b, float t) { return a + t * (b - a); }

__global__ void round_sums(float* bounds, double* exact) {
  bounds[0] = __fadd_rd(1.0F, 1e-9F);
  bounds[1] = __fadd_ru(1.0F, 1e-9F);
  bounds[2] = __fdiv_rz(-1.0F, 3.0F);
  bounds[3] = __fsqrt_ru(2.0F) - __fsqrt_rd(2.0F);
  exact[0] = __dmul_ru(0.1, 0.1) - __dmul_rd(0.1, 0.1);
}

struct Quad {
  int x, y, z, w;
};

__global__ void group(int* sums, Quad* quads) {
  __shared__ cg::block_tile_memory<128> memory;
  auto tile = cg::tiled_partition<128>(cg::this_thread_block(memory));
  const int rank = static_cast<int>(tile.thread_rank());
  const int sum = cg::reduce(tile, rank, cg::plus<int>());
  const int next = tile.shfl_down(rank, 64);
  sums[rank] = sum + next;
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const Quad quad = warp.shfl(Quad{rank, 2 * rank, 3 * rank, 4 * rank}, 5);
  if (warp.thread_rank() == 0) quads[warp.meta_group_rank()] = quad;
}

__global__ void draw(unsigned* numbers) {
  std::minstd_rand generator(threadIdx.x + 1);
  generator.discard(9);
  numbers[threadIdx.x] = static_cast<unsigned>(generator());
}

__global__ void mix(const float* values, float* result) {
  result[0] = lerp(values[0], values[1], 0.25F);
}

int main() {
  float* bounds;
  double* exact;
  int* sums;
  Quad* quads;
  unsigned* numbers;
  cudaMallocManaged(&bounds, 4 * sizeof(float));
  cudaMallocManaged(&exact, sizeof(double));
  cudaMallocManaged(&sums, 128 * sizeof(int));
  cudaMallocManaged(&quads, 4 * sizeof(Quad));
  cudaMallocManaged(&numbers, 2 * sizeof(unsigned));
  const float* values;
  const float host[] = {2.0F, 4.0F};
  cudaMalloc(&values, sizeof(host));
  cudaMemcpy(const_cast<float*>(values), host, sizeof(host), cudaMemcpyHostToDevice);
  round_sums<<<1, 1>>>(bounds, exact);
  group<<<1, 128>>>(sums, quads);
  draw<<<1, 2>>>(numbers);
  cudaDeviceSynchronize();
  std::printf("%a %a %a %a %a\n", bounds[0], bounds[1], bounds[2], bounds[3], exact[0]);
  std::printf("%d %d, %d %d %d\n", sums[0], sums[127], quads[0].x, quads[1].y, quads[3].w);
  std::printf("%u %u\n", numbers[0], numbers[1]);
  mix<<<1, 1>>>(values, bounds);
  cudaDeviceSynchronize();
  try {
    throw std::runtime_error("caught");
  } catch (const std::exception& error) {
    std::printf("%g %s\n", bounds[0], error.what());
  }
}
