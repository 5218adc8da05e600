// Breadth-first search with a mask per level and a flag that the host reads, as benchmark suites
// have it.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS_PER_BLOCK 64

struct Node {
  int starting;
  int no_of_edges;
};

__global__ void Kernel(Node* g_nodes, int* g_edges, bool* g_mask, bool* g_updating, bool* g_visited,
                       int* g_cost, int no_of_nodes) {
  int tid = blockIdx.x * MAX_THREADS_PER_BLOCK + threadIdx.x;
  if (tid < no_of_nodes && g_mask[tid]) {
    g_mask[tid] = false;
    for (int i = g_nodes[tid].starting; i < g_nodes[tid].no_of_edges + g_nodes[tid].starting; i++) {
      int id = g_edges[i];
      if (!g_visited[id]) {
        g_cost[id] = g_cost[tid] + 1;
        g_updating[id] = true;
      }
    }
  }
}

__global__ void Kernel2(bool* g_mask, bool* g_updating, bool* g_visited, bool* g_over,
                        int no_of_nodes) {
  int tid = blockIdx.x * MAX_THREADS_PER_BLOCK + threadIdx.x;
  if (tid < no_of_nodes && g_updating[tid]) {
    g_mask[tid] = true;
    g_visited[tid] = true;
    atomicOr((unsigned*)g_over, 1u);
    g_updating[tid] = false;
  }
}

int main(int argc, char** argv) {
  const int nodes = 100;
  Node* h_nodes = (Node*)malloc(sizeof(Node) * nodes);
  int* h_edges = (int*)malloc(sizeof(int) * nodes);
  bool* h_mask = (bool*)calloc(nodes, 1);
  bool* h_visited = (bool*)calloc(nodes, 1);
  int* h_cost = (int*)malloc(sizeof(int) * nodes);
  for (int i = 0; i < nodes; i++) {  // a binary tree
    h_nodes[i].starting = 2 * i < nodes ? 2 * i : nodes;
    h_nodes[i].no_of_edges = (2 * i + 2 < nodes) ? 2 : (2 * i + 1 < nodes ? 1 : 0);
    h_cost[i] = -1;
  }
  for (int i = 0; i < nodes; i++) h_edges[i] = i + 1 < nodes ? i + 1 : 0;
  h_mask[0] = h_visited[0] = true;
  h_cost[0] = 0;

  Node* d_nodes;
  int *d_edges, *d_cost, *d_over;
  bool *d_mask, *d_updating, *d_visited;
  cudaMalloc((void**)&d_nodes, sizeof(Node) * nodes);
  cudaMemcpy(d_nodes, h_nodes, sizeof(Node) * nodes, cudaMemcpyHostToDevice);
  cudaMalloc((void**)&d_edges, sizeof(int) * nodes);
  cudaMemcpy(d_edges, h_edges, sizeof(int) * nodes, cudaMemcpyHostToDevice);
  cudaMalloc((void**)&d_mask, nodes);
  cudaMemcpy(d_mask, h_mask, nodes, cudaMemcpyHostToDevice);
  cudaMalloc((void**)&d_updating, nodes);
  cudaMemset(d_updating, 0, nodes);
  cudaMalloc((void**)&d_visited, nodes);
  cudaMemcpy(d_visited, h_visited, nodes, cudaMemcpyHostToDevice);
  cudaMalloc((void**)&d_cost, sizeof(int) * nodes);
  cudaMemcpy(d_cost, h_cost, sizeof(int) * nodes, cudaMemcpyHostToDevice);
  cudaMalloc((void**)&d_over, sizeof(int));

  const dim3 grid((nodes + MAX_THREADS_PER_BLOCK - 1) / MAX_THREADS_PER_BLOCK),
      threads(MAX_THREADS_PER_BLOCK);
  int k = 0, stop;
  do {
    stop = 0;
    cudaMemcpy(d_over, &stop, sizeof(int), cudaMemcpyHostToDevice);
    Kernel<<<grid, threads, 0>>>(d_nodes, d_edges, d_mask, d_updating, d_visited, d_cost, nodes);
    Kernel2<<<grid, threads, 0>>>(d_mask, d_updating, d_visited, (bool*)d_over, nodes);
    cudaMemcpy(&stop, d_over, sizeof(int), cudaMemcpyDeviceToHost);
    k++;
  } while (stop);
  cudaMemcpy(h_cost, d_cost, sizeof(int) * nodes, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < nodes; i++) wrong += h_cost[i] != (int)floor(log2(i + 1.0));
  printf("Kernel executed %d times, %d wrong\n", k, wrong);
  return 0;
}
