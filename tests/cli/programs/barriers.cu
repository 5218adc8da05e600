// A barrier with separate arrival and wait, on which only one warp waits, and atomic objects.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <cuda/atomic>
#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void sum_warps(const int* values, int* sum, int arrives_late) {
  __shared__ Barrier barrier;
  __shared__ int partial[4];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  int value = values[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0U, value, step);
  Barrier::arrival_token token;
  if (arrives_late == 0) {
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    token = barrier.arrive();
  } else {
    token = barrier.arrive();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  }
  if (threadIdx.x >= 32) return;
  barrier.wait(std::move(token));
  if (threadIdx.x == 0) sum[0] = partial[0] + partial[1] + partial[2] + partial[3];
}

__global__ void take_turns(cuda::atomic<unsigned, cuda::thread_scope_device>* counter, int* order) {
  if (threadIdx.x != 0) return;
  const unsigned ticket = counter->fetch_add(1);
  order[ticket] = static_cast<int>(ticket) + 1;
  cuda::atomic_ref<int, cuda::thread_scope_device> total(order[3]);
  total.fetch_add(order[ticket]);
}

int main(int argc, char**) {
  int host[128], *values, *sum, *order;
  for (int i = 0; i < 128; ++i) host[i] = i;
  cuda::atomic<unsigned, cuda::thread_scope_device>* counter;
  cudaMalloc(&values, sizeof(host));
  cudaMallocManaged(&sum, sizeof(int));
  cudaMallocManaged(&order, 4 * sizeof(int));
  cudaMalloc(&counter, sizeof(*counter));
  cudaMemset(counter, 0, sizeof(*counter));
  cudaMemcpy(values, host, sizeof(host), cudaMemcpyHostToDevice);
  order[3] = 0;
  sum_warps<<<1, 128>>>(values, sum, argc - 1);
  take_turns<<<3, 32>>>(counter, order);
  cudaDeviceSynchronize();
  std::printf("%d, %d %d %d sum to %d\n", sum[0], order[0], order[1], order[2], order[3]);
}
