// Searches a graph by levels. Many threads set one flag, or mark one node, without an atomic
// operation: all of them store the same value. With an argument they store different ones.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

__global__ void visit(const int* begin, const int* neighbours, int* level, int turn, int* changed) {
  const int node = blockIdx.x * blockDim.x + threadIdx.x;
  if (level[node] != turn) return;
  for (int i = begin[node]; i < begin[node + 1]; ++i) {
    if (level[neighbours[i]] == -1) {
      level[neighbours[i] + gridDim.x * blockDim.x] = turn + 1;
      *changed = 1;
    }
  }
}

__global__ void merge(int* level) {
  const int node = blockIdx.x * blockDim.x + threadIdx.x;
  const int next = level[node + gridDim.x * blockDim.x];
  if (next != -1) level[node] = next;
}

__global__ void any_negative(const int* level, int* result, int unequal) {
  __shared__ int found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  if (level[blockIdx.x * blockDim.x + threadIdx.x] >= 0) found = 1 + unequal * threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) result[blockIdx.x] = found;
}

int main(int argc, char**) {
  const int nodes = 128;
  std::vector<int> begin(nodes + 1), neighbours;
  for (int node = 0; node < nodes; ++node) {
    for (int other : {node / 2, node / 3, 2 * node + 1, 3 * node + 2}) {
      if (other < nodes) neighbours.push_back(other);
    }
    begin[node + 1] = static_cast<int>(neighbours.size());
  }
  std::vector<int> level(2 * nodes, -1);
  level[0] = 0;
  int *d_begin, *d_neighbours, *d_level, *d_changed, *d_result;
  cudaMalloc(&d_begin, begin.size() * sizeof(int));
  cudaMalloc(&d_neighbours, neighbours.size() * sizeof(int));
  cudaMalloc(&d_level, level.size() * sizeof(int));
  cudaMalloc(&d_changed, sizeof(int));
  cudaMalloc(&d_result, 2 * sizeof(int));
  cudaMemcpy(d_begin, begin.data(), begin.size() * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(d_neighbours, neighbours.data(), neighbours.size() * sizeof(int),
             cudaMemcpyHostToDevice);
  cudaMemcpy(d_level, level.data(), level.size() * sizeof(int), cudaMemcpyHostToDevice);
  int changed = 1, turns = 0;
  for (; changed != 0; ++turns) {
    cudaMemset(d_changed, 0, sizeof(int));
    visit<<<2, 64>>>(d_begin, d_neighbours, d_level, turns, d_changed);
    merge<<<2, 64>>>(d_level);
    cudaMemcpy(&changed, d_changed, sizeof(int), cudaMemcpyDeviceToHost);
  }
  any_negative<<<2, 64>>>(d_level, d_result, argc - 1);
  int result[2];
  cudaMemcpy(result, d_result, sizeof(result), cudaMemcpyDeviceToHost);
  cudaMemcpy(level.data(), d_level, level.size() * sizeof(int), cudaMemcpyDeviceToHost);
  int sum = 0;
  for (int node = 0; node < nodes; ++node) sum += level[node];
  std::printf("%d turns, levels sum to %d, found %d %d\n", turns, sum, result[0], result[1]);
}
