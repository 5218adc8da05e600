// Mistakes of hosts that use the driver API or NVRTC. Each is reported, and the program goes on.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <nvrtc.h>

#include <cstdio>
#include <vector>

const char* source = R"(
__constant__ int limit;
extern "C" __global__ void fill(int* x, int value) { x[threadIdx.x] = value; }
)";

std::vector<char> compile() {
  nvrtcProgram program;
  size_t bytes = 0;
  nvrtcCreateProgram(&program, source, "fill.cu", 0, nullptr, nullptr);
  nvrtcGetPTXSize(program, &bytes);  // before the compilation
  const char* unknown[] = {"--unknown-option=3"};
  nvrtcCompileProgram(program, 1, unknown);
  nvrtcCompileProgram(program, 0, nullptr);
  nvrtcGetPTXSize(program, &bytes);
  std::vector<char> image(bytes);
  nvrtcGetPTX(program, image.data());
  nvrtcDestroyProgram(&program);
  nvrtcGetPTXSize(program, &bytes);  // destroyed
  return image;
}

void start(CUcontext* context) {
  int count = 0;
  CUdeviceptr x;
  cuDeviceGetCount(&count);  // no cuInit
  cuInit(0);
  cuMemAlloc(&x, 16);  // no context
  cuCtxCreate(context, 0, 3);
  cuCtxCreate(context, 0, 0);
  cuMemAlloc(&x, 16);
  cuCtxDestroy(*context);
  cuCtxSetCurrent(*context);  // destroyed
  cuCtxCreate(context, 0, 0);
  cuMemFree(x);  // freed with its context
}

int main() {
  CUcontext context;
  start(&context);
  CUmodule module;
  cuModuleLoadData(&module, ".version 8.0\n.target sm_90\n");
  cuModuleLoadData(&module, "\177ELF");
  cuModuleLoad(&module, "absent.fatbin");
  CUdeviceptr x, y;
  int value = 3;
  cuMemAlloc(&x, 16);
  cuMemcpyHtoD(x, &value, 400);
  cuMemsetD32(x + 2, 0, 1);
  const auto image = compile();
  cuModuleLoadData(&module, image.data());
  CUfunction kernel;
  cuModuleGetFunction(&kernel, module, "fil");
  cuModuleGetGlobal(&y, nullptr, module, "limits");
  cuModuleGetFunction(&kernel, module, "fill");
  void *missing[] = {&x, nullptr}, *given[] = {&x, &value};
  cuLaunchKernel(kernel, 1, 1, 1, 4, 1, 1, 0, nullptr, missing, nullptr);
  size_t bytes = sizeof(x);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &x, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  cuLaunchKernel(kernel, 1, 1, 1, 4, 1, 1, 0, nullptr, nullptr, extra);
  cuLaunchKernel(kernel, 1, 1, 1, 2000, 1, 1, 0, nullptr, given, nullptr);
  cuModuleUnload(module);
  cuLaunchKernel(kernel, 1, 1, 1, 4, 1, 1, 0, nullptr, given, nullptr);
  cuLaunchKernel(reinterpret_cast<CUfunction>(module), 1, 1, 1, 4, 1, 1, 0, nullptr, given,
                 nullptr);
  cuModuleGetFunction(&kernel, module, "fill");
  cuMemMap(x, 2 << 20, 0, 7, 0);
  cuStreamDestroy(reinterpret_cast<CUstream>(0x77));
  cuMemFree(x);
  cuMemFree(x);
  std::printf("%d\n", cuMemcpyHtoD(x, &value, 4));
}
