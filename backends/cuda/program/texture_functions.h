// Reads of textures and accesses to surfaces by kernels, on objects and on texture references.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
namespace triptych::cuda::program {

using plain::SurfaceAccess, plain::SurfaceBoundary, plain::TextureRead, plain::TextureShape;

template <class T>
TRIPTYCH_UNWATCHED T read_texture(TextureRead read, const emulation::Location& where) {
  using Channel = typename ChannelsOf<T>::Channel;
  constexpr unsigned kCount = ChannelsOf<T>::kCount;
  constexpr bool kIsFloat = std::is_floating_point_v<Channel>;
  read.kind = kIsFloat ? plain::ChannelValue::Float : plain::ChannelValue::Integer;
  read.channels = kCount;
  std::uint32_t words[4] = {};
  plain::services->read_texture(read, words, where);
  Channel channels[kCount];
  for (unsigned i = 0; i < kCount; ++i) {
    if constexpr (kIsFloat) {
      channels[i] = __builtin_bit_cast(float, words[i]);
    } else {
      channels[i] = static_cast<Channel>(words[i]);
    }
  }
  return __builtin_bit_cast(T, channels);
}

template <class T>
TRIPTYCH_UNWATCHED void store_to_surface(SurfaceAccess access, T value,
                                         const emulation::Location& where) {
  access.bytes = sizeof(T);
  auto* to = static_cast<T*>(plain::services->find_in_surface(access, where));
  if (to == nullptr) return;
  plain::touch(plain::Touch::Store, to, where);
  *to = value;
}
template <class T>
TRIPTYCH_UNWATCHED T load_from_surface(SurfaceAccess access, const emulation::Location& where) {
  access.bytes = sizeof(T);
  const auto* from = static_cast<const T*>(plain::services->find_in_surface(access, where));
  if (from == nullptr) return T{};
  plain::touch(plain::Touch::Load, from, where);
  return *from;
}
TRIPTYCH_UNWATCHED inline SurfaceBoundary boundary_of(cudaSurfaceBoundaryMode mode) {
  return mode == cudaBoundaryModeZero    ? SurfaceBoundary::Zero
         : mode == cudaBoundaryModeClamp ? SurfaceBoundary::Clamp
                                         : SurfaceBoundary::Trap;
}

/// Type of a read of a texture reference.
template <class T, cudaTextureReadMode kMode>
struct ReadOf {
  using Type = T;
};
template <class T>
struct ReadOf<T, cudaReadModeNormalizedFloat> {
  using Type = std::conditional_t<ChannelsOf<T>::kCount == 1, float,
                                  std::conditional_t<ChannelsOf<T>::kCount == 2, float2, float4>>;
};

}  // namespace triptych::cuda::program

/// A texture reference of CUDA before version 12: clang gives it to both parts of a program.
template <class T, int kType = triptych::cuda::program::cudaTextureType1D,
          triptych::cuda::program::cudaTextureReadMode kMode =
              triptych::cuda::program::cudaReadModeElementType>
struct __attribute__((device_builtin_texture_type)) texture
    : triptych::cuda::program::textureReference {
  constexpr texture(int with_normalized = 0,
                    triptych::cuda::program::cudaTextureFilterMode filter =
                        triptych::cuda::program::cudaFilterModePoint,
                    triptych::cuda::program::cudaTextureAddressMode address =
                        triptych::cuda::program::cudaAddressModeClamp)
      : triptych::cuda::program::textureReference{with_normalized,
                                                  filter,
                                                  {address, address, address},
                                                  triptych::cuda::program::channels_of<T>(),
                                                  0,
                                                  kMode,
                                                  kType,
                                                  0} {}
};

#define TRIPTYCH_LIST(...) __VA_ARGS__
#define TRIPTYCH_WHERE \
  triptych::cuda::plain::Location where = triptych::cuda::plain::Location::current()
/// A read of an object, with the type of its value, and one of a reference. `layer`, then the
/// coordinates, are those of a TextureRead.
#define TRIPTYCH_TEXTURE(name, shape, parameters, names, layer, ...)                         \
  template <class T>                                                                         \
  TRIPTYCH_UNWATCHED T name(triptych::cuda::program::cudaTextureObject_t object,             \
                            TRIPTYCH_LIST parameters, TRIPTYCH_WHERE) {                      \
    using triptych::cuda::plain::ChannelValue, triptych::cuda::plain::TextureShape;          \
    return triptych::cuda::program::read_texture<T>(                                         \
        {object, TextureShape::shape, ChannelValue::Float, 1, layer, {__VA_ARGS__}}, where); \
  }                                                                                          \
  template <class T, int kType, triptych::cuda::program::cudaTextureReadMode kMode>          \
  TRIPTYCH_UNWATCHED typename triptych::cuda::program::ReadOf<T, kMode>::Type name(          \
      const texture<T, kType, kMode>& reference, TRIPTYCH_LIST parameters, TRIPTYCH_WHERE) { \
    using Value = typename triptych::cuda::program::ReadOf<T, kMode>::Type;                  \
    return name<Value>(reference.object, TRIPTYCH_LIST names, where);                        \
  }
TRIPTYCH_TEXTURE(tex1Dfetch, Elements, (int x), (x), x, 0)
TRIPTYCH_TEXTURE(tex1D, Line, (float x), (x), 0, x)
TRIPTYCH_TEXTURE(tex2D, Plane, (float x, float y), (x, y), 0, x, y)
TRIPTYCH_TEXTURE(tex3D, Volume, (float x, float y, float z), (x, y, z), 0, x, y, z)
TRIPTYCH_TEXTURE(tex1DLayered, LineLayers, (float x, int layer), (x, layer), layer, x)
TRIPTYCH_TEXTURE(tex2DLayered, PlaneLayers, (float x, float y, int layer), (x, y, layer), layer, x,
                 y)
TRIPTYCH_TEXTURE(texCubemap, Cube, (float x, float y, float z), (x, y, z), 0, x, y, z)
TRIPTYCH_TEXTURE(texCubemapLayered, CubeLayers, (float x, float y, float z, int layer),
                 (x, y, z, layer), layer, x, y, z)
#undef TRIPTYCH_TEXTURE

/// Accesses to a surface. `x` counts bytes. `y` and `slice` are those of a SurfaceAccess.
#define TRIPTYCH_SURFACE(name, shape, parameters, y_place, slice)                               \
  template <class T>                                                                            \
  TRIPTYCH_UNWATCHED void name##write(                                                          \
      T value, triptych::cuda::program::cudaSurfaceObject_t object, TRIPTYCH_LIST parameters,   \
      triptych::cuda::program::cudaSurfaceBoundaryMode mode =                                   \
          triptych::cuda::program::cudaBoundaryModeTrap,                                        \
      TRIPTYCH_WHERE) {                                                                         \
    using triptych::cuda::plain::TextureShape;                                                  \
    triptych::cuda::program::store_to_surface(                                                  \
        {object, TextureShape::shape, triptych::cuda::program::boundary_of(mode), sizeof(T), x, \
         y_place, slice},                                                                       \
        value, where);                                                                          \
  }                                                                                             \
  template <class T>                                                                            \
  TRIPTYCH_UNWATCHED T name##read(triptych::cuda::program::cudaSurfaceObject_t object,          \
                                  TRIPTYCH_LIST parameters,                                     \
                                  triptych::cuda::program::cudaSurfaceBoundaryMode mode =       \
                                      triptych::cuda::program::cudaBoundaryModeTrap,            \
                                  TRIPTYCH_WHERE) {                                             \
    using triptych::cuda::plain::TextureShape;                                                  \
    return triptych::cuda::program::load_from_surface<T>(                                       \
        {object, TextureShape::shape, triptych::cuda::program::boundary_of(mode), sizeof(T), x, \
         y_place, slice},                                                                       \
        where);                                                                                 \
  }                                                                                             \
  template <class T>                                                                            \
  TRIPTYCH_UNWATCHED void name##read(                                                           \
      T* value, triptych::cuda::program::cudaSurfaceObject_t object, TRIPTYCH_LIST parameters,  \
      triptych::cuda::program::cudaSurfaceBoundaryMode mode =                                   \
          triptych::cuda::program::cudaBoundaryModeTrap,                                        \
      TRIPTYCH_WHERE) {                                                                         \
    using triptych::cuda::plain::TextureShape;                                                  \
    *value = triptych::cuda::program::load_from_surface<T>(                                     \
        {object, TextureShape::shape, triptych::cuda::program::boundary_of(mode), sizeof(T), x, \
         y_place, slice},                                                                       \
        where);                                                                                 \
  }
TRIPTYCH_SURFACE(surf1D, Line, (int x), 0, 0)
TRIPTYCH_SURFACE(surf2D, Plane, (int x, int y), y, 0)
TRIPTYCH_SURFACE(surf3D, Volume, (int x, int y, int z), y, z)
TRIPTYCH_SURFACE(surf1DLayered, LineLayers, (int x, int layer), 0, layer)
TRIPTYCH_SURFACE(surf2DLayered, PlaneLayers, (int x, int y, int layer), y, layer)
TRIPTYCH_SURFACE(surfCubemap, Cube, (int x, int y, int face), y, face)
#undef TRIPTYCH_SURFACE
#undef TRIPTYCH_WHERE
#undef TRIPTYCH_LIST
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
