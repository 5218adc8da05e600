// Several GPUs: memory of a peer, of a pool, variables of each GPU. An argument is a mistake.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

__device__ int bonus = 100;

__global__ void twice(const int* in, int* out) {
  const int i = threadIdx.x;
  out[i] = 2 * in[i] + bonus;  // memory of a peer
}

__global__ void set_bonus(int value) { bonus = value; }

void require(cudaError_t error) {
  if (error != cudaSuccess) std::printf("%s\n", cudaGetErrorName(error));
}

int sum_of(const int* device) {
  int host[32], sum = 0;
  require(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDefault));
  for (const int value : host) sum += value;
  return sum;
}

int main(int argc, char** argv) {
  const char* mistake = argc > 1 ? argv[1] : "";
  int count = 0, can = 0, current = 0;
  require(cudaGetDeviceCount(&count));
  require(cudaDeviceCanAccessPeer(&can, 0, 1));
  std::printf("%d GPUs, peers %d\n", count, can);
  int host[32], *first, *second;
  for (int i = 0; i < 32; ++i) host[i] = i;
  require(cudaSetDevice(1));
  require(cudaMalloc(&second, sizeof(host)));
  cudaStream_t stream;
  require(cudaStreamCreate(&stream));
  if (std::strcmp(mistake, "peer") != 0) require(cudaDeviceEnablePeerAccess(0, 0));
  set_bonus<<<1, 1>>>(1);
  require(cudaSetDevice(0));
  require(cudaMalloc(&first, sizeof(host)));
  require(cudaMemcpy(first, host, sizeof(host), cudaMemcpyHostToDevice));
  if (std::strcmp(mistake, "stream") == 0) set_bonus<<<1, 1, 0, stream>>>(7);  // of GPU 1
  twice<<<1, 32>>>(first, first);
  require(cudaSetDevice(1));
  twice<<<1, 32, 0, stream>>>(first, second);
  require(cudaStreamSynchronize(stream));
  require(cudaGetDevice(&current));
  cudaPointerAttributes attributes;
  require(cudaPointerGetAttributes(&attributes, first));
  std::printf("%d %d, current %d, owner %d\n", sum_of(first), sum_of(second), current,
              attributes.device);
  int value = 0;
  require(cudaMemcpyFromSymbol(&value, bonus, sizeof(value)));
  require(cudaSetDevice(0));
  int other = 0;
  require(cudaMemcpyFromSymbol(&other, bonus, sizeof(other)));
  std::printf("bonus %d and %d\n", other, value);

  int* pooled;
  require(cudaMallocAsync(&pooled, sizeof(host), 0));
  require(cudaMemcpy(pooled, host, sizeof(host), cudaMemcpyHostToDevice));
  cudaMemPool_t pool;
  require(cudaDeviceGetDefaultMemPool(&pool, 0));
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = 1;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  if (std::strcmp(mistake, "pool") != 0) require(cudaMemPoolSetAccess(pool, &access, 1));
  require(cudaSetDevice(1));
  twice<<<1, 32>>>(pooled, second);
  std::printf("%d\n", sum_of(second));
  require(cudaFreeAsync(pooled, 0));
  require(cudaDeviceDisablePeerAccess(0));
}
