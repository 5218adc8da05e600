// A cooperative launch whose blocks wait for each other. A word chooses a mistake.
// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <string>

namespace cg = cooperative_groups;

/// Each block adds to the value of the next one, which it may read only behind a barrier.
__global__ void pass_on(int* values, int turns, int leaves) {
  const cg::grid_group grid = cg::this_grid();
  __shared__ int next;
  if (threadIdx.x == 0) values[blockIdx.x] = blockIdx.x;
  if (leaves != 0 && blockIdx.x == 1) return;
  for (int turn = 0; turn < turns; ++turn) {
    grid.sync();
    if (threadIdx.x == 0) next = values[(blockIdx.x + 1) % gridDim.x];
    grid.sync();
    if (threadIdx.x == 0) values[blockIdx.x] += next;
  }
}

int main(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  const bool is_crowd = word == "crowd";
  const int threads = is_crowd ? 1024 : 64;
  int device = 0, can = 0, blocks = is_crowd ? 32 : 4, turns = 2, leaves = word == "leaves";
  int* values;
  cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, device);
  cudaMalloc(&values, blocks * sizeof(int));
  void* arguments[] = {&values, &turns, &leaves};
  if (word == "plain") pass_on<<<blocks, 64>>>(values, turns, leaves);
  if (word == "large") blocks = 10000;
  const auto error = cudaLaunchCooperativeKernel(pass_on, blocks, threads, arguments);
  int host[4] = {};
  if (error == cudaSuccess) cudaMemcpy(host, values, sizeof(host), cudaMemcpyDeviceToHost);
  std::printf("%d %s, %d %d %d %d\n", can, cudaGetErrorName(error), host[0], host[1], host[2],
              host[3]);
}
