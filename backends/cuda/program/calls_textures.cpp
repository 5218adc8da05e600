// Objects of textures and surfaces, and texture references.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "backends/cuda/program/calls.h"

namespace triptych::cuda::program::calls {
namespace {

using plain::AddressMode, plain::ChannelKind, plain::TexelArray, plain::Texture;
using plain::TextureShape;

AddressMode address_mode_of(cudaTextureAddressMode mode) {
  switch (mode) {
    case cudaAddressModeWrap:
      return AddressMode::Wrap;
    case cudaAddressModeMirror:
      return AddressMode::Mirror;
    case cudaAddressModeBorder:
      return AddressMode::Border;
    case cudaAddressModeClamp:
      break;
  }
  return AddressMode::Clamp;
}

/// Texels in memory of cudaMalloc. The mistake in them, or an empty text.
std::string set_memory(TexelArray& texels, void* memory, std::size_t bytes) {
  auto& session = Session::current();
  const auto* found = session.heap.find(memory);
  if (found == nullptr || !found->gone.empty()) {
    return "the texture's memory is no memory of the GPU, or was freed";
  }
  texels.data = static_cast<std::byte*>(memory);
  texels.name = found->name;
  const auto offset = static_cast<std::size_t>(texels.data - found->data());
  if (bytes > found->bytes() - offset) {
    return fmt::format("the texture has {} bytes, and {} has {} from there", bytes, found->name,
                       found->bytes() - offset);
  }
  return {};
}

std::string set_resource(const char* call, Place place, TexelArray& texels,
                         const cudaResourceDesc& resource) {
  const auto& linear = resource.res.linear;
  const auto& pitched = resource.res.pitch2D;
  switch (resource.resType) {
    case cudaResourceTypeArray: {
      const auto* found = array_of(call, place, resource.res.array.array);
      if (found == nullptr) return "the resource is no array";
      texels = found->texels;
      return {};
    }
    case cudaResourceTypeLinear: {
      if (auto wrong = set_channels(texels, linear.desc); !wrong.empty()) return wrong;
      texels.shape = TextureShape::Elements;
      texels.size[0] = static_cast<std::int64_t>(linear.sizeInBytes / texels.texel_bytes());
      return set_memory(texels, linear.devPtr, linear.sizeInBytes);
    }
    case cudaResourceTypePitch2D:
      if (auto wrong = set_channels(texels, pitched.desc); !wrong.empty()) return wrong;
      texels.size = {static_cast<std::int64_t>(pitched.width),
                     static_cast<std::int64_t>(pitched.height), 1};
      texels.row_bytes = pitched.pitchInBytes;
      return set_memory(texels, pitched.devPtr,
                        pitched.height == 0 ? 0
                                            : (pitched.height - 1) * pitched.pitchInBytes +
                                                  pitched.width * texels.texel_bytes());
    case cudaResourceTypeMipmappedArray:
      break;
  }
  return "mipmapped arrays are not emulated";
}

/// Adds a texture. 0: a mistake was noted.
cudaTextureObject_t add_texture(const char* call, Place place, const cudaResourceDesc& resource,
                                const cudaTextureDesc& how) {
  auto& session = Session::current();
  Texture texture;
  if (const auto wrong = set_resource(call, place, texture.texels, resource); !wrong.empty()) {
    session.mistake(cudaErrorInvalidValue, call, place, wrong);
    return 0;
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    texture.address[axis] = address_mode_of(how.addressMode[axis]);
  }
  texture.is_linear = how.filterMode == cudaFilterModeLinear;
  texture.normalizes_coordinates = how.normalizedCoords != 0;
  const auto& texels = texture.texels;
  const bool is_integer = texels.kind != ChannelKind::Float;
  texture.normalizes_values = how.readMode == cudaReadModeNormalizedFloat && is_integer;
  std::ranges::copy(how.borderColor, texture.border.begin());
  if (texture.normalizes_values && texels.channel_bytes > 2) {
    session.mistake(cudaErrorInvalidValue, call, place,
                    "integers of 32 bits cannot be read as normalized floats");
    return 0;
  }
  if (texture.is_linear && !texture.reads_floats()) {
    session.mistake(cudaErrorInvalidValue, call, place,
                    "a linear filter works on floats: choose cudaFilterModePoint, or "
                    "cudaReadModeNormalizedFloat");
    return 0;
  }
  const auto object = session.new_handle();
  session.textures.textures[object] = std::move(texture);
  return object;
}

}  // namespace

void register_texture(const void* reference, const char* symbol) {
  auto& session = Session::current();
  session.texture_references[reference] = session.newest_library().address_of(symbol);
}

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
cudaError_t cudaCreateTextureObject(Place place, cudaTextureObject_t* object,
                                    const cudaResourceDesc* resource, const cudaTextureDesc* how,
                                    const cudaResourceViewDesc* view) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (view != nullptr) {
    return session.mistake(cudaErrorNotSupported, "cudaCreateTextureObject", place,
                           "views of resources are not emulated; pass a null pointer");
  }
  *object = add_texture("cudaCreateTextureObject", place, *resource, *how);
  return *object == 0 ? session.last_error : cudaSuccess;
}
cudaError_t cudaDestroyTextureObject(Place place, cudaTextureObject_t object) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (object == 0 || session.textures.textures.erase(object) == 1) return cudaSuccess;
  return session.mistake(cudaErrorInvalidValue, "cudaDestroyTextureObject", place,
                         "the texture was not created, or was destroyed");
}
cudaError_t cudaCreateSurfaceObject(Place place, cudaSurfaceObject_t* object,
                                    const cudaResourceDesc* resource) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  constexpr auto kCall = "cudaCreateSurfaceObject";
  if (resource->resType != cudaResourceTypeArray) {
    return session.mistake(cudaErrorInvalidValue, kCall, place, "a surface needs an array");
  }
  const auto* array = array_of(kCall, place, resource->res.array.array);
  if (array == nullptr) return session.last_error;
  if ((array->flags & cudaArraySurfaceLoadStore) == 0) {
    return session.mistake(
        cudaErrorInvalidValue, kCall, place,
        fmt::format("{} was not allocated with cudaArraySurfaceLoadStore", array->texels.name));
  }
  *object = session.new_handle();
  session.textures.surfaces[*object] = array->texels;
  return cudaSuccess;
}
cudaError_t cudaDestroySurfaceObject(Place place, cudaSurfaceObject_t object) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (object == 0 || session.textures.surfaces.erase(object) == 1) return cudaSuccess;
  return session.mistake(cudaErrorInvalidValue, "cudaDestroySurfaceObject", place,
                         "the surface was not created, or was destroyed");
}

cudaError_t triptychBindTexture(Place place, const textureReference* reference,
                                const cudaResourceDesc* resource) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  constexpr auto kCall = "cudaBindTexture";
  const auto found = session.texture_references.find(reference);
  if (found == session.texture_references.end()) {
    return session.mistake(cudaErrorInvalidTexture, kCall, place,
                           "the reference is no variable of type texture of this program");
  }
  cudaTextureDesc how = {};
  std::ranges::copy(reference->addressMode, how.addressMode);
  how.filterMode = reference->filterMode;
  how.readMode = reference->readMode;
  how.normalizedCoords = reference->normalized;
  auto bound = *resource;
  if (bound.resType == cudaResourceTypeLinear) {
    // Without a size the rest of the memory is bound.
    auto& linear = bound.res.linear;
    const auto* memory = session.heap.find(linear.devPtr);
    if (memory != nullptr) {
      const auto rest =
          memory->bytes() -
          static_cast<std::size_t>(static_cast<std::byte*>(linear.devPtr) - memory->data());
      if (linear.sizeInBytes >= 0xFFFFFFFF) linear.sizeInBytes = rest;
    }
  }
  const auto object = add_texture(kCall, place, bound, how);
  if (object == 0) return session.last_error;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a symbol's value
  auto* of_kernels = reinterpret_cast<textureReference*>(found->second);
  session.textures.textures.erase(of_kernels->object);
  of_kernels->object = object;
  return cudaSuccess;
}
cudaError_t cudaUnbindTexture(Place place, const textureReference* reference) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto found = session.texture_references.find(reference);
  if (found == session.texture_references.end()) {
    return session.mistake(cudaErrorInvalidTexture, "cudaUnbindTexture", place,
                           "the reference is no variable of type texture of this program");
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a symbol's value
  auto* of_kernels = reinterpret_cast<textureReference*>(found->second);
  session.textures.textures.erase(of_kernels->object);
  of_kernels->object = 0;
  return cudaSuccess;
}
// NOLINTEND(readability-identifier-naming)

}  // namespace triptych::cuda::program::calls
