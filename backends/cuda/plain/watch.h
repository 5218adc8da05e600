// A launch of a plain kernel as its threads see it: the addresses of its arrays, and the array that
// an address belongs to. It checks every access that the compiler reports before the access
// happens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/emulation/recorder.h"
#include "backends/cuda/plain/array_content.h"
#include "backends/cuda/plain/device_heap.h"
#include "backends/cuda/plain/kernel_library.h"
#include "backends/cuda/plain/textures.h"

namespace triptych::cuda::plain {

/// An array in global memory that a kernel received.
struct DeviceArray {
  std::string name;  ///< for messages: "argument 3 (c.npy)"
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t element_bytes = 1;           ///< 0: not known
  bool is_undefined = false;               ///< reading an element that was not written is a fault
  ArrayContent* content = nullptr;         ///< what earlier launches wrote, if tracked
  std::atomic<bool>* is_stored = nullptr;  ///< set when the kernel stores to it
};

/// Describes an address outside all arrays of the launch, for messages. Empty: nothing is known.
using Explanation = std::function<std::string(std::uintptr_t address)>;

class Watch {
 public:
  /// `dynamic_bytes`: of shared memory, that the launch asks for. `textures` may be nullptr.
  Watch(const KernelLibrary& library, std::span<const DeviceArray> arrays,
        std::size_t dynamic_bytes, Explanation explain = {}, const TextureTable* textures = nullptr,
        DeviceHeap* heap = nullptr);

  /// The calling thread of the processor begins to run a thread of the launch.
  void enter() const;

  /// Fails the running thread where it may not do this. Else counts and checks it.
  void access(Touch how, std::uintptr_t address, std::size_t bytes,
              const emulation::Location& where) const;
  /// The same by an instruction that may have been here before.
  void access(Touch how, std::uintptr_t address, std::size_t bytes,
              const emulation::Location& where, emulation::KnownCode& code) const;
  /// Each texel of the read is a load.
  void read_texture(const TextureRead& read, std::uint32_t* channels,
                    const emulation::Location& where) const;
  /// The bytes of the access, which the caller then loads or stores. nullptr: outside.
  std::byte* find_in_surface(const SurfaceAccess& access, const emulation::Location& where) const;
  /// Memory of the GPU's heap for the running thread, and its return.
  void* allocate(std::size_t bytes, const emulation::Location& where) const;
  void release(void* memory, const emulation::Location& where) const;
  /// The array or variable at an address, for messages. Empty: none.
  std::string name(std::uintptr_t address) const;
  const KernelLibrary& library() const { return library_; }
  /// Shared memory that the threads used, as far as its size is fixed, and that of the launch.
  std::size_t shared_bytes_used() const;

 private:
  bool check_shared(Touch how, std::uint64_t offset, std::size_t bytes,
                    const emulation::Location& where) const;
  void access_heap(Touch how, std::uintptr_t address, std::size_t bytes,
                   const emulation::Location& where) const;
  static void out_of_bounds(Touch how, const emulation::Location& where, std::string&& what);
  bool make_readable(std::uintptr_t address, std::size_t bytes) const;
  void touch_elsewhere(Touch how, std::uintptr_t address, std::size_t bytes,
                       const emulation::Location& where) const;
  std::string describe_elsewhere(Touch how, std::uintptr_t address, std::size_t bytes) const;
  void note_content(Touch how, const DeviceArray& array, std::uintptr_t address, std::size_t bytes,
                    const emulation::Location& where) const;
  const DeviceArray* array_at(std::uintptr_t address, std::size_t bytes, std::size_t& last) const;
  const DeviceArray* nearest(std::uintptr_t address) const;

  const KernelLibrary& library_;
  std::span<const DeviceArray> arrays_;
  std::size_t dynamic_bytes_;
  mutable std::vector<std::atomic<bool>> used_;          ///< by shared variable
  std::vector<std::unique_ptr<ArrayContent>> contents_;  ///< of arrays without an own one
  std::vector<ArrayContent*> content_of_;                ///< by array. nullptr: all is written
  Explanation explain_;
  const TextureTable* textures_;
  DeviceHeap* heap_;
};

/// The one that the calling thread of the processor has entered. nullptr: none.
extern constinit thread_local const Watch* current_watch;

/// The table for libraries of kernels: their calls act on the Watch that the calling thread of the
/// processor has entered.
const Services& watch_services();

}  // namespace triptych::cuda::plain
