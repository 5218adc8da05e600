// State of the emulated driver API and of NVRTC. Their functions name the runtime's objects, so
// that the session keeps all rules.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/cuda/program/calls.h"
#include "backends/cuda/program/module_builder.h"

namespace triptych::cuda::program {

struct DriverContext {
  std::string made;  ///< "cuCtxCreate (my.cpp:12)"
  unsigned flags = 0;
  int users = 0;                    ///< of the primary context
  std::vector<CUdeviceptr> memory;  ///< that goes away with it
  std::string destroyed;            ///< the place. Empty: it exists
};

struct DriverModule {
  std::string name;
  const plain::KernelLibrary* library = nullptr;
  CUcontext context = nullptr;
  std::string unloaded;  ///< the place. Empty: it is loaded
};

/// Addresses without memory, and the parts of them that have some.
struct Reservation {
  std::size_t bytes = 0;
  std::map<CUdeviceptr, CUmemGenericAllocationHandle> mapped;
};
struct PhysicalMemory {
  std::size_t bytes = 0;
  CUmemAllocationProp properties{};
  std::string made;
  bool is_released = false;
  CUdeviceptr address = 0;  ///< 0: it is not mapped
};

struct RuntimeProgram {
  ModuleRequest request;
  ModuleBuild build;
  bool is_compiled = false;
};

/// There is one in a process. Used with the session's mutex locked.
struct Driver {
  static Driver& current();

  bool is_initialised = false;
  std::map<CUcontext, DriverContext> contexts;
  CUcontext primary = nullptr;
  std::map<CUmodule, DriverModule> modules;
  std::map<CUlinkState, std::string> links;  ///< images
  std::map<CUdeviceptr, Reservation> reservations;
  std::map<CUmemGenericAllocationHandle, PhysicalMemory> physical;
  std::map<nvrtcProgram, RuntimeProgram> programs;
};

namespace calls {

#define TRIPTYCH_DRIVER_CALL(result, name, arguments, ...) \
  result name(Place place __VA_OPT__(, ) __VA_ARGS__);
// NOLINTNEXTLINE(readability-identifier-naming): CUDA's own names.
#include "backends/cuda/program/driver_calls.inc"
#undef TRIPTYCH_DRIVER_CALL

/// Lets functions of the runtime act for one of the driver: findings have the name of the driver's
/// call, and the runtime's last error stays as it was.
class DriverCall {
 public:
  explicit DriverCall(const char* name);
  ~DriverCall();
  DriverCall(const DriverCall&) = delete;
  DriverCall& operator=(const DriverCall&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  const char* outer_;
  cudaError_t last_error_;
};

/// Notes a mistake, and returns its error.
CUresult mistake(CUresult error, const char* call, Place place, std::string message);
/// CUDA_ERROR_NOT_INITIALIZED, with a finding, before cuInit.
CUresult require_driver(const char* call, Place place);
/// The same, and an error, with a finding, without a context of this thread.
CUresult require_context(const char* call, Place place);
/// The context of this thread, after require_context.
CUcontext current_context();
/// The driver's number of an error of the runtime.
CUresult result_of(cudaError_t error);
void forget_memory(CUdeviceptr pointer);

template <class Handle>
Handle new_driver_handle() {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a name
  return reinterpret_cast<Handle>(Session::current().new_handle());
}
template <class T = void>
T* pointer_of(CUdeviceptr address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is a number in this API
  return reinterpret_cast<T*>(address);
}
inline CUdeviceptr address_of(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

/// A function of the driver that one of the runtime does.
template <class... P>
CUresult forward(const char* call, Place place, cudaError_t (*function)(Place, P...),
                 std::type_identity_t<P>... arguments) {
  const DriverCall scope(call);
  const auto missing = require_context(call, place);
  return missing != CUDA_SUCCESS ? missing : result_of(function(place, arguments...));
}

}  // namespace calls
}  // namespace triptych::cuda::program
