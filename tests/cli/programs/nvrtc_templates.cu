// Kernels that NVRTC compiles at run time: a template, a header, a macro, a variable. The word
// "broken" compiles a source with a mistake.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime.h>
#include <nvrtc.h>

#include <cstdio>
#include <string>
#include <vector>

const char* source = R"(#include "factor.h"
#ifndef __CUDACC_RTC__
#error "this is NVRTC"
#endif
static __constant__ int unused[2];
namespace statistics {
__device__ int launches;
}
int twice(int x) { return 2 * x; }

template <class T, int kFactor>
__global__ void scale(T* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) atomicAdd(&statistics::launches, OFFSET);
  if (i < n) x[i] *= factor(kFactor) + twice(0);
}
)";
const char* header = "__device__ inline int factor(int x) { return x; }\n";
const char* header_name = "factor.h";

template <class T>
void scale(CUmodule module, const char* name, const char* text) {
  std::vector<T> values(50, T(1.5));
  CUfunction kernel;
  if (cuModuleGetFunction(&kernel, module, name) != CUDA_SUCCESS) std::printf("no kernel\n");
  T* x;  // memory of the runtime
  int n = values.size();
  cudaMalloc(&x, n * sizeof(T));
  cudaMemcpy(x, values.data(), n * sizeof(T), cudaMemcpyHostToDevice);
  void* parameters[] = {&x, &n};
  cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr);
  cudaMemcpy(values.data(), x, n * sizeof(T), cudaMemcpyDeviceToHost);
  cudaFree(x);
  std::printf("%s %g %g\n", text, double(values.front()), double(values.back()));
}

int main(int count, char**) {
  cudaFree(nullptr);  // makes the primary context, which the driver API then uses
  nvrtcProgram program;
  const std::string text = count > 1 ? std::string(source) + "int wrong = ;\n" : source;
  nvrtcCreateProgram(&program, text.c_str(), "scale.cu", 1, &header, &header_name);
  const char* names[] = {"scale<float, 3>", "scale<double, 4>", "&statistics::launches"};
  for (const char* name : names) nvrtcAddNameExpression(program, name);
  const char* options[] = {"--gpu-architecture=compute_80", "-default-device", "-D", "OFFSET=7",
                           "--std=c++17"};
  const nvrtcResult result = nvrtcCompileProgram(program, 5, options);
  size_t bytes = 0;
  nvrtcGetProgramLogSize(program, &bytes);
  std::vector<char> log(bytes);
  nvrtcGetProgramLog(program, log.data());
  std::printf("%s\n%s", nvrtcGetErrorString(result), log.data());
  if (result != NVRTC_SUCCESS) return 3;
  nvrtcGetPTXSize(program, &bytes);
  std::vector<char> image(bytes);
  nvrtcGetPTX(program, image.data());
  CUmodule module;
  cuModuleLoadData(&module, image.data());
  const char* lowered[3];
  for (int i = 0; i < 3; ++i) nvrtcGetLoweredName(program, names[i], &lowered[i]);
  scale<float>(module, lowered[0], "float");
  scale<double>(module, lowered[1], "double");
  CUdeviceptr launches, table;
  size_t table_bytes = 0;
  cuModuleGetGlobal(&table, &table_bytes, module, "unused");
  int value = 0;
  cuModuleGetGlobal(&launches, nullptr, module, lowered[2]);
  cuMemcpyDtoH(&value, launches, sizeof(value));
  std::printf("%d %zu %.17s\n", value, table_bytes, image.data());
  nvrtcDestroyProgram(&program);
  cuModuleUnload(module);
}
