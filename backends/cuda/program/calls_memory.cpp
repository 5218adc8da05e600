// Memory of the GPU, and copies. Copies happen at once, in the order of the calls.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cstring>
#include <new>
#include <optional>

#include "backends/cuda/program/calls.h"

namespace triptych::cuda::program::calls {
namespace {

/// Waits, as calls do that work in the default stream.
cudaError_t wait(const char* call, Place place) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto error = refuse_default_stream(call, place, nullptr);
  if (error == cudaSuccess) session.heap.synchronise();
  return error;
}

/// One side of a copy. The mistake in it, if there is one.
std::optional<std::string> mistake_in(const Allocation* memory, const void* pointer,
                                      std::size_t bytes, const char* side) {
  if (pointer == nullptr) return fmt::format("{} is a null pointer", side);
  if (memory == nullptr) return std::nullopt;
  if (!memory->gone.empty()) {
    return fmt::format("{} is in {}, which {}", side, memory->name, memory->gone);
  }
  const auto offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - memory->data());
  if (bytes > memory->bytes() - offset) {
    return fmt::format("{} bytes are copied, and {} has {} of {} from there", bytes, side,
                       memory->bytes() - offset, memory->name);
  }
  return std::nullopt;
}

std::optional<std::string> mistake_in(cudaMemcpyKind kind, const Allocation* to,
                                      const Allocation* from) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  // Pinned and managed memory is of both.
  const auto wrong = [](const Allocation* memory, bool device) {
    return device ? memory == nullptr : memory != nullptr && memory->kind == MemoryKind::Device;
  };
  const auto text = [](const char* side, bool device) {
    return fmt::format("the direction says that {} is memory of the {}, and it is of the {}", side,
                       device ? "GPU" : "host", device ? "host" : "GPU");
  };
  if (wrong(to, to_device)) return text("the destination", to_device);
  if (wrong(from, from_device)) return text("the source", from_device);
  return std::nullopt;
}

/// Opens an allocation for the runtime itself.
class Opened {
 public:
  explicit Opened(Allocation* memory) : memory_(memory), was_closed_(memory && memory->is_closed) {
    if (was_closed_) memory_->open();
  }
  ~Opened() {
    if (was_closed_) memory_->close();
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  Allocation* memory_;
  bool was_closed_;
};

void note_written(Allocation* memory, const void* to, std::size_t bytes) {
  if (memory == nullptr) return;
  memory->content.write(
      static_cast<std::size_t>(static_cast<const std::byte*>(to) - memory->data()), bytes);
}

/// A copy of bytes that nothing wrote is a mistake, most likely an earlier copy that is missing.
std::optional<std::string> undefined_source(const Allocation* from, const void* pointer,
                                            std::size_t bytes) {
  if (from == nullptr || from->kind != MemoryKind::Device) return std::nullopt;
  const auto offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - from->data());
  if (from->content.any_written(offset, bytes)) return std::nullopt;
  return fmt::format("nothing has written any of the {} bytes of {} that are copied", bytes,
                     from->name);
}

}  // namespace

cudaError_t free_memory(const char* call, Place place, void* pointer, bool of_host) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (pointer == nullptr) return cudaSuccess;
  auto* memory = session.heap.find(pointer);
  if (memory == nullptr) {
    return session.mistake(cudaErrorInvalidValue, call, place,
                           of_host ? "no call of cudaMallocHost or cudaHostAlloc gave this pointer"
                                   : "no call of cudaMalloc or its like gave this pointer");
  }
  if (!memory->gone.empty()) {
    return session.mistake(cudaErrorInvalidValue, call, place,
                           fmt::format("{} is freed, but it {}", memory->name, memory->gone));
  }
  if (memory->data() != pointer) {
    return session.mistake(
        cudaErrorInvalidValue, call, place,
        fmt::format("the pointer is {} bytes behind the beginning of {}",
                    static_cast<std::byte*>(pointer) - memory->data(), memory->name));
  }
  if (memory->kind == MemoryKind::Registered) {
    return session.mistake(
        cudaErrorInvalidValue, call, place,
        fmt::format("{} belongs to the host: cudaHostUnregister releases it", memory->name));
  }
  if (of_host != (memory->kind == MemoryKind::Pinned)) {
    return session.mistake(
        cudaErrorInvalidValue, call, place,
        fmt::format("{} is freed with {}", memory->name, of_host ? "cudaFree" : "cudaFreeHost"));
  }
  if (memory->is_of_graph) session.graphs.memory.used -= memory->bytes();
  session.heap.free(*memory, session.text_of(place));
  return cudaSuccess;
}

cudaError_t allocate(const char* call, Place place, MemoryKind kind, void** pointer,
                     std::size_t bytes, std::size_t element) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (pointer == nullptr) {
    return session.mistake(cudaErrorInvalidValue, call, place, "the pointer's address is null");
  }
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const auto most = session.options.gpu->memory_bytes;
  const int device = Devices::current();
  if (const auto used = session.heap.used_bytes(device); bytes > most || used > most - bytes) {
    return session.mistake(
        cudaErrorMemoryAllocation, call, place,
        fmt::format("{} bytes; {} of the GPU's {} are in use", bytes, used, most));
  }
  try {
    const auto name =
        fmt::format("the {}-byte array of {} ({})", bytes, call, session.text_of(place));
    *pointer = session.heap.allocate(kind, bytes, element, name, device).data();
  } catch (const std::bad_alloc&) {
    return session.mistake(cudaErrorMemoryAllocation, call, place,
                           fmt::format("this computer does not have {} bytes", bytes));
  }
  return cudaSuccess;
}

Allocation* reserve(const char* call, Place place, void** pointer, std::size_t bytes,
                    std::size_t element) {
  auto& session = Session::current();
  *pointer = nullptr;
  if (bytes == 0 || bytes > session.options.gpu->memory_bytes) {
    session.mistake(
        cudaErrorInvalidValue, call, place,
        fmt::format("{} bytes; the GPU has {}", bytes, session.options.gpu->memory_bytes));
    return nullptr;
  }
  const auto name =
      fmt::format("the {}-byte array of {} ({})", bytes, call, session.text_of(place));
  auto& memory = session.heap.reserve(bytes, element, name);
  memory.device = Devices::current();
  *pointer = memory.data();
  return &memory;
}

cudaError_t revive(const char* call, Place place, Allocation& memory) {
  auto& session = Session::current();
  if (!session.heap.revive(memory)) {
    return session.mistake(
        cudaErrorInvalidValue, call, place,
        fmt::format("an earlier launch of the graph allocated {}, and nothing has freed it",
                    memory.name));
  }
  session.graphs.memory.add(memory.bytes());
  return cudaSuccess;
}

cudaError_t fill(const char* call, Place place, void* to, std::span<const unsigned char> row) {
  const auto error = set(call, place, to, 0, row.size());
  if (error != cudaSuccess || row.empty()) return error;
  const Opened opened(Session::current().heap.find(to));
  std::memcpy(to, row.data(), row.size());
  return cudaSuccess;
}

cudaError_t copy_async(const char* call, Place place, void* to, const void* from, std::size_t bytes,
                       cudaMemcpyKind kind) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto error = copy(call, place, to, from, bytes, kind);
  auto* target = session.heap.find(to);
  // The host may use pinned memory when it has waited for the copy.
  if (error == cudaSuccess && target != nullptr && target->kind == MemoryKind::Pinned &&
      bytes != 0) {
    target->is_stored = true;
    target->writer = fmt::format("{} ({})", call, session.text_of(place));
    target->close();
  }
  return error;
}

cudaError_t set(const char* call, Place place, void* to, int value, std::size_t bytes) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  session.devices.select_variables();
  if (bytes == 0) return cudaSuccess;
  auto* memory = session.heap.find(to);
  const bool is_variable = session.is_variable(to, bytes);
  if (memory == nullptr && !is_variable) {
    return session.mistake(cudaErrorInvalidValue, call, place,
                           "the destination is no memory of the GPU");
  }
  if (const auto wrong = mistake_in(memory, to, bytes, "the destination")) {
    return session.mistake(cudaErrorInvalidValue, call, place, *wrong);
  }
  const Opened opened(memory);
  std::memset(to, value, bytes);
  note_written(memory, to, bytes);
  return cudaSuccess;
}

cudaError_t copy(const char* call, Place place, void* to, const void* from, std::size_t bytes,
                 cudaMemcpyKind kind) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  session.devices.select_variables();
  if (bytes == 0) return cudaSuccess;
  auto *target = session.heap.find(to), *source = session.heap.find(from);
  for (const auto& wrong : {mistake_in(target, to, bytes, "the destination"),
                            mistake_in(source, from, bytes, "the source")}) {
    if (wrong) return session.mistake(cudaErrorInvalidValue, call, place, *wrong);
  }
  const bool has_variable = session.is_variable(to, bytes) || session.is_variable(from, bytes);
  if (const auto wrong = mistake_in(kind, target, source);
      wrong && kind != cudaMemcpyDefault && !has_variable) {
    return session.mistake(cudaErrorInvalidMemcpyDirection, call, place, *wrong);
  }
  if (const auto wrong = undefined_source(source, from, bytes)) {
    session.note(cudaSuccess, call, place, *wrong);
  }
  const Opened open_target(target), open_source(source);
  std::memmove(to, from, bytes);
  note_written(target, to, bytes);
  return cudaSuccess;
}

cudaError_t copy_box(const char* call, Place place, const Rows& to, const Rows& from,
                     const cudaExtent& extent, cudaMemcpyKind kind) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto& [width, height, depth] = extent;
  if (width > to.pitch || width > from.pitch) {
    return session.mistake(cudaErrorInvalidPitchValue, call, place,
                           fmt::format("rows of {} bytes do not fit in pitches of {} and {}", width,
                                       to.pitch, from.pitch));
  }
  for (std::size_t i = 0; i < height * depth; ++i) {
    const auto row = i % height, slice = i / height;
    const auto error =
        copy(call, place, static_cast<std::byte*>(to.data) + slice * to.slice + row * to.pitch,
             static_cast<const std::byte*>(from.data) + slice * from.slice + row * from.pitch,
             width, kind);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
cudaError_t triptychMalloc(Place place, void** pointer, size_t bytes, size_t element) {
  return allocate("cudaMalloc", place, MemoryKind::Device, pointer, bytes, element);
}
cudaError_t triptychMallocManaged(Place place, void** pointer, size_t bytes, size_t element) {
  return allocate("cudaMallocManaged", place, MemoryKind::Managed, pointer, bytes, element);
}
cudaError_t triptychMallocHost(Place place, void** pointer, size_t bytes, size_t element) {
  return allocate("cudaMallocHost", place, MemoryKind::Pinned, pointer, bytes, element);
}
cudaError_t triptychMallocPitch(Place place, void** pointer, size_t* pitch, size_t width,
                                size_t height, size_t element) {
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return allocate("cudaMallocPitch", place, MemoryKind::Device, pointer, *pitch * height, element);
}
cudaError_t cudaFree(Place place, void* pointer) {
  return free_memory("cudaFree", place, pointer, false);
}
cudaError_t triptychMallocAsync(Place place, void** pointer, size_t bytes, size_t element,
                                cudaStream_t stream) {
  constexpr auto kCall = "cudaMallocAsync";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto error = check_stream(kCall, place, stream);
  if (error != cudaSuccess) return error;
  if (session.graphs.capture_of(stream) == nullptr) {
    const auto failed = allocate(kCall, place, MemoryKind::Device, pointer, bytes, element);
    if (failed == cudaSuccess && bytes != 0) session.heap.find(*pointer)->is_of_pool = true;
    return failed;
  }
  auto* memory = reserve(kCall, place, pointer, bytes, element);
  if (memory == nullptr) return session.last_error;
  return submit(kCall, place, stream, {.type = cudaGraphNodeTypeMemAlloc, .run = [=] {
                                         return revive(kCall, place, *memory);
                                       }});
}
cudaError_t cudaFreeAsync(Place place, void* pointer, cudaStream_t stream) {
  return submit("cudaFreeAsync", place, stream,
                {.type = cudaGraphNodeTypeMemFree,
                 .run = [=] { return free_memory("cudaFreeAsync", place, pointer, false); }});
}
cudaError_t cudaFreeHost(Place place, void* pointer) {
  return free_memory("cudaFreeHost", place, pointer, true);
}

cudaError_t cudaHostGetDevicePointer(Place place, void** device, void* host, unsigned) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (session.heap.find(host) == nullptr) {
    return session.mistake(cudaErrorInvalidValue, "cudaHostGetDevicePointer", place,
                           "no call of cudaHostAlloc, cudaMallocHost or cudaHostRegister had this "
                           "pointer");
  }
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaHostRegister(Place place, void* pointer, size_t bytes, unsigned) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  constexpr auto kCall = "cudaHostRegister";
  if (pointer == nullptr || bytes == 0) {
    return session.mistake(cudaErrorInvalidValue, kCall, place, "there is no memory to register");
  }
  const auto* end = static_cast<std::byte*>(pointer) + bytes - 1;
  for (const auto* memory : {session.heap.find(pointer), session.heap.find(end)}) {
    if (memory == nullptr || !memory->gone.empty()) continue;
    return session.mistake(cudaErrorHostMemoryAlreadyRegistered, kCall, place,
                           fmt::format("the memory is part of {}", memory->name));
  }
  session.heap.add_registered(
      {static_cast<std::byte*>(pointer), bytes},
      fmt::format("the {}-byte array of cudaHostRegister ({})", bytes, session.text_of(place)));
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(Place place, void* pointer) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  auto* memory = session.heap.find(pointer);
  if (memory == nullptr || memory->kind != MemoryKind::Registered || memory->data() != pointer) {
    return session.mistake(cudaErrorHostMemoryNotRegistered, "cudaHostUnregister", place,
                           "no call of cudaHostRegister had this pointer");
  }
  session.heap.remove_registered(*memory);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(Place, cudaPointerAttributes* attributes,
                                     const void* pointer) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  *attributes = {cudaMemoryTypeUnregistered, 0, nullptr, const_cast<void*>(pointer)};
  const auto* memory = session.heap.find(pointer);
  if (memory == nullptr || !memory->gone.empty()) return cudaSuccess;
  attributes->devicePointer = const_cast<void*>(pointer);
  attributes->device = memory->device;
  if (memory->kind == MemoryKind::Device) attributes->hostPointer = nullptr;
  attributes->type = memory->kind == MemoryKind::Device    ? cudaMemoryTypeDevice
                     : memory->kind == MemoryKind::Managed ? cudaMemoryTypeManaged
                                                           : cudaMemoryTypeHost;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(Place, size_t* free, size_t* total) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  *total = session.options.gpu->memory_bytes;
  *free = *total - session.heap.used_bytes(Devices::current());
  return cudaSuccess;
}

cudaError_t cudaMemcpy(Place place, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const auto error = wait("cudaMemcpy", place);
  return error == cudaSuccess ? copy("cudaMemcpy", place, to, from, bytes, kind) : error;
}
cudaError_t cudaMemcpyAsync(Place place, void* to, const void* from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  return submit("cudaMemcpyAsync", place, stream, {.type = cudaGraphNodeTypeMemcpy, .run = [=] {
                                                     return copy_async("cudaMemcpyAsync", place, to,
                                                                       from, bytes, kind);
                                                   }});
}
cudaError_t cudaMemcpy2D(Place place, void* to, size_t to_pitch, const void* from,
                         size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  const auto error = wait("cudaMemcpy2D", place);
  if (error != cudaSuccess) return error;
  return copy_box("cudaMemcpy2D", place, {to, to_pitch, 0},
                  {const_cast<void*>(from), from_pitch, 0}, {width, height, 1}, kind);
}
// NOLINTNEXTLINE(readability-function-size): CUDA's own parameters and the place of the call.
cudaError_t cudaMemcpy2DAsync(Place place, void* to, size_t to_pitch, const void* from,
                              size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  const auto copy = [=] {
    return copy_box("cudaMemcpy2DAsync", place, {to, to_pitch, 0},
                    {const_cast<void*>(from), from_pitch, 0}, {width, height, 1}, kind);
  };
  return submit("cudaMemcpy2DAsync", place, stream, {.type = cudaGraphNodeTypeMemcpy, .run = copy});
}
cudaError_t cudaMemcpyPeer(Place place, void* to, int, const void* from, int, size_t bytes) {
  return copy("cudaMemcpyPeer", place, to, from, bytes, cudaMemcpyDeviceToDevice);
}
cudaError_t cudaMemcpyPeerAsync(Place place, void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  const auto run = [=] {
    return copy("cudaMemcpyPeerAsync", place, to, from, bytes, cudaMemcpyDeviceToDevice);
  };
  return submit("cudaMemcpyPeerAsync", place, stream,
                {.type = cudaGraphNodeTypeMemcpy, .run = run});
}
cudaError_t cudaMemset(Place place, void* to, int value, size_t bytes) {
  const auto error = refuse_default_stream("cudaMemset", place, nullptr);
  return error == cudaSuccess ? set("cudaMemset", place, to, value, bytes) : error;
}
cudaError_t cudaMemsetAsync(Place place, void* to, int value, size_t bytes, cudaStream_t stream) {
  return submit("cudaMemsetAsync", place, stream,
                {.type = cudaGraphNodeTypeMemset,
                 .run = [=] { return set("cudaMemsetAsync", place, to, value, bytes); }});
}
cudaError_t cudaMemset2D(Place place, void* to, size_t pitch, int value, size_t width,
                         size_t height) {
  for (std::size_t row = 0; row < height; ++row) {
    const auto error =
        set("cudaMemset2D", place, static_cast<std::byte*>(to) + row * pitch, value, width);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(Place place, const void* pointer, size_t bytes, int,
                                 cudaStream_t) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto* memory = session.heap.find(pointer);
  if (memory == nullptr || memory->kind != MemoryKind::Managed) {
    return session.mistake(cudaErrorInvalidValue, "cudaMemPrefetchAsync", place,
                           "the memory is not of cudaMallocManaged");
  }
  if (const auto wrong = mistake_in(memory, pointer, bytes, "the range")) {
    return session.mistake(cudaErrorInvalidValue, "cudaMemPrefetchAsync", place, *wrong);
  }
  return cudaSuccess;
}
cudaError_t cudaMemAdvise(Place, const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
// NOLINTEND(readability-identifier-naming)

}  // namespace triptych::cuda::program::calls
