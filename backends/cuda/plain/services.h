// Services that a library of plain CUDA kernels asks of the program: one table, which the
// program hands over when it opens the library. Compiled into both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/emulation/language.h"

namespace triptych::cuda::plain {

/// Grows when Services, KernelEntry or their meaning changes.
inline constexpr unsigned kServicesVersion = 8;

/// How a kernel touches memory.
enum class Touch : std::uint8_t {
  Load,
  Store,
  VolatileLoad,
  VolatileStore,
  Atomic,
  AtomicRead,   ///< an atomic operation that may write nothing
  AtomicWrite,  ///< and the part of it that writes, directly behind it
};

/// Indices of the running thread.
struct Indices {
  emulation::Dim3 thread, block, block_dim, grid_dim;
};

/// One number of Indices: the order is x, y and z of each.
inline constexpr unsigned kThreadIndex = 0, kBlockIndex = 3, kBlockSize = 6, kGridSize = 9;

/// Shapes of textures and surfaces. Elements: an array in linear memory.
enum class TextureShape : std::uint8_t {
  Elements,
  Line,
  Plane,
  Volume,
  LineLayers,
  PlaneLayers,
  Cube,
  CubeLayers
};
enum class ChannelValue : std::uint8_t { Integer, Float };

/// A read of a texture, and the values that the program expects.
struct TextureRead {
  std::uint64_t object = 0;
  TextureShape shape = TextureShape::Plane;
  ChannelValue kind = ChannelValue::Float;
  unsigned channels = 1;
  std::int64_t layer = 0;  ///< or the index of an element
  float at[3] = {};
};

enum class SurfaceBoundary : std::uint8_t { Zero, Clamp, Trap };

/// An access to a surface: x counts bytes.
struct SurfaceAccess {
  std::uint64_t object = 0;
  TextureShape shape = TextureShape::Plane;
  SurfaceBoundary boundary = SurfaceBoundary::Trap;
  std::size_t bytes = 4;
  std::int64_t x = 0, y = 0, slice = 0;
};

/// A copy of cp.async. Bytes behind those that it takes become zero.
struct LateCopy {
  std::byte* to = nullptr;
  const void* from = nullptr;
  unsigned bytes = 0, taken = 0;
  emulation::Location where;
};

struct Services {
  /// An access of at most 16 bytes, before it happens, by the call that returns to `pc`. Ends the
  /// thread where it must not happen.
  void (*touch)(Touch, const void* address, std::size_t bytes, const void* pc);
  /// The same of a function that knows its place.
  void (*touch_at)(Touch, const void* address, std::size_t bytes, const emulation::Location&);
  /// The same for one as wide as a type, with the alignment that the program looks up: at most
  /// `most` bytes.
  void (*touch_pieces)(Touch, const void* address, std::size_t bytes, std::size_t most,
                       const void* pc);
  /// A piece of straight code begins at `pc`, in a function with this frame that `caller` called.
  void (*pass)(const void* pc, const void* frame, const void* caller);
  /// A line of source begins at `pc`, in a function with this frame and stack pointer that `caller`
  /// called. Only of libraries for the debugger.
  void (*line)(const void* pc, const void* frame, const void* stack, const void* caller);
  /// A volatile or atomic read by code that is not watched, which may wait for another thread.
  void (*poll)(const void* address, const void* pc);
  /// An index beyond an array's bounds.
  void (*beyond)(const void* pc, const char* array, std::int64_t index);
  void (*fail)(const char* what, const emulation::Location&);
  /// A call that returns to `pc` of a function that kernels do not support. Does not come back.
  void (*refuse)(const char* what, const void* pc);
  void (*barrier)(const emulation::Location&);
  void (*grid_barrier)(const emulation::Location&);
  /// True for a cooperative launch.
  bool (*is_cooperative)();
  /// Memory for a kernel, by the call that returns to `pc`. nullptr: there is none left.
  void* (*allocate)(std::size_t bytes, const void* pc);
  void (*release)(void* memory, const void* pc);
  /// Copies of the running thread, in groups. They happen when it waits: for all groups but the
  /// last `pending` ones.
  void (*copy_late)(const LateCopy&);
  void (*commit_copies)();
  void (*await_copies)(unsigned pending);
  bool (*exchange)(std::uint32_t mask, std::uint64_t value, const emulation::Location&,
                   emulation::WarpWork);
  std::uint64_t (*exchanged)(std::uint32_t mask, unsigned lane, const emulation::Location&);
  unsigned (*lane_index)();
  Indices (*indices)();
  std::uint32_t (*index)(unsigned which);
  void (*fence)(const emulation::Location&, bool for_all_blocks);
  /// Four channels of a texture, as bits of floats or as integers.
  void (*read_texture)(const TextureRead&, std::uint32_t* channels, const emulation::Location&);
  /// Where the bytes of an access to a surface are. nullptr: outside.
  void* (*find_in_surface)(const SurfaceAccess&, const emulation::Location&);
};

enum class ParameterKind : std::uint8_t { Pointer, Bool, Signed, Unsigned, Floating, Other };

struct Parameter {
  const char* type;  ///< as C++ writes it
  ParameterKind kind;
  std::uint32_t bytes;  ///< of a value
  // Properties of the values that a pointer points to.
  ParameterKind element;
  std::uint32_t element_bytes;  ///< of one number: of a float4 those of a float
  std::uint32_t pointee_bytes;
  bool is_const;
};

struct KernelEntry {
  const char* name;
  const Parameter* parameters;
  unsigned count;
  /// Calls the kernel for the running thread. arguments[i] points at the value of parameter i.
  void (*call)(void* const* arguments);
};

}  // namespace triptych::cuda::plain
