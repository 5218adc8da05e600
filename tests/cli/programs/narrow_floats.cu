// Sums of products in half precision and bfloat16, and every rounding of a half.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdio>

__global__ void dot(const half2* a, const half2* b, int n, float* out) {
  half2 sum = __float2half2_rn(0.f);
  for (int i = threadIdx.x; i < n; i += 32) sum = __hfma2(a[i], b[i], sum);
  float total = __low2float(sum) + __high2float(sum);
  for (int i = 16; i > 0; i /= 2) total += __shfl_xor_sync(~0u, total, i);
  if (threadIdx.x == 0) *out = total;
}

__global__ void round_all(const float* in, __half* halves, __nv_bfloat16* narrow, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  halves[i] = __float2half(in[i]);
  narrow[i] = __float2bfloat16(in[i]) * __nv_bfloat16(1);
}

int main() {
  const int n = 128;
  half2 host[n];
  for (int i = 0; i < n; ++i) host[i] = __floats2half2_rn(0.5f, i % 4);
  half2* device;
  float *result, total;
  cudaMalloc(&device, sizeof(host));
  cudaMalloc(&result, sizeof(float));
  cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice);
  dot<<<1, 32>>>(device, device, n, result);
  cudaMemcpy(&total, result, sizeof(float), cudaMemcpyDeviceToHost);
  printf("%g\n", total);
  const float values[] = {1,     1.00048828125f, 1.00146484375f, 65519,   65520,
                          1e-7f, 5.9604645e-8f,  -0.1f,          1 / 0.f, 6.1e-5f};
  const int count = sizeof(values) / sizeof(float);
  float* in;
  __half *halves, half_values[count];
  __nv_bfloat16 *narrow, narrow_values[count];
  cudaMalloc(&in, sizeof(values));
  cudaMalloc(&halves, sizeof(half_values));
  cudaMalloc(&narrow, sizeof(narrow_values));
  cudaMemcpy(in, values, sizeof(values), cudaMemcpyHostToDevice);
  round_all<<<1, 32>>>(in, halves, narrow, count);
  cudaMemcpy(half_values, halves, sizeof(half_values), cudaMemcpyDeviceToHost);
  cudaMemcpy(narrow_values, narrow, sizeof(narrow_values), cudaMemcpyDeviceToHost);
  for (int i = 0; i < count; ++i) printf("%04x/%04x ", half_values[i].bits, narrow_values[i].bits);
  printf("\n");
}
