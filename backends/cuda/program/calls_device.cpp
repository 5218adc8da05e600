// Devices, errors, streams and events. Work of a stream happens when it is asked for.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "backends/cuda/program/calls.h"

namespace triptych::cuda::program::calls {
namespace {

constexpr int kVersion = 12080;
constexpr int kGreatestPriority = -5;  // of a stream
constexpr std::size_t kStackLimit = 1024, kPrintLimit = std::size_t{1} << 20;

cudaError_t check_device(const char* call, Place place, int device) {
  auto& session = Session::current();
  const int count = session.options.gpus;
  if (device >= 0 && device < count) return cudaSuccess;
  return session.mistake(
      cudaErrorInvalidDevice, call, place,
      count == 1 ? fmt::format("there is no device {}; the only one is 0", device)
                 : fmt::format("there is no device {}; there are 0 to {}", device, count - 1));
}

cudaError_t check_peer(const char* call, Place place, int device, int peer) {
  const auto error = check_device(call, place, peer);
  if (error != cudaSuccess || device != peer) return error;
  auto& session = Session::current();
  return session.mistake(
      cudaErrorInvalidDevice, call, place,
      fmt::format("a device is no peer of itself{}",
                  session.options.gpus == 1 ? ", and there is only one (option gpus)" : ""));
}

bool is_stream(const Session& session, cudaStream_t stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= 2 || session.streams.contains(stream);
}

/// The event. nullptr, with a finding: there is none.
Event* event_of(const char* call, Place place, cudaEvent_t event) {
  auto& session = Session::current();
  const auto found = session.events.find(event);
  if (found != session.events.end()) return &found->second;
  session.mistake(cudaErrorInvalidResourceHandle, call, place,
                  "the event was not created, or was destroyed");
  return nullptr;
}

/// An error where the event and the stream are of different GPUs.
cudaError_t check_event_device(Place place, const Event& event, cudaStream_t stream) {
  auto& session = Session::current();
  const auto found = session.streams.find(stream);
  const int device = found == session.streams.end() ? Devices::current() : found->second.device;
  if (event.device == device) return cudaSuccess;
  return session.mistake(
      cudaErrorInvalidResourceHandle, "cudaEventRecord", place,
      fmt::format("the event is of GPU {}, and the stream of GPU {}", event.device, device));
}

/// Waits for a stream, or for all.
cudaError_t wait(const char* call, Place place, std::optional<cudaStream_t> stream = {}) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (stream) {
    const auto error = check_stream(call, place, *stream);
    if (error != cudaSuccess) return error;
  }
  const auto error = refuse_wait(call, place, stream);
  if (error == cudaSuccess) session.heap.synchronise();
  return error;
}

}  // namespace

cudaError_t check_stream(const char* call, Place place, cudaStream_t stream) {
  auto& session = Session::current();
  if (is_stream(session, stream)) return cudaSuccess;
  return session.mistake(cudaErrorInvalidResourceHandle, call, place,
                         "the stream was not created, or was destroyed");
}

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
cudaError_t cudaGetDeviceCount(Place, int* count) {
  *count = Session::current().options.gpus;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(Place, int* device) {
  *device = Devices::current();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(Place place, int device) {
  const auto error = check_device("cudaSetDevice", place, device);
  if (error == cudaSuccess) Devices::current() = device;
  return error;
}
cudaError_t cudaSetDeviceFlags(Place, unsigned) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(Place place, cudaDeviceProp* properties, int device) {
  const auto error = check_device("cudaGetDeviceProperties", place, device);
  if (error != cudaSuccess) return error;
  *properties = properties_of(*Session::current().options.gpu);
  properties->pciBusID = device;
  return error;
}
cudaError_t cudaDeviceGetAttribute(Place place, int* value, cudaDeviceAttr attribute, int device) {
  const auto error = check_device("cudaDeviceGetAttribute", place, device);
  if (error != cudaSuccess) return error;
  auto p = properties_of(*Session::current().options.gpu);
  p.pciBusID = device;
#define TRIPTYCH_CUDA_ATTRIBUTE(name, number, expression) \
  case cudaDevAttr##name:                                 \
    *value = expression;                                  \
    return cudaSuccess;
  switch (attribute) {
#include "backends/cuda/program/runtime_attributes.inc"
  }
#undef TRIPTYCH_CUDA_ATTRIBUTE
  return Session::current().mistake(
      cudaErrorInvalidValue, "cudaDeviceGetAttribute", place,
      fmt::format("the attribute {} is not emulated", static_cast<int>(attribute)));
}
cudaError_t cudaDeviceCanAccessPeer(Place, int* can, int device, int peer) {
  const auto exists = [count = Session::current().options.gpus](int each) {
    return each >= 0 && each < count;
  };
  *can = exists(device) && exists(peer) && device != peer ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(Place place, int peer, unsigned) {
  constexpr auto kCall = "cudaDeviceEnablePeerAccess";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto error = check_peer(kCall, place, Devices::current(), peer);
  if (error != cudaSuccess || session.devices.allow(Devices::current(), peer)) return error;
  return session.mistake(
      cudaErrorPeerAccessAlreadyEnabled, kCall, place,
      fmt::format("GPU {} may use memory of GPU {} already", Devices::current(), peer));
}
cudaError_t cudaDeviceDisablePeerAccess(Place place, int peer) {
  constexpr auto kCall = "cudaDeviceDisablePeerAccess";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto error = check_peer(kCall, place, Devices::current(), peer);
  if (error != cudaSuccess || session.devices.forbid(Devices::current(), peer)) return error;
  return session.mistake(cudaErrorPeerAccessNotEnabled, kCall, place,
                         "nothing has enabled this access");
}
cudaError_t triptychPeerAttribute(Place place, int* value, int attribute, int device, int peer) {
  constexpr auto kCall = "cudaDeviceGetP2PAttribute";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  auto error = check_device(kCall, place, device);
  if (error == cudaSuccess) error = check_peer(kCall, place, device, peer);
  *value = error == cudaSuccess && attribute != 1 ? 1 : 0;  // 1: the rank of the link
  return error;
}
cudaError_t triptychPoolAccess(Place place, int owner, int user, int is_allowed) {
  constexpr auto kCall = "cudaMemPoolSetAccess";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  auto error = check_device(kCall, place, owner);
  if (error == cudaSuccess) error = check_device(kCall, place, user);
  if (error == cudaSuccess) session.devices.set_pool_access(user, owner, is_allowed != 0);
  return error;
}
cudaError_t cudaDeviceGetPCIBusId(Place place, char* text, int bytes, int device) {
  const auto error = check_device("cudaDeviceGetPCIBusId", place, device);
  if (error != cudaSuccess) return error;
  const auto p = properties_of(*Session::current().options.gpu);
  std::snprintf(text, static_cast<std::size_t>(bytes), "%04x:%02x:%02x.0", p.pciDomainID, device,
                p.pciDeviceID);
  return cudaSuccess;
}
cudaError_t cudaChooseDevice(Place, int* device, const cudaDeviceProp*) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(Place place) { return wait("cudaDeviceSynchronize", place); }
cudaError_t cudaThreadSynchronize(Place place) { return wait("cudaThreadSynchronize", place); }
cudaError_t cudaDeviceReset(Place place) { return wait("cudaDeviceReset", place); }
cudaError_t cudaThreadExit(Place place) { return wait("cudaThreadExit", place); }
cudaError_t cudaDeviceSetLimit(Place place, cudaLimit limit, size_t value) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (limit != cudaLimitMallocHeapSize) return cudaSuccess;
  if (session.device_heap != nullptr) {
    return session.mistake(cudaErrorInvalidValue, "cudaDeviceSetLimit", place,
                           "the size of the heap is fixed by the first launch; set it before");
  }
  session.heap_limit = value;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetLimit(Place, size_t* value, cudaLimit limit) {
  *value = limit == cudaLimitStackSize        ? kStackLimit
           : limit == cudaLimitPrintfFifoSize ? kPrintLimit
           : limit == cudaLimitMallocHeapSize ? Session::current().heap_limit
                                              : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetGraphMemAttribute(Place place, int device,
                                           cudaGraphMemAttributeType attribute, void* value) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto error = check_device("cudaDeviceGetGraphMemAttribute", place, device);
  const auto& memory = session.graphs.memory;
  const std::size_t values[] = {memory.used, memory.used, memory.most_used, memory.reserved,
                                memory.most_reserved};
  if (error == cudaSuccess) *static_cast<std::size_t*>(value) = values[attribute];
  return error;
}
cudaError_t cudaDeviceGraphMemTrim(Place place, int device) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  session.graphs.memory.reserved = session.graphs.memory.used;
  return check_device("cudaDeviceGraphMemTrim", place, device);
}
cudaError_t cudaDeviceSetCacheConfig(Place, cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceSetSharedMemConfig(Place, cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(Place, int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(Place, int* version) {
  *version = kVersion;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(Place, int* version) {
  *version = kVersion;
  return cudaSuccess;
}
cudaError_t cudaGetLastError(Place) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  return std::exchange(session.last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError(Place) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  return session.last_error;
}
cudaError_t cudaProfilerStart(Place) { return cudaSuccess; }
cudaError_t cudaProfilerStop(Place) { return cudaSuccess; }

cudaError_t cudaStreamCreate(Place place, cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(place, stream, 0, 0);
}
cudaError_t cudaStreamCreateWithFlags(Place place, cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(place, stream, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(Place, cudaStream_t* stream, unsigned flags,
                                         int priority) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  *stream = new_handle<cudaStream_t>();
  session.streams[*stream] = {flags, std::clamp(priority, kGreatestPriority, 0),
                              Devices::current()};
  return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(Place place, cudaStream_t stream, unsigned* flags) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto error = check_stream("cudaStreamGetFlags", place, stream);
  if (error != cudaSuccess) return error;
  const auto found = session.streams.find(stream);
  *flags = found == session.streams.end() ? 0 : found->second.flags;
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(Place place, cudaStream_t stream, int* priority) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto error = check_stream("cudaStreamGetPriority", place, stream);
  if (error != cudaSuccess) return error;
  const auto found = session.streams.find(stream);
  *priority = found == session.streams.end() ? 0 : found->second.priority;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(Place place, cudaStream_t stream) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto error = check_stream("cudaStreamDestroy", place, stream);
  session.streams.erase(stream);
  return error;
}
cudaError_t cudaStreamSynchronize(Place place, cudaStream_t stream) {
  return wait("cudaStreamSynchronize", place, stream);
}
cudaError_t cudaStreamQuery(Place place, cudaStream_t stream) {
  return wait("cudaStreamQuery", place, stream);
}
cudaError_t cudaStreamWaitEvent(Place place, cudaStream_t stream, cudaEvent_t event, unsigned) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto* found = event_of("cudaStreamWaitEvent", place, event);
  if (found == nullptr) return session.last_error;
  const auto error = check_stream("cudaStreamWaitEvent", place, stream);
  return error == cudaSuccess ? wait_for_event(place, stream, *found) : error;
}
cudaError_t cudaStreamAddCallback(Place place, cudaStream_t stream, cudaStreamCallback_t callback,
                                  void* data, unsigned) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  auto error = check_stream("cudaStreamAddCallback", place, stream);
  if (error == cudaSuccess) error = refuse_wait("cudaStreamAddCallback", place, stream);
  if (error != cudaSuccess) return error;
  session.heap.synchronise();
  callback(stream, cudaSuccess, data);
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(Place place, cudaStream_t stream, cudaHostFn_t function,
                               void* data) {
  const auto call = [=] {
    Session::current().heap.synchronise();
    function(data);
    return cudaSuccess;
  };
  return submit("cudaLaunchHostFunc", place, stream, {.type = cudaGraphNodeTypeHost, .run = call});
}
cudaError_t cudaStreamAttachMemAsync(Place place, cudaStream_t stream, void*, size_t, unsigned) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  return check_stream("cudaStreamAttachMemAsync", place, stream);
}

cudaError_t cudaEventCreate(Place, cudaEvent_t* event) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  *event = new_handle<cudaEvent_t>();
  session.events[*event].device = Devices::current();
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(Place place, cudaEvent_t* event, unsigned) {
  return cudaEventCreate(place, event);
}
cudaError_t cudaEventDestroy(Place place, cudaEvent_t event) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (event_of("cudaEventDestroy", place, event) == nullptr) return session.last_error;
  session.events.erase(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(Place place, cudaEvent_t event, cudaStream_t stream) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  auto* found = event_of("cudaEventRecord", place, event);
  if (found == nullptr) return session.last_error;
  auto error = check_stream("cudaEventRecord", place, stream);
  if (error == cudaSuccess) error = check_event_device(place, *found, stream);
  if (error != cudaSuccess || record_event(stream, *found)) return error;
  found->at = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(Place place, cudaEvent_t event) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto* found = event_of("cudaEventSynchronize", place, event);
  if (found == nullptr) return session.last_error;
  if (found->capture != 0) {
    return session.mistake(cudaErrorCapturedEvent, "cudaEventSynchronize", place,
                           "the event was recorded in a captured stream, which does not run");
  }
  session.heap.synchronise();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(Place place, cudaEvent_t event) {
  return cudaEventSynchronize(place, event);
}
cudaError_t cudaEventElapsedTime(Place place, float* milliseconds, cudaEvent_t begin,
                                 cudaEvent_t end) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto *first = event_of("cudaEventElapsedTime", place, begin),
             *last = event_of("cudaEventElapsedTime", place, end);
  if (first == nullptr || last == nullptr) return session.last_error;
  if (!first->at || !last->at) {
    return session.mistake(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime", place,
                           "an event was not recorded");
  }
  *milliseconds = std::chrono::duration<float, std::milli>(*last->at - *first->at).count();
  return cudaSuccess;
}
// NOLINTEND(readability-identifier-naming)

}  // namespace triptych::cuda::program::calls
