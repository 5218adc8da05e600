// A kernel of HIP that is compiled at run time.
// SPDX-License-Identifier: Apache-2.0
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>

#include <cstdio>
#include <vector>

const char* source = R"(
extern "C" __global__ void axpy(double a, const double* x, double* y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
)";

int main() {
  const unsigned n = 80;
  std::vector<double> host(n, 1.5);
  double *x, *y;
  hipMalloc(&x, n * sizeof(double));
  hipMalloc(&y, n * sizeof(double));
  hipMemcpy(x, host.data(), n * sizeof(double), hipMemcpyHostToDevice);
  hipMemcpy(y, host.data(), n * sizeof(double), hipMemcpyHostToDevice);
  hiprtcProgram program;
  hiprtcCreateProgram(&program, source, "axpy.hip", 0, nullptr, nullptr);
  if (hiprtcCompileProgram(program, 0, nullptr) != HIPRTC_SUCCESS) return 1;
  size_t bytes = 0;
  hiprtcGetCodeSize(program, &bytes);
  std::vector<char> code(bytes);
  hiprtcGetCode(program, code.data());
  hiprtcDestroyProgram(&program);
  hipModule_t module;
  hipFunction_t kernel;
  hipError_t error = hipModuleLoadData(&module, code.data());
  if (error == hipSuccess) error = hipModuleGetFunction(&kernel, module, "axpy");
  struct {
    double a;
    double *x, *y;
    unsigned n;
  } arguments = {2, x, y, n};
  size_t size = sizeof(arguments);
  void* config[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &arguments, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                    HIP_LAUNCH_PARAM_END};
  if (error == hipSuccess) {
    error = hipModuleLaunchKernel(kernel, 2, 1, 1, 64, 1, 1, 0, nullptr, nullptr, config);
  }
  hipMemcpy(host.data(), y, n * sizeof(double), hipMemcpyDeviceToHost);
  hipModuleUnload(module);
  std::printf("%s, %g %g\n", hipGetErrorString(error), host.front(), host.back());
}
