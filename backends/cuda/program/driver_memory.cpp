// The driver API: memory, copies, arrays, textures and surfaces.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "backends/cuda/program/driver.h"

namespace triptych::cuda::program::calls {
namespace {

/// Allocates memory that goes away with the context. `pointer`: a CUdeviceptr or a void*.
template <class Pointer>
CUresult allocate_for(const char* call, Place place, MemoryKind kind, Pointer* pointer,
                      std::size_t bytes, std::size_t element = 0) {
  const DriverCall scope(call);
  if (const auto missing = require_context(call, place)) return missing;
  if (bytes == 0) return mistake(CUDA_ERROR_INVALID_VALUE, call, place, "the size is 0");
  void* memory = nullptr;
  const auto error =
      allocate(call, place, kind, pointer == nullptr ? nullptr : &memory, bytes, element);
  if (error != cudaSuccess) return result_of(error);
  *pointer = (Pointer)memory;  // NOLINT(google-readability-casting): of either type
  Driver::current().contexts[current_context()].memory.push_back(address_of(memory));
  return CUDA_SUCCESS;
}

CUresult free_for(const char* call, Place place, void* pointer, bool of_host) {
  const DriverCall scope(call);
  if (const auto missing = require_context(call, place)) return missing;
  const auto error = free_memory(call, place, pointer, of_host);
  if (error == cudaSuccess) forget_memory(address_of(pointer));
  return result_of(error);
}

CUresult copy_now(const char* call, Place place, void* to, const void* from, std::size_t bytes,
                  cudaMemcpyKind kind) {
  return forward(call, place, cudaMemcpy, to, from, bytes, kind);
}

CUresult copy_later(const char* call, Place place, void* to, const void* from, std::size_t bytes,
                    cudaMemcpyKind kind, CUstream stream) {
  return forward(call, place, cudaMemcpyAsync, to, from, bytes, kind, stream);
}

/// Fills with a pattern of any size.
template <class T>
CUresult fill(const char* call, Place place, CUdeviceptr to, T value, std::size_t count) {
  const DriverCall scope(call);
  if (const auto missing = require_context(call, place)) return missing;
  if (to % sizeof(T) != 0) {
    return mistake(
        CUDA_ERROR_INVALID_VALUE, call, place,
        fmt::format("the destination is not a multiple of the {} bytes of the value", sizeof(T)));
  }
  const std::vector<T> values(count, value);
  return result_of(
      copy(call, place, pointer_of(to), values.data(), count * sizeof(T), cudaMemcpyHostToDevice));
}

/// Bytes of a texel. 0, with a finding: the array does not exist.
std::size_t texel_bytes(const char* call, Place place, CUarray array) {
  const auto* found = array_of(call, place, array);
  return found == nullptr ? 0 : found->texels.texel_bytes();
}

struct CopySide {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  std::size_t x_bytes, y, z, pitch, height;
};

/// A copy of boxes as the runtime describes it: an array counts in its texels.
CUresult copy_box_of(const char* call, Place place, const CopySide& from, const CopySide& to,
                     const cudaExtent& bytes) {
  const DriverCall scope(call);
  if (const auto missing = require_context(call, place)) return missing;
  cudaMemcpy3DParms copy = {};
  copy.kind = cudaMemcpyDefault;
  copy.extent = bytes;
  for (const auto* side : {&from, &to}) {
    auto& array = side == &from ? copy.srcArray : copy.dstArray;
    auto& at = side == &from ? copy.srcPos : copy.dstPos;
    auto& memory = side == &from ? copy.srcPtr : copy.dstPtr;
    at = {side->x_bytes, side->y, side->z};
    if (side->type == CU_MEMORYTYPE_ARRAY) {
      const auto texel = texel_bytes(call, place, side->array);
      if (texel == 0) return CUDA_ERROR_INVALID_HANDLE;
      if (side->x_bytes % texel != 0 || bytes.width % texel != 0) {
        return mistake(CUDA_ERROR_INVALID_VALUE, call, place,
                       fmt::format("a row of {} bytes from byte {} on does not consist of texels "
                                   "of {} bytes",
                                   bytes.width, side->x_bytes, texel));
      }
      array = side->array;
      at.x /= texel;
      copy.extent.width = bytes.width / texel;
      continue;
    }
    const bool is_host = side->type == CU_MEMORYTYPE_HOST;
    auto* begin = is_host ? const_cast<void*>(side->host) : pointer_of(side->device);
    memory = {begin, side->pitch == 0 ? side->x_bytes + bytes.width : side->pitch, bytes.width,
              side->height == 0 ? side->y + bytes.height : side->height};
  }
  return result_of(cudaMemcpy3D(place, &copy));
}

CUresult copy_plane(const char* call, Place place, const CUDA_MEMCPY2D& of) {
  return copy_box_of(call, place,
                     {of.srcMemoryType, of.srcHost, of.srcDevice, of.srcArray, of.srcXInBytes,
                      of.srcY, 0, of.srcPitch, 0},
                     {of.dstMemoryType, of.dstHost, of.dstDevice, of.dstArray, of.dstXInBytes,
                      of.dstY, 0, of.dstPitch, 0},
                     {of.WidthInBytes, of.Height, 1});
}

cudaChannelFormatDesc channels_of_format(CUarray_format format, unsigned count) {
  const auto kind = format == CU_AD_FORMAT_FLOAT || format == CU_AD_FORMAT_HALF
                        ? cudaChannelFormatKindFloat
                    : format >= CU_AD_FORMAT_SIGNED_INT8 ? cudaChannelFormatKindSigned
                                                         : cudaChannelFormatKindUnsigned;
  int bits = 32;
  if (format == CU_AD_FORMAT_UNSIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT8) bits = 8;
  if (format == CU_AD_FORMAT_UNSIGNED_INT16 || format == CU_AD_FORMAT_SIGNED_INT16 ||
      format == CU_AD_FORMAT_HALF) {
    bits = 16;
  }
  return {bits, count > 1 ? bits : 0, count > 2 ? bits : 0, count > 3 ? bits : 0, kind};
}

cudaResourceDesc resource_of(const CUDA_RESOURCE_DESC& of) {
  cudaResourceDesc resource = {};
  resource.resType = static_cast<cudaResourceType>(of.resType);
  const auto& [address, format, channels, bytes] = of.res.linear;
  const auto& plane = of.res.pitch2D;
  if (of.resType == CU_RESOURCE_TYPE_ARRAY) resource.res.array.array = of.res.array.hArray;
  if (of.resType == CU_RESOURCE_TYPE_LINEAR) {
    resource.res.linear = {pointer_of(address), channels_of_format(format, channels), bytes};
  }
  if (of.resType == CU_RESOURCE_TYPE_PITCH2D) {
    resource.res.pitch2D = {pointer_of(plane.devPtr),
                            channels_of_format(plane.format, plane.numChannels), plane.width,
                            plane.height, plane.pitchInBytes};
  }
  return resource;
}

/// Bits of each channel. 0: the array does not exist.
int channel_bits(const cudaResourceDesc& resource) {
  if (resource.resType == cudaResourceTypeLinear) return resource.res.linear.desc.x;
  if (resource.resType == cudaResourceTypePitch2D) return resource.res.pitch2D.desc.x;
  const auto found = Session::current().arrays.find(resource.res.array.array);
  return found == Session::current().arrays.end() ? 0 : found->second.channels.x;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
CUresult cuMemAlloc(Place place, CUdeviceptr* pointer, size_t bytes) {
  return allocate_for("cuMemAlloc", place, MemoryKind::Device, pointer, bytes);
}
CUresult cuMemAllocAsync(Place place, CUdeviceptr* pointer, size_t bytes, CUstream) {
  return allocate_for("cuMemAllocAsync", place, MemoryKind::Device, pointer, bytes);
}
CUresult cuMemAllocPitch(Place place, CUdeviceptr* pointer, size_t* pitch, size_t width,
                         size_t height, unsigned element) {
  if (element != 4 && element != 8 && element != 16) {
    return mistake(CUDA_ERROR_INVALID_VALUE, "cuMemAllocPitch", place,
                   fmt::format("elements of {} bytes; 4, 8 or 16 are allowed", element));
  }
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return allocate_for("cuMemAllocPitch", place, MemoryKind::Device, pointer, *pitch * height);
}
CUresult cuMemAllocManaged(Place place, CUdeviceptr* pointer, size_t bytes, unsigned) {
  return allocate_for("cuMemAllocManaged", place, MemoryKind::Managed, pointer, bytes);
}
CUresult cuMemAllocHost(Place place, void** pointer, size_t bytes) {
  return allocate_for("cuMemAllocHost", place, MemoryKind::Pinned, pointer, bytes);
}
CUresult cuMemHostAlloc(Place place, void** pointer, size_t bytes, unsigned) {
  return allocate_for("cuMemHostAlloc", place, MemoryKind::Pinned, pointer, bytes);
}
CUresult cuMemFree(Place place, CUdeviceptr pointer) {
  return free_for("cuMemFree", place, pointer_of(pointer), false);
}
CUresult cuMemFreeAsync(Place place, CUdeviceptr pointer, CUstream) {
  return free_for("cuMemFreeAsync", place, pointer_of(pointer), false);
}
CUresult cuMemFreeHost(Place place, void* pointer) {
  return free_for("cuMemFreeHost", place, pointer, true);
}
CUresult cuMemHostGetDevicePointer(Place place, CUdeviceptr* device, void* host, unsigned flags) {
  void* pointer = nullptr;
  const auto result =
      forward("cuMemHostGetDevicePointer", place, cudaHostGetDevicePointer, &pointer, host, flags);
  *device = address_of(pointer);
  return result;
}
CUresult cuMemHostRegister(Place place, void* pointer, size_t bytes, unsigned flags) {
  return forward("cuMemHostRegister", place, cudaHostRegister, pointer, bytes, flags);
}
CUresult cuMemHostUnregister(Place place, void* pointer) {
  return forward("cuMemHostUnregister", place, cudaHostUnregister, pointer);
}
CUresult cuMemGetInfo(Place place, size_t* free, size_t* total) {
  return forward("cuMemGetInfo", place, cudaMemGetInfo, free, total);
}
CUresult cuMemGetAddressRange(Place place, CUdeviceptr* begin, size_t* bytes, CUdeviceptr pointer) {
  const DriverCall scope("cuMemGetAddressRange");
  if (const auto missing = require_context("cuMemGetAddressRange", place)) return missing;
  const auto* memory = Session::current().heap.find(pointer_of(pointer));
  if (memory == nullptr || !memory->gone.empty()) {
    return mistake(CUDA_ERROR_NOT_FOUND, "cuMemGetAddressRange", place,
                   "the address is no memory of the GPU, or was freed");
  }
  if (begin != nullptr) *begin = address_of(memory->data());
  if (bytes != nullptr) *bytes = memory->bytes();
  return CUDA_SUCCESS;
}

CUresult cuMemcpy(Place place, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_now("cuMemcpy", place, pointer_of(to), pointer_of(from), bytes, cudaMemcpyDefault);
}
CUresult cuMemcpyHtoD(Place place, CUdeviceptr to, const void* from, size_t bytes) {
  return copy_now("cuMemcpyHtoD", place, pointer_of(to), from, bytes, cudaMemcpyHostToDevice);
}
CUresult cuMemcpyDtoH(Place place, void* to, CUdeviceptr from, size_t bytes) {
  return copy_now("cuMemcpyDtoH", place, to, pointer_of(from), bytes, cudaMemcpyDeviceToHost);
}
CUresult cuMemcpyDtoD(Place place, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_now("cuMemcpyDtoD", place, pointer_of(to), pointer_of(from), bytes,
                  cudaMemcpyDeviceToDevice);
}
CUresult cuMemcpyAsync(Place place, CUdeviceptr to, CUdeviceptr from, size_t bytes,
                       CUstream stream) {
  return copy_later("cuMemcpyAsync", place, pointer_of(to), pointer_of(from), bytes,
                    cudaMemcpyDefault, stream);
}
CUresult cuMemcpyHtoDAsync(Place place, CUdeviceptr to, const void* from, size_t bytes,
                           CUstream stream) {
  return copy_later("cuMemcpyHtoDAsync", place, pointer_of(to), from, bytes, cudaMemcpyHostToDevice,
                    stream);
}
CUresult cuMemcpyDtoHAsync(Place place, void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_later("cuMemcpyDtoHAsync", place, to, pointer_of(from), bytes, cudaMemcpyDeviceToHost,
                    stream);
}
CUresult cuMemcpyDtoDAsync(Place place, CUdeviceptr to, CUdeviceptr from, size_t bytes,
                           CUstream stream) {
  return copy_later("cuMemcpyDtoDAsync", place, pointer_of(to), pointer_of(from), bytes,
                    cudaMemcpyDeviceToDevice, stream);
}
CUresult cuMemcpy2D(Place place, const CUDA_MEMCPY2D* copy) {
  return copy_plane("cuMemcpy2D", place, *copy);
}
CUresult cuMemcpy2DUnaligned(Place place, const CUDA_MEMCPY2D* copy) {
  return copy_plane("cuMemcpy2DUnaligned", place, *copy);
}
CUresult cuMemcpy2DAsync(Place place, const CUDA_MEMCPY2D* copy, CUstream) {
  return copy_plane("cuMemcpy2DAsync", place, *copy);
}
CUresult cuMemcpy3D(Place place, const CUDA_MEMCPY3D* copy) {
  const auto& of = *copy;
  return copy_box_of("cuMemcpy3D", place,
                     {of.srcMemoryType, of.srcHost, of.srcDevice, of.srcArray, of.srcXInBytes,
                      of.srcY, of.srcZ, of.srcPitch, of.srcHeight},
                     {of.dstMemoryType, of.dstHost, of.dstDevice, of.dstArray, of.dstXInBytes,
                      of.dstY, of.dstZ, of.dstPitch, of.dstHeight},
                     {of.WidthInBytes, of.Height, of.Depth});
}
CUresult cuMemsetD8(Place place, CUdeviceptr to, unsigned char value, size_t count) {
  return forward("cuMemsetD8", place, cudaMemset, pointer_of(to), value, count);
}
CUresult cuMemsetD16(Place place, CUdeviceptr to, unsigned short value, size_t count) {
  return fill("cuMemsetD16", place, to, value, count);
}
CUresult cuMemsetD32(Place place, CUdeviceptr to, unsigned value, size_t count) {
  return fill("cuMemsetD32", place, to, value, count);
}
CUresult cuMemsetD8Async(Place place, CUdeviceptr to, unsigned char value, size_t count,
                         CUstream stream) {
  return forward("cuMemsetD8Async", place, cudaMemsetAsync, pointer_of(to), value, count, stream);
}
CUresult cuMemsetD32Async(Place place, CUdeviceptr to, unsigned value, size_t count, CUstream) {
  return fill("cuMemsetD32Async", place, to, value, count);
}

CUresult cuArrayCreate(Place place, CUarray* array, const CUDA_ARRAY_DESCRIPTOR* how) {
  const auto channels = channels_of_format(how->Format, how->NumChannels);
  return forward("cuArrayCreate", place, cudaMallocArray, array, &channels, how->Width, how->Height,
                 0U);
}
CUresult cuArray3DCreate(Place place, CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* how) {
  const auto channels = channels_of_format(how->Format, how->NumChannels);
  return forward("cuArray3DCreate", place, cudaMalloc3DArray, array, &channels,
                 cudaExtent{how->Width, how->Height, how->Depth}, how->Flags);
}
CUresult cuArrayDestroy(Place place, CUarray array) {
  return forward("cuArrayDestroy", place, cudaFreeArray, array);
}
CUresult cuTexObjectCreate(Place place, CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* how, const CUDA_RESOURCE_VIEW_DESC* view) {
  const auto of = resource_of(*resource);
  cudaTextureDesc texture = {};
  std::ranges::transform(how->addressMode, texture.addressMode, [](CUaddress_mode mode) {
    return static_cast<cudaTextureAddressMode>(mode);
  });
  texture.filterMode = static_cast<cudaTextureFilterMode>(how->filterMode);
  // Integers of 32 bits are never read as floats.
  const bool as_elements = (how->flags & CU_TRSF_READ_AS_INTEGER) != 0 || channel_bits(of) == 32;
  texture.readMode = as_elements ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  texture.normalizedCoords = (how->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0 ? 1 : 0;
  std::ranges::copy(how->borderColor, texture.borderColor);
  return forward("cuTexObjectCreate", place, cudaCreateTextureObject, object, &of, &texture,
                 reinterpret_cast<const cudaResourceViewDesc*>(view));
}
CUresult cuTexObjectDestroy(Place place, CUtexObject object) {
  return forward("cuTexObjectDestroy", place, cudaDestroyTextureObject, object);
}
CUresult cuSurfObjectCreate(Place place, CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
  const auto of = resource_of(*resource);
  return forward("cuSurfObjectCreate", place, cudaCreateSurfaceObject, object, &of);
}
CUresult cuSurfObjectDestroy(Place place, CUsurfObject object) {
  return forward("cuSurfObjectDestroy", place, cudaDestroySurfaceObject, object);
}
// NOLINTEND(readability-identifier-naming)

}  // namespace triptych::cuda::program::calls
