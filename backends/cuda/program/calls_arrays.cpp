// CUDA's arrays, pitched memory, and copies of boxes. The texels of an array lie row by row without
// gaps.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "backends/cuda/program/calls.h"

namespace triptych::cuda::program::calls {
namespace {

using plain::TexelArray, plain::TextureShape;

TextureShape shape_of(const cudaExtent& extent, unsigned flags) {
  const bool layered = (flags & cudaArrayLayered) != 0;
  if ((flags & cudaArrayCubemap) != 0) {
    return layered ? TextureShape::CubeLayers : TextureShape::Cube;
  }
  if (layered) return extent.height == 0 ? TextureShape::LineLayers : TextureShape::PlaneLayers;
  return extent.depth != 0    ? TextureShape::Volume
         : extent.height != 0 ? TextureShape::Plane
                              : TextureShape::Line;
}

std::int64_t at_least_1(std::size_t size) {
  return static_cast<std::int64_t>(std::max<std::size_t>(1, size));
}

cudaError_t allocate_array(const char* call, Place place, cudaArray_t* array,
                           const cudaChannelFormatDesc& channels, const cudaExtent& extent,
                           unsigned flags) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  Array made = {{}, channels, extent, flags};
  auto& texels = made.texels;
  if (const auto wrong = set_channels(texels, channels); !wrong.empty()) {
    return session.mistake(cudaErrorInvalidChannelDescriptor, call, place, wrong);
  }
  texels.shape = shape_of(extent, flags);
  texels.size = {at_least_1(extent.width), at_least_1(extent.height), at_least_1(extent.depth)};
  const bool is_cube =
      texels.shape == TextureShape::Cube || texels.shape == TextureShape::CubeLayers;
  if (extent.width == 0 || (is_cube && (extent.width != extent.height || extent.depth % 6 != 0))) {
    return session.mistake(
        cudaErrorInvalidValue, call, place,
        is_cube ? "a cube map has square faces, and 6 of them in each layer" : "the width is 0");
  }
  texels.row_bytes = extent.width * texels.texel_bytes();
  texels.slice_bytes = texels.row_bytes * static_cast<std::size_t>(texels.size[1]);
  void* memory = nullptr;
  const auto error =
      allocate(call, place, MemoryKind::Device, &memory,
               texels.slice_bytes * static_cast<std::size_t>(texels.size[2]), texels.texel_bytes());
  if (error != cudaSuccess) return error;
  texels.data = static_cast<std::byte*>(memory);
  texels.name = session.heap.find(memory)->name;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a name
  *array = reinterpret_cast<cudaArray_t>(session.new_handle());
  session.arrays[*array] = std::move(made);
  return cudaSuccess;
}

/// A part of an array: rows of bytes from byte `x_bytes` of row `y` on.
struct ArrayPart {
  cudaArray_const_t array;
  std::size_t x_bytes, y, width, height;
};

/// Copies rows between memory and a part of an array.
cudaError_t copy_with_array(const char* call, Place place, const ArrayPart& part, bool to_array,
                            Rows memory, cudaMemcpyKind kind) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto* found = array_of(call, place, part.array);
  if (found == nullptr) return session.last_error;
  const auto& texels = found->texels;
  if (part.x_bytes + part.width > texels.row_bytes ||
      part.y + part.height > static_cast<std::size_t>(texels.size[1])) {
    return session.mistake(
        cudaErrorInvalidValue, call, place,
        fmt::format("{} rows of {} bytes from row {}, byte {} on are copied, and {} has {} rows of "
                    "{}",
                    part.height, part.width, part.y, part.x_bytes, texels.name, texels.size[1],
                    texels.row_bytes));
  }
  const Rows rows = {texels.data + part.y * texels.row_bytes + part.x_bytes, texels.row_bytes, 0};
  const cudaExtent extent = {part.width, part.height, 1};
  return to_array ? copy_box(call, place, rows, memory, extent, kind)
                  : copy_box(call, place, memory, rows, extent, kind);
}

/// One side of a cudaMemcpy3D: its first byte and its pitches. `element`: bytes of an array's
/// texel, in which both positions and the width of the copy are counted. nullopt: a mistake was
/// noted.
struct BoxSide {
  cudaArray_t array;
  cudaPos position;
  cudaPitchedPtr memory;
  const char* side;
};
std::optional<Rows> rows_of(const char* call, Place place, const BoxSide& of, cudaExtent extent) {
  auto& session = Session::current();
  const auto& at = of.position;
  if (of.array == nullptr) {
    const auto slice = of.memory.pitch * of.memory.ysize;
    if (extent.depth > 1 && of.memory.ysize < at.y + extent.height) {
      session.mistake(cudaErrorInvalidValue, call, place,
                      fmt::format("{} has {} rows in a slice, and row {} is copied", of.side,
                                  of.memory.ysize, at.y + extent.height - 1));
      return std::nullopt;
    }
    return Rows{
        static_cast<std::byte*>(of.memory.ptr) + at.z * slice + at.y * of.memory.pitch + at.x,
        of.memory.pitch, slice};
  }
  const auto* found = array_of(call, place, of.array);
  if (found == nullptr) return std::nullopt;
  const auto& texels = found->texels;
  const auto fits = [&](std::size_t axis, std::size_t from, std::size_t count) {
    return from + count <= static_cast<std::size_t>(texels.size[axis]);
  };
  if (!fits(0, at.x, extent.width) || !fits(1, at.y, extent.height) ||
      !fits(2, at.z, extent.depth)) {
    session.mistake(cudaErrorInvalidValue, call, place,
                    fmt::format("{} x {} x {} texels from ({}, {}, {}) on are copied, and {} has "
                                "{} x {} x {}",
                                extent.width, extent.height, extent.depth, at.x, at.y, at.z,
                                texels.name, texels.size[0], texels.size[1], texels.size[2]));
    return std::nullopt;
  }
  return Rows{texels.texel(static_cast<std::int64_t>(at.x), static_cast<std::int64_t>(at.y),
                           static_cast<std::int64_t>(at.z)),
              texels.row_bytes, texels.slice_bytes};
}

}  // namespace

cudaError_t copy_3d(const char* call, Place place, const cudaMemcpy3DParms& copy) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto extent = copy.extent;
  const auto from =
      rows_of(call, place, {copy.srcArray, copy.srcPos, copy.srcPtr, "the source"}, extent);
  if (!from) return session.last_error;
  const auto to =
      rows_of(call, place, {copy.dstArray, copy.dstPos, copy.dstPtr, "the destination"}, extent);
  if (!to) return session.last_error;
  const auto* array = copy.dstArray != nullptr ? copy.dstArray : copy.srcArray;
  const auto element = array == nullptr ? 1 : session.arrays.at(array).texels.texel_bytes();
  return copy_box(call, place, *to, *from, {extent.width * element, extent.height, extent.depth},
                  copy.kind);
}

const Array* array_of(const char* call, Place place, cudaArray_const_t array) {
  auto& session = Session::current();
  const auto found = session.arrays.find(array);
  if (found != session.arrays.end()) return &found->second;
  session.mistake(cudaErrorInvalidResourceHandle, call, place,
                  "the array was not allocated, or was freed");
  return nullptr;
}

std::string set_channels(TexelArray& texels, const cudaChannelFormatDesc& channels) {
  const std::array<int, 4> bits = {channels.x, channels.y, channels.z, channels.w};
  texels.channels = static_cast<unsigned>(std::ranges::find(bits, 0) - bits.begin());
  const auto first = bits[0];
  const bool are_equal = std::ranges::all_of(bits, [&](int b) { return b == 0 || b == first; });
  const bool is_known = first == 8 || first == 16 || first == 32;
  const bool is_float = channels.f == cudaChannelFormatKindFloat;
  if (!are_equal || !is_known || texels.channels == 3 || (is_float && first == 8)) {
    return fmt::format(
        "channels of {}, {}, {} and {} bits; a texel has 1, 2 or 4 channels of 8, 16 or 32 bits "
        "each, and floats have 16 or 32",
        channels.x, channels.y, channels.z, channels.w);
  }
  texels.channel_bytes = static_cast<unsigned>(first) / 8;
  texels.kind = is_float                                    ? plain::ChannelKind::Float
                : channels.f == cudaChannelFormatKindSigned ? plain::ChannelKind::Signed
                                                            : plain::ChannelKind::Unsigned;
  return {};
}

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
cudaError_t cudaMallocArray(Place place, cudaArray_t* array, const cudaChannelFormatDesc* channels,
                            size_t width, size_t height, unsigned flags) {
  return allocate_array("cudaMallocArray", place, array, *channels, {width, height, 0}, flags);
}
cudaError_t cudaMalloc3DArray(Place place, cudaArray_t* array,
                              const cudaChannelFormatDesc* channels, cudaExtent extent,
                              unsigned flags) {
  return allocate_array("cudaMalloc3DArray", place, array, *channels, extent, flags);
}
cudaError_t cudaFreeArray(Place place, cudaArray_t array) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (array == nullptr) return cudaSuccess;
  const auto* found = array_of("cudaFreeArray", place, array);
  if (found == nullptr) return session.last_error;
  session.heap.free(*session.heap.find(found->texels.data), session.text_of(place));
  session.arrays.erase(array);
  return cudaSuccess;
}
cudaError_t cudaGetChannelDesc(Place place, cudaChannelFormatDesc* channels,
                               cudaArray_const_t array) {
  return cudaArrayGetInfo(place, channels, nullptr, nullptr, const_cast<cudaArray_t>(array));
}
cudaError_t cudaArrayGetInfo(Place place, cudaChannelFormatDesc* channels, cudaExtent* extent,
                             unsigned* flags, cudaArray_t array) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto* found = array_of("cudaArrayGetInfo", place, array);
  if (found == nullptr) return session.last_error;
  if (channels != nullptr) *channels = found->channels;
  if (extent != nullptr) *extent = found->extent;
  if (flags != nullptr) *flags = found->flags;
  return cudaSuccess;
}

// NOLINTBEGIN(readability-function-size): CUDA's own parameters and the place of the call.
cudaError_t cudaMemcpy2DToArray(Place place, cudaArray_t array, size_t x_bytes, size_t y,
                                const void* from, size_t pitch, size_t width, size_t height,
                                cudaMemcpyKind kind) {
  return copy_with_array("cudaMemcpy2DToArray", place, {array, x_bytes, y, width, height}, true,
                         {const_cast<void*>(from), pitch, 0}, kind);
}
cudaError_t cudaMemcpy2DToArrayAsync(Place place, cudaArray_t array, size_t x_bytes, size_t y,
                                     const void* from, size_t pitch, size_t width, size_t height,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
  constexpr auto kCall = "cudaMemcpy2DToArrayAsync";
  const auto copy = [=] {
    return copy_with_array(kCall, place, {array, x_bytes, y, width, height}, true,
                           {const_cast<void*>(from), pitch, 0}, kind);
  };
  return submit(kCall, place, stream, {.type = cudaGraphNodeTypeMemcpy, .run = copy});
}
cudaError_t cudaMemcpy2DFromArray(Place place, void* to, size_t pitch, cudaArray_const_t array,
                                  size_t x_bytes, size_t y, size_t width, size_t height,
                                  cudaMemcpyKind kind) {
  return copy_with_array("cudaMemcpy2DFromArray", place, {array, x_bytes, y, width, height}, false,
                         {to, pitch, 0}, kind);
}
// NOLINTEND(readability-function-size)
cudaError_t cudaMemcpyToArray(Place place, cudaArray_t array, size_t x_bytes, size_t y,
                              const void* from, size_t bytes, cudaMemcpyKind kind) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto* found = array_of("cudaMemcpyToArray", place, array);
  if (found == nullptr) return session.last_error;
  return copy("cudaMemcpyToArray", place,
              found->texels.data + y * found->texels.row_bytes + x_bytes, from, bytes, kind);
}
cudaError_t cudaMemcpyFromArray(Place place, void* to, cudaArray_const_t array, size_t x_bytes,
                                size_t y, size_t bytes, cudaMemcpyKind kind) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto* found = array_of("cudaMemcpyFromArray", place, array);
  if (found == nullptr) return session.last_error;
  return copy("cudaMemcpyFromArray", place, to,
              found->texels.data + y * found->texels.row_bytes + x_bytes, bytes, kind);
}

cudaError_t cudaMalloc3D(Place place, cudaPitchedPtr* memory, cudaExtent extent) {
  const auto pitch = (extent.width + kPitch - 1) / kPitch * kPitch;
  *memory = {nullptr, pitch, extent.width, extent.height};
  return allocate("cudaMalloc3D", place, MemoryKind::Device, &memory->ptr,
                  pitch * extent.height * extent.depth, 0);
}
cudaError_t cudaMemset3D(Place place, cudaPitchedPtr memory, int value, cudaExtent extent) {
  for (std::size_t row = 0; row < extent.height * extent.depth; ++row) {
    const auto line = row / extent.height * memory.ysize + row % extent.height;
    const auto error =
        set("cudaMemset3D", place, static_cast<std::byte*>(memory.ptr) + line * memory.pitch, value,
            extent.width);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpy3D(Place place, const cudaMemcpy3DParms* parameters) {
  return copy_3d("cudaMemcpy3D", place, *parameters);
}
cudaError_t cudaMemcpy3DAsync(Place place, const cudaMemcpy3DParms* parameters,
                              cudaStream_t stream) {
  const auto copy = [place, of = *parameters] { return copy_3d("cudaMemcpy3DAsync", place, of); };
  return submit("cudaMemcpy3DAsync", place, stream, {.type = cudaGraphNodeTypeMemcpy, .run = copy});
}
// NOLINTEND(readability-identifier-naming)

}  // namespace triptych::cuda::program::calls
