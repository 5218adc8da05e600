// Types of CUDA's arrays, textures, surfaces and copies in three dimensions, with types.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>

// NOLINTBEGIN(readability-identifier-naming,readability-identifier-length): CUDA's own names.
namespace triptych::cuda::program {

enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned,
  cudaChannelFormatKindUnsigned,
  cudaChannelFormatKindFloat,
  cudaChannelFormatKindNone
};
/// Bits of each channel.
struct cudaChannelFormatDesc {
  int x, y, z, w;
  cudaChannelFormatKind f;
};

struct cudaArray;
using cudaArray_t = cudaArray*;
using cudaArray_const_t = const cudaArray*;
using cudaMipmappedArray_t = struct cudaMipmappedArray*;
using cudaTextureObject_t = unsigned long long;
using cudaSurfaceObject_t = unsigned long long;

/// In elements for an array, else its width in bytes.
struct cudaExtent {
  std::size_t width, height, depth;
};
struct cudaPos {
  std::size_t x, y, z;
};
struct cudaPitchedPtr {
  void* ptr;
  std::size_t pitch, xsize, ysize;
};
struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};

enum cudaResourceType {
  cudaResourceTypeArray,
  cudaResourceTypeMipmappedArray,
  cudaResourceTypeLinear,
  cudaResourceTypePitch2D
};
struct cudaResourceDesc {
  cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      cudaMipmappedArray_t mipmap;
    } mipmap;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      std::size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      std::size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
};

enum cudaTextureAddressMode {
  cudaAddressModeWrap,
  cudaAddressModeClamp,
  cudaAddressModeMirror,
  cudaAddressModeBorder
};
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };
struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization, seamlessCubemap;
};
struct cudaResourceViewDesc;

/// The part of a texture reference (`texture<float, 2>`) that does not depend on its type.
struct textureReference {
  int normalized;
  cudaTextureFilterMode filterMode;
  cudaTextureAddressMode addressMode[3];
  cudaChannelFormatDesc channelDesc;
  int sRGB;
  cudaTextureReadMode readMode;
  int type;                    ///< cudaTextureType2D, for example
  cudaTextureObject_t object;  ///< what it is bound to. 0: nothing
};

inline constexpr int cudaTextureType1D = 1, cudaTextureType2D = 2, cudaTextureType3D = 3,
                     cudaTextureTypeCubemap = 0xC, cudaTextureType1DLayered = 0xF1,
                     cudaTextureType2DLayered = 0xF2, cudaTextureTypeCubemapLayered = 0xFC;
inline constexpr unsigned cudaArrayDefault = 0, cudaArrayLayered = 1, cudaArraySurfaceLoadStore = 2,
                          cudaArrayCubemap = 4, cudaArrayTextureGather = 8;

/// The channels of a type such as float4, or of a number.
template <class T, bool kIsVector = std::is_class_v<T>>
struct ChannelsOf {
  using Channel = T;
  static constexpr unsigned kCount = 1;
};
template <class T>
struct ChannelsOf<T, true> {
  using Channel = decltype(T::x);
  static constexpr unsigned kCount = sizeof(T) / sizeof(Channel);
};

/// The format of a type's channels.
template <class T>
constexpr cudaChannelFormatDesc channels_of() {
  using Channel = typename ChannelsOf<T>::Channel;
  constexpr unsigned kCount = ChannelsOf<T>::kCount;
  constexpr int kBits = 8 * sizeof(Channel);
  return {kBits, kCount > 1 ? kBits : 0, kCount > 2 ? kBits : 0, kCount > 3 ? kBits : 0,
          std::is_floating_point_v<Channel> ? cudaChannelFormatKindFloat
          : std::is_signed_v<Channel>       ? cudaChannelFormatKindSigned
                                            : cudaChannelFormatKindUnsigned};
}

}  // namespace triptych::cuda::program
// NOLINTEND(readability-identifier-naming,readability-identifier-length)
