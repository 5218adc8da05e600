// The driver API: devices, contexts, streams and events.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "backends/cuda/program/driver.h"

namespace triptych::cuda::program {
namespace {

constexpr unsigned kApiVersion = 12000;

/// Contexts that the calling thread has pushed.
thread_local std::vector<CUcontext> pushed;

/// The context. nullptr, with a finding: there is none.
DriverContext* context_of(const char* call, Place place, CUcontext context) {
  auto& contexts = Driver::current().contexts;
  const auto found = contexts.find(context);
  if (found == contexts.end()) {
    calls::mistake(CUDA_ERROR_INVALID_CONTEXT, call, place,
                   "the handle is no context; cuCtxCreate and cuDevicePrimaryCtxRetain give one");
    return nullptr;
  }
  if (found->second.destroyed.empty()) return &found->second;
  calls::mistake(CUDA_ERROR_CONTEXT_IS_DESTROYED, call, place,
                 fmt::format("the context of {} was destroyed at {}", found->second.made,
                             found->second.destroyed));
  return nullptr;
}

CUcontext primary_context(Place place) {
  auto& driver = Driver::current();
  if (driver.primary == nullptr) {
    driver.primary = calls::new_driver_handle<CUcontext>();
    driver.contexts[driver.primary].made =
        fmt::format("the primary context ({})", Session::current().text_of(place));
  }
  return driver.primary;
}

CUresult check_ordinal(const char* call, Place place, CUdevice device) {
  if (const auto missing = calls::require_driver(call, place)) return missing;
  if (device == 0) return CUDA_SUCCESS;
  return calls::mistake(CUDA_ERROR_INVALID_DEVICE, call, place,
                        fmt::format("there is no device {}; the only one is 0", device));
}

/// A question about the device, which needs no context.
template <class... P>
CUresult ask(const char* call, Place place, cudaError_t (*function)(Place, P...),
             std::type_identity_t<P>... arguments) {
  const calls::DriverCall scope(call);
  const auto missing = calls::require_driver(call, place);
  return missing != CUDA_SUCCESS ? missing : calls::result_of(function(place, arguments...));
}

/// Frees the memory of a context, and unloads its modules.
void empty(CUcontext context, const std::string& place) {
  auto& session = Session::current();
  for (const auto address : std::exchange(Driver::current().contexts[context].memory, {})) {
    auto* memory = session.heap.find(calls::pointer_of(address));
    if (memory != nullptr && memory->gone.empty()) session.heap.free(*memory, place);
  }
  for (auto& [handle, module] : Driver::current().modules) {
    if (module.context == context && module.unloaded.empty()) module.unloaded = place;
  }
}

}  // namespace

Driver& Driver::current() {
  // Never destroyed, as the session.
  static auto* const driver = new Driver;
  return *driver;
}

namespace calls {

DriverCall::DriverCall(const char* name)
    : lock_(Session::current().mutex),
      outer_(std::exchange(Session::current().driver_call, name)),
      last_error_(Session::current().last_error) {}

DriverCall::~DriverCall() {
  Session::current().driver_call = outer_;
  Session::current().last_error = last_error_;
}

CUresult mistake(CUresult error, const char* call, Place place, std::string message) {
  Session::current().note(static_cast<cudaError_t>(error), call, place, std::move(message));
  return error;
}

CUresult result_of(cudaError_t error) {
  const bool is_own =
      error > cudaErrorInitializationError && error < cudaErrorInvalidDeviceFunction;
  if (is_own) return CUDA_ERROR_INVALID_VALUE;
  return error == cudaErrorInvalidDeviceFunction ? CUDA_ERROR_INVALID_HANDLE
                                                 : static_cast<CUresult>(error);
}

CUresult require_driver(const char* call, Place place) {
  if (Driver::current().is_initialised || Session::current().is_runtime_used) return CUDA_SUCCESS;
  return mistake(CUDA_ERROR_NOT_INITIALIZED, call, place,
                 "call cuInit(0) before any other function of the driver API");
}

CUresult require_context(const char* call, Place place) {
  if (const auto missing = require_driver(call, place)) return missing;
  if (pushed.empty() && Session::current().is_runtime_used) {
    pushed.push_back(primary_context(place));  // which the runtime has made
  }
  if (pushed.empty()) {
    return mistake(CUDA_ERROR_INVALID_CONTEXT, call, place,
                   "this thread has no context; call cuCtxCreate or cuCtxSetCurrent first");
  }
  if (context_of(call, place, pushed.back()) != nullptr) return CUDA_SUCCESS;
  return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUcontext current_context() { return pushed.empty() ? nullptr : pushed.back(); }

void forget_memory(CUdeviceptr pointer) {
  for (auto& [handle, context] : Driver::current().contexts) std::erase(context.memory, pointer);
}

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
CUresult cuInit(Place place, unsigned flags) {
  const DriverCall scope("cuInit");
  if (flags != 0) return mistake(CUDA_ERROR_INVALID_VALUE, "cuInit", place, "the flags must be 0");
  Driver::current().is_initialised = true;
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(Place place, int* version) {
  return result_of(cudaDriverGetVersion(place, version));
}

#define TRIPTYCH_NVRTC_RESULT(name, number)
#define TRIPTYCH_CU_ERROR(name, number, words) \
  case name:                                   \
    *text = #name;                             \
    return CUDA_SUCCESS;
CUresult cuGetErrorName(Place, CUresult error, const char** text) {
  *text = nullptr;
  switch (error) {
#include "backends/cuda/program/driver_errors.inc"
  }
  return CUDA_ERROR_INVALID_VALUE;
}
#undef TRIPTYCH_CU_ERROR
#define TRIPTYCH_CU_ERROR(name, number, words) \
  case name:                                   \
    *text = words;                             \
    return CUDA_SUCCESS;
CUresult cuGetErrorString(Place, CUresult error, const char** text) {
  *text = nullptr;
  switch (error) {
#include "backends/cuda/program/driver_errors.inc"
  }
  return CUDA_ERROR_INVALID_VALUE;
}
#undef TRIPTYCH_CU_ERROR
#undef TRIPTYCH_NVRTC_RESULT

CUresult cuDeviceGet(Place place, CUdevice* device, int ordinal) {
  const DriverCall scope("cuDeviceGet");
  const auto wrong = check_ordinal("cuDeviceGet", place, ordinal);
  if (wrong == CUDA_SUCCESS) *device = ordinal;
  return wrong;
}
CUresult cuDeviceGetCount(Place place, int* count) {
  *count = 1;  // contexts of further GPUs are not emulated
  return require_driver("cuDeviceGetCount", place);
}
CUresult cuDeviceGetName(Place place, char* name, int bytes, CUdevice device) {
  const DriverCall scope("cuDeviceGetName");
  if (const auto wrong = check_ordinal("cuDeviceGetName", place, device)) return wrong;
  std::snprintf(name, static_cast<std::size_t>(bytes), "%s",
                properties_of(*Session::current().options.gpu).name);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(Place place, CUuuid* uuid, CUdevice device) {
  const DriverCall scope("cuDeviceGetUuid");
  if (const auto wrong = check_ordinal("cuDeviceGetUuid", place, device)) return wrong;
  std::ranges::copy(properties_of(*Session::current().options.gpu).uuid.bytes, uuid->bytes);
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(Place place, size_t* bytes, CUdevice device) {
  const DriverCall scope("cuDeviceTotalMem");
  if (const auto wrong = check_ordinal("cuDeviceTotalMem", place, device)) return wrong;
  *bytes = properties_of(*Session::current().options.gpu).totalGlobalMem;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(Place place, int* value, CUdevice_attribute attribute,
                              CUdevice device) {
  const DriverCall scope("cuDeviceGetAttribute");
  if (const auto wrong = check_ordinal("cuDeviceGetAttribute", place, device)) return wrong;
  const auto p = properties_of(*Session::current().options.gpu);
#define TRIPTYCH_CU_ATTRIBUTE(name, number) case CU_DEVICE_ATTRIBUTE_##name:
#define TRIPTYCH_CU_OWN(name, number, expression) \
  break;                                          \
  case CU_DEVICE_ATTRIBUTE_##name:                \
    *value = expression;                          \
    return CUDA_SUCCESS;
  switch (attribute) {
#include "backends/cuda/program/driver_attributes.inc"
    break;
  }
#undef TRIPTYCH_CU_ATTRIBUTE
#undef TRIPTYCH_CU_OWN
  return result_of(
      cudaDeviceGetAttribute(place, value, static_cast<cudaDeviceAttr>(attribute), device));
}
CUresult cuDeviceComputeCapability(Place place, int* major, int* minor, CUdevice device) {
  const auto wrong =
      cuDeviceGetAttribute(place, major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (wrong != CUDA_SUCCESS) return wrong;
  return cuDeviceGetAttribute(place, minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}
CUresult cuDeviceGetPCIBusId(Place place, char* text, int bytes, CUdevice device) {
  return ask("cuDeviceGetPCIBusId", place, cudaDeviceGetPCIBusId, text, bytes, device);
}
CUresult cuDeviceCanAccessPeer(Place place, int* can, CUdevice device, CUdevice peer) {
  return ask("cuDeviceCanAccessPeer", place, cudaDeviceCanAccessPeer, can, device, peer);
}

CUresult cuDevicePrimaryCtxRetain(Place place, CUcontext* context, CUdevice device) {
  const DriverCall scope("cuDevicePrimaryCtxRetain");
  if (const auto wrong = check_ordinal("cuDevicePrimaryCtxRetain", place, device)) return wrong;
  *context = primary_context(place);
  auto& primary = Driver::current().contexts[*context];
  ++primary.users;
  primary.destroyed.clear();
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(Place place, CUdevice device) {
  const DriverCall scope("cuDevicePrimaryCtxRelease");
  if (const auto wrong = check_ordinal("cuDevicePrimaryCtxRelease", place, device)) return wrong;
  auto& driver = Driver::current();
  if (driver.primary == nullptr || driver.contexts[driver.primary].users == 0) {
    return mistake(CUDA_ERROR_INVALID_CONTEXT, "cuDevicePrimaryCtxRelease", place,
                   "cuDevicePrimaryCtxRetain has not been called as often");
  }
  auto& primary = driver.contexts[driver.primary];
  if (--primary.users > 0 || Session::current().is_runtime_used) return CUDA_SUCCESS;
  primary.destroyed = Session::current().text_of(place);
  empty(driver.primary, primary.destroyed);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(Place place, CUdevice device, unsigned* flags, int* active) {
  const DriverCall scope("cuDevicePrimaryCtxGetState");
  if (const auto wrong = check_ordinal("cuDevicePrimaryCtxGetState", place, device)) return wrong;
  auto& driver = Driver::current();
  *flags = 0;
  *active = Session::current().is_runtime_used ||
            (driver.primary != nullptr && driver.contexts[driver.primary].users > 0);
  return CUDA_SUCCESS;
}
CUresult triptychCtxCreate(Place place, CUcontext* context, unsigned flags, CUdevice device) {
  const DriverCall scope("cuCtxCreate");
  if (const auto wrong = check_ordinal("cuCtxCreate", place, device)) return wrong;
  *context = new_driver_handle<CUcontext>();
  auto& made = Driver::current().contexts[*context];
  made.made = fmt::format("cuCtxCreate ({})", Session::current().text_of(place));
  made.flags = flags;
  pushed.push_back(*context);
  return CUDA_SUCCESS;
}
CUresult cuCtxDestroy(Place place, CUcontext context) {
  const DriverCall scope("cuCtxDestroy");
  auto* found = context_of("cuCtxDestroy", place, context);
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context == Driver::current().primary) {
    return mistake(CUDA_ERROR_INVALID_CONTEXT, "cuCtxDestroy", place,
                   "the primary context is released with cuDevicePrimaryCtxRelease");
  }
  found->destroyed = Session::current().text_of(place);
  empty(context, found->destroyed);
  if (current_context() == context) pushed.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(Place place, CUcontext context) {
  const DriverCall scope("cuCtxPushCurrent");
  if (context_of("cuCtxPushCurrent", place, context) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  pushed.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(Place place, CUcontext* context) {
  const DriverCall scope("cuCtxPopCurrent");
  if (const auto missing = require_context("cuCtxPopCurrent", place)) return missing;
  if (context != nullptr) *context = current_context();
  pushed.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(Place place, CUcontext context) {
  const DriverCall scope("cuCtxSetCurrent");
  if (const auto missing = require_driver("cuCtxSetCurrent", place)) return missing;
  if (context != nullptr && context_of("cuCtxSetCurrent", place, context) == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (!pushed.empty()) pushed.pop_back();
  if (context != nullptr) pushed.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(Place place, CUcontext* context) {
  const DriverCall scope("cuCtxGetCurrent");
  if (const auto missing = require_driver("cuCtxGetCurrent", place)) return missing;
  if (pushed.empty() && Session::current().is_runtime_used) {
    pushed.push_back(primary_context(place));
  }
  *context = current_context();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(Place place, CUdevice* device) {
  return forward("cuCtxGetDevice", place, cudaGetDevice, device);
}
CUresult cuCtxSynchronize(Place place) {
  return forward("cuCtxSynchronize", place, cudaDeviceSynchronize);
}
CUresult cuCtxGetApiVersion(Place, CUcontext, unsigned* version) {
  *version = kApiVersion;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetFlags(Place place, unsigned* flags) {
  const DriverCall scope("cuCtxGetFlags");
  if (const auto missing = require_context("cuCtxGetFlags", place)) return missing;
  *flags = Driver::current().contexts[current_context()].flags;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetLimit(Place place, CUlimit limit, size_t value) {
  return forward("cuCtxSetLimit", place, cudaDeviceSetLimit, static_cast<cudaLimit>(limit), value);
}
CUresult cuCtxGetLimit(Place place, size_t* value, CUlimit limit) {
  return forward("cuCtxGetLimit", place, cudaDeviceGetLimit, value, static_cast<cudaLimit>(limit));
}
CUresult cuCtxSetCacheConfig(Place place, CUfunc_cache config) {
  return forward("cuCtxSetCacheConfig", place, cudaDeviceSetCacheConfig,
                 static_cast<cudaFuncCache>(config));
}
CUresult cuCtxGetStreamPriorityRange(Place place, int* least, int* greatest) {
  return forward("cuCtxGetStreamPriorityRange", place, cudaDeviceGetStreamPriorityRange, least,
                 greatest);
}
CUresult cuCtxEnablePeerAccess(Place place, CUcontext, unsigned flags) {
  return forward("cuCtxEnablePeerAccess", place, cudaDeviceEnablePeerAccess, 0, flags);
}

CUresult cuStreamCreate(Place place, CUstream* stream, unsigned flags) {
  return forward("cuStreamCreate", place, cudaStreamCreateWithFlags, stream, flags);
}
CUresult cuStreamCreateWithPriority(Place place, CUstream* stream, unsigned flags, int priority) {
  return forward("cuStreamCreateWithPriority", place, cudaStreamCreateWithPriority, stream, flags,
                 priority);
}
CUresult cuStreamGetFlags(Place place, CUstream stream, unsigned* flags) {
  return forward("cuStreamGetFlags", place, cudaStreamGetFlags, stream, flags);
}
CUresult cuStreamGetPriority(Place place, CUstream stream, int* priority) {
  return forward("cuStreamGetPriority", place, cudaStreamGetPriority, stream, priority);
}
CUresult cuStreamDestroy(Place place, CUstream stream) {
  return forward("cuStreamDestroy", place, cudaStreamDestroy, stream);
}
CUresult cuStreamSynchronize(Place place, CUstream stream) {
  return forward("cuStreamSynchronize", place, cudaStreamSynchronize, stream);
}
CUresult cuStreamQuery(Place place, CUstream stream) {
  return forward("cuStreamQuery", place, cudaStreamQuery, stream);
}
CUresult cuStreamWaitEvent(Place place, CUstream stream, CUevent event, unsigned flags) {
  return forward("cuStreamWaitEvent", place, cudaStreamWaitEvent, stream, event, flags);
}
CUresult cuStreamAddCallback(Place place, CUstream stream, CUstreamCallback callback, void* data,
                             unsigned flags) {
  // Both kinds of callback receive the number of success.
  return forward("cuStreamAddCallback", place, cudaStreamAddCallback, stream,
                 reinterpret_cast<cudaStreamCallback_t>(callback), data, flags);
}
CUresult cuLaunchHostFunc(Place place, CUstream stream, CUhostFn function, void* data) {
  return forward("cuLaunchHostFunc", place, cudaLaunchHostFunc, stream, function, data);
}
CUresult cuEventCreate(Place place, CUevent* event, unsigned flags) {
  return forward("cuEventCreate", place, cudaEventCreateWithFlags, event, flags);
}
CUresult cuEventDestroy(Place place, CUevent event) {
  return forward("cuEventDestroy", place, cudaEventDestroy, event);
}
CUresult cuEventRecord(Place place, CUevent event, CUstream stream) {
  return forward("cuEventRecord", place, cudaEventRecord, event, stream);
}
CUresult cuEventSynchronize(Place place, CUevent event) {
  return forward("cuEventSynchronize", place, cudaEventSynchronize, event);
}
CUresult cuEventQuery(Place place, CUevent event) {
  return forward("cuEventQuery", place, cudaEventQuery, event);
}
CUresult cuEventElapsedTime(Place place, float* milliseconds, CUevent begin, CUevent end) {
  return forward("cuEventElapsedTime", place, cudaEventElapsedTime, milliseconds, begin, end);
}
// NOLINTEND(readability-identifier-naming)

}  // namespace calls
}  // namespace triptych::cuda::program
