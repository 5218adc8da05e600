// A kernel for the debugger.
// SPDX-License-Identifier: Apache-2.0

struct Pair {
  float a;
  int b[2];
};

__noinline__ __device__ float halved(const float* from, int k) {
  const float v = from[k];
  return v / 2;  // halves
}

__global__ void debugged(const float* x, float* y) {
  const int i = threadIdx.x;
  Pair pair = {x[i], {i, -i}};
  float sum = 0;
  for (int k = 0; k < i % 3; ++k) {
    sum += halved(x, k + 1);  // adds
  }
  if (i >= 16) sum = pair.b[1];  // negative
  y[i] = sum;                    // stores
}
