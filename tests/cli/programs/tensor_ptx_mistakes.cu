// Mistakes with cp.async and ldmatrix, one for each argument, at lines with "// fault".
// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>

__device__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ void copy_late(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;\n"  // fault: outside
               ::"r"(shared_address(to)),
               "l"(from));
}

/// Halves of each thread's own 16 bytes.
__global__ void early(const half* from, half* to) {
  __shared__ alignas(16) half tile[64][8];
  copy_late(tile[threadIdx.x], from + 8 * threadIdx.x);
  asm volatile("cp.async.commit_group;");
  to[threadIdx.x] = tile[threadIdx.x][0];  // fault: early
  asm volatile("cp.async.wait_group 0;");
}

__global__ void outside(const half* from, half* to) {
  __shared__ alignas(16) half tile[64][8];
  copy_late(tile[threadIdx.x], from + 8 * (threadIdx.x + 1));
  asm volatile("cp.async.wait_all;");
  to[threadIdx.x] = tile[threadIdx.x][0];
}

/// The other warp's part is read without a barrier.
__global__ void race(const half* from, half* to) {
  __shared__ alignas(16) half tile[64][8];
  copy_late(tile[threadIdx.x], from + 8 * threadIdx.x);
  asm volatile("cp.async.wait_all;");
  to[threadIdx.x] = tile[63 - threadIdx.x][0];  // fault: race
}

/// The second copy begins while another warp may read.
__global__ void overwrite(const half* from, half* to) {
  __shared__ alignas(16) half tile[64][8];
  copy_late(tile[threadIdx.x], from + 8 * threadIdx.x);
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  to[threadIdx.x] = tile[63 - threadIdx.x][0];  // fault: overwrite
  copy_late(tile[threadIdx.x], from + 8 * threadIdx.x);
  __syncthreads();
  asm volatile("cp.async.wait_all;");
}

__global__ void misaligned(const half* from, half* to) {
  __shared__ alignas(16) half tile[64 * 8];
  copy_late(tile + 8 * threadIdx.x, from + 8 * threadIdx.x);
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  uint32_t pair;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"  // fault: misaligned
               : "=r"(pair)
               : "r"(shared_address(tile + 12 * (threadIdx.x % 8))));
  memcpy(to, &pair, sizeof pair);
}

int main(int, char** words) {
  half *from, *to;
  cudaMalloc(&from, 64 * 8 * sizeof(half));
  cudaMalloc(&to, 64 * sizeof(half));
  cudaMemset(from, 0, 64 * 8 * sizeof(half));
  if (!std::strcmp(words[1], "early")) early<<<1, 64>>>(from, to);
  if (!std::strcmp(words[1], "outside")) outside<<<1, 64>>>(from, to);
  if (!std::strcmp(words[1], "race")) race<<<1, 64>>>(from, to);
  if (!std::strcmp(words[1], "overwrite")) overwrite<<<1, 64>>>(from, to);
  if (!std::strcmp(words[1], "misaligned")) misaligned<<<1, 64>>>(from, to);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
