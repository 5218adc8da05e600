// Faults of kernels after which a GPU continues. "write": one after which it does not.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstring>

__global__ void last_one(int* out) {
  __shared__ int last;
  last = threadIdx.x;  // different values
  int own = last + 0;  // read without a barrier
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = own >= 0 ? 1 : 0;
}

__global__ void blocks(int* total) {
  *total = *total + 1;  // of two blocks
}

__global__ void shift(const int* in, int* out) {
  int i = threadIdx.x;
  out[i] = in[i - 1] + in[i];  // in front of the array
}

__global__ void beyond(int* out) {
  out[-1] = 1;  // a store outside
}

int main(int argc, char** argv) {
  int *in, *out, host[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  cudaMalloc(&in, sizeof(host));
  cudaMalloc(&out, sizeof(host));
  cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice);
  cudaMemset(out, 0, sizeof(host));
  last_one<<<2, 8>>>(out);
  blocks<<<2, 1>>>(out + 2);
  if (argc > 1 && !strcmp(argv[1], "write")) beyond<<<1, 1>>>(out);
  cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
  printf("%d %d %d\n", host[0], host[1], host[2]);
  shift<<<1, 8>>>(in, out);
  cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
  printf("%d %d\n", host[0], host[7]);
}
