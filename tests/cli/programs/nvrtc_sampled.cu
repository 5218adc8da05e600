// A kernel that NVRTC compiles, with blocks outside of a sample. The word "endless": its second
// block does not end.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime.h>
#include <nvrtc.h>

#include <cstdio>
#include <vector>

const char* source = R"(extern "C" __global__ void fill(unsigned* x, int endless) {
  unsigned number = blockIdx.x * blockDim.x + threadIdx.x;
  while (endless && blockIdx.x == 1) number = number * 3 + 1;
  x[blockIdx.x * blockDim.x + threadIdx.x] = number;
}
)";

int main(int count, char**) {
  cudaFree(nullptr);  // makes the primary context, which the driver API then uses
  nvrtcProgram program;
  nvrtcCreateProgram(&program, source, "fill.cu", 0, nullptr, nullptr);
  if (nvrtcCompileProgram(program, 0, nullptr) != NVRTC_SUCCESS) return 3;
  size_t bytes = 0;
  nvrtcGetPTXSize(program, &bytes);
  std::vector<char> image(bytes);
  nvrtcGetPTX(program, image.data());
  CUmodule module;
  CUfunction kernel;
  cuModuleLoadData(&module, image.data());
  cuModuleGetFunction(&kernel, module, "fill");
  unsigned *x, host[4 * 32];
  cudaMalloc(&x, sizeof host);
  int endless = count > 1 ? 1 : 0;
  void* parameters[] = {&x, &endless};
  cuLaunchKernel(kernel, 4, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr);
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < 4 * 32; ++i) wrong += host[i] != i;
  printf("%d wrong\n", wrong);
}
