// Headers that a CUDA program finds before those of the system: NVIDIA's and AMD's names, libraries
// that are not available, and the C++ library for kernels.
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "experiments/kernels/build_folder.h"

namespace triptych::kernels {
namespace {

namespace fs = std::filesystem;

/// Headers for declarations that the prelude has.
constexpr const char* kDeclaredHeaders[] = {"cuda_runtime.h",
                                            "cuda_runtime_api.h",
                                            "vector_types.h",
                                            "device_launch_parameters.h",
                                            "device_functions.h",
                                            "vector_functions.h",
                                            "cuda_profiler_api.h",
                                            "driver_types.h",
                                            "device_atomic_functions.h",
                                            "sm_35_intrinsics.h",
                                            "math_functions.h",
                                            "cuda_device_runtime_api.h",
                                            "builtin_types.h",
                                            "host_defines.h"};

/// Headers of libraries that are not available.
constexpr std::pair<const char*, const char*> kMissingLibraries[] = {
    {"curand_kernel.h", "cuRAND"},
    {"curand.h", "cuRAND"},
    {"cublas_v2.h", "cuBLAS"},
    {"cublas.h", "cuBLAS"},
    {"cufft.h", "cuFFT"},
    {"cusparse.h", "cuSPARSE"},
    {"cusolverDn.h", "cuSOLVER"},
    {"cub/cub.cuh", "CUB"},
    {"thrust/device_vector.h", "Thrust"},
    {"thrust/host_vector.h", "Thrust"},
    {"thrust/sort.h", "Thrust"},
    {"thrust/scan.h", "Thrust"},
    {"thrust/reduce.h", "Thrust"},
    {"thrust/transform.h", "Thrust"},
    {"cuda/semaphore", "libcu++ (cuda/semaphore)"}};

/// Headers that are not in the prelude.
constexpr std::pair<const char*, const char*> kOwnHeaders[] = {
    {"cooperative_groups.h", "group_functions.h"},
    {"cooperative_groups/reduce.h", "group_functions.h"},
    {"cooperative_groups/scan.h", "group_functions.h"},
    {"cuda_fp16.h", "narrow_floats.h"},
    {"cuda_fp16.hpp", "narrow_floats.h"},
    {"cuda_bf16.h", "narrow_floats.h"},
    {"cuda.h", "driver_api.h"},
    {"nvrtc.h", "driver_api.h"},
    {"mma.h", "wmma.h"},
    {"cuda/atomic", "libcu.h"},
    {"cuda/barrier", "pipeline.h"},
    {"cuda/pipeline", "pipeline.h"},
    {"cuda_pipeline.h", "pipeline_primitives.h"},
    {"cuda_pipeline_primitives.h", "pipeline_primitives.h"},
    {"cooperative_groups/memcpy_async.h", "pipeline.h"},
    {"cuda/std/atomic", "libcu.h"},
    {"cuda/std/barrier", "libcu.h"},
    {"cuda/std/type_traits", "libcu.h"},
    {"cuda/std/utility", "libcu.h"},
    {"hip/hip_runtime.h", "hip_runtime.h"},
    {"hip/hip_runtime_api.h", "hip_runtime.h"},
    {"hip/hiprtc.h", "hip_runtime.h"},
    {"hip/hip_cooperative_groups.h", "group_functions.h"},
    {"hip/hip_fp16.h", "narrow_floats.h"}};

/// Content of kDeclaredHeaders: C++ files have no prelude.
constexpr std::string_view kDeclarations =
    "#if defined(__cplusplus) && !defined(__CUDA__)\n"
    "#include \"backends/cuda/program/host_prelude.h\"\n#endif\n";

/// Headers of the C++ library, whose functions are for the host and for kernels. clang by itself
/// would declare most of them for the host only.
constexpr std::string_view kStandardHeaders =
    "algorithm any array atomic barrier bit bitset charconv chrono codecvt compare complex "
    "concepts condition_variable coroutine deque execution filesystem forward_list fstream "
    "functional future initializer_list iomanip ios iosfwd iostream istream iterator latch "
    "limits list locale map memory memory_resource mutex numbers numeric optional ostream queue "
    "random ranges ratio regex scoped_allocator semaphore set shared_mutex source_location span "
    "sstream stack stdexcept stop_token streambuf string string_view syncstream system_error "
    "thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray "
    "variant vector version";

/// The library writes an attribute __noinline__, which is a macro of CUDA.
constexpr std::string_view kForBoth =
    "#if defined(__CUDA__)\n{1}#pragma push_macro(\"__noinline__\")\n#undef __noinline__\n"
    "#pragma clang force_cuda_host_device begin\n"
    "#include_next <{0}>\n#pragma clang force_cuda_host_device end\n"
    "#pragma pop_macro(\"__noinline__\")\n#else\n#include_next <{0}>\n#endif\n";
/// <random> includes the processor's functions, which are the host's.
constexpr std::string_view kBeforeRandom =
    "#if defined(__SSE3__)\n#include <pmmintrin.h>\n#endif\n";

}  // namespace

Headers program_headers() {
  Headers files;
  files[kEmptyFatBinary] = "";
  const fs::path folder = "cuda";
  for (const char* header : kDeclaredHeaders) files[folder / header] = kDeclarations;
  for (const auto& [header, what] : kMissingLibraries) {
    files[folder / header] = fmt::format(
        "#error \"{}: not emulated; the emulator runs kernels, and no libraries\"\n", what);
  }
  for (const auto& [header, file] : kOwnHeaders) {
    files[folder / header] =
        fmt::format("{}#include \"backends/cuda/program/{}\"\n", kDeclarations, file);
  }
  Words headers;
  append(headers, kStandardHeaders);
  for (const auto& header : headers) {
    const auto before = header == "random" ? kBeforeRandom : std::string_view();
    files[folder / header] = fmt::format(fmt::runtime(kForBoth), header, before);
  }
  return files;
}

}  // namespace triptych::kernels
