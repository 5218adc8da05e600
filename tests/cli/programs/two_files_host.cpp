// The host's reference of a program of three files: C++ without kernels, with names that CUDA's
// kernels have, too.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <vector>

static unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
static int min(int a, int b) { return a < b ? a : b; }

int expected_sum(int n, int value) {
  int sum = 0;
  for (unsigned i = 0; i < umin(n, 32); ++i) sum += min(2 * i, 1000) + value;
  return sum;
}

// Registered memory of the host is used by kernels and copies.
std::vector<int> copied(const int* device, int n) {
  std::vector<int> host(n);
  cudaHostRegister(host.data(), n * sizeof(int), cudaHostRegisterDefault);
  cudaMemcpyAsync(host.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaDeviceSynchronize();
  cudaHostUnregister(host.data());
  return host;
}
