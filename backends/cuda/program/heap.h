// Memory that a program asked CUDA for. Memory of the GPU is closed to the host's code, and memory
// of both is closed while a kernel may still be writing it, so that a wrong access is noticed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/plain/launch.h"

namespace triptych::cuda::program {

/// Registered: the host's own memory, which stays open to its code.
enum class MemoryKind : std::uint8_t { Device, Managed, Pinned, Registered };

struct Allocation {
  MemoryKind kind = MemoryKind::Device;
  int device = 0;                             ///< the GPU that was current
  bool is_of_pool = false;                    ///< of cudaMallocAsync
  std::optional<plain::DeviceMemory> memory;  ///< of its own
  std::span<std::byte> range;
  std::size_t element_bytes = 0;  ///< 0: not known
  std::string name;               ///< "the array of cudaMalloc (my.cu:12)"
  plain::ArrayContent content;
  std::atomic<bool> is_stored = false;  ///< by a kernel since the host waited
  bool is_closed = false;
  std::string writer;        ///< the kernel for which it is closed
  std::string gone;          ///< "was freed at my.cu:12". Empty: it is in use
  bool is_of_graph = false;  ///< its address stays reserved, for the next launch of the graph

  Allocation(MemoryKind of, std::size_t bytes, std::size_t element, std::string called);
  Allocation(MemoryKind of, std::span<std::byte> elsewhere, std::string called);
  std::byte* data() const { return range.data(); }
  std::size_t bytes() const { return range.size(); }
  bool contains(std::uintptr_t address) const {
    return address - reinterpret_cast<std::uintptr_t>(data()) < bytes();
  }
  void open();
  void close();
};

/// True for memory that a kernel may use.
using Reach = std::function<bool(const Allocation&)>;

class Heap {
 public:
  /// For a GPU. Throws std::bad_alloc.
  Allocation& allocate(MemoryKind kind, std::size_t bytes, std::size_t element, std::string name,
                       int device);
  /// Memory of a graph, which its launch allocates.
  Allocation& reserve(std::size_t bytes, std::size_t element, std::string name);
  /// Allocates reserved memory. False: it is in use.
  bool revive(Allocation& allocation);
  /// Keeps the addresses for a while, so that later uses are noticed. Those of a graph stay.
  void free(Allocation& allocation, const std::string& place);
  void add_registered(std::span<std::byte> range, std::string name);
  /// Memory of the GPU at addresses that were reserved for it.
  void add_mapped(std::span<std::byte> range, std::string name);
  void remove_registered(const Allocation& allocation);

  /// The allocation with this address, in use, freed or reserved. nullptr: none.
  Allocation* find(const void* address) const;
  /// True for an address that an index that is wrong may lead to.
  bool is_near(std::uintptr_t address) const;
  /// Bytes in use on a GPU.
  std::size_t used_bytes(int device) const;

  /// Arrays that a kernel may use.
  std::vector<plain::DeviceArray> arrays(const Reach& reach) const;
  /// Opens them.
  void begin_kernel(const Reach& reach);
  /// Closes memory that the host may not use until it has waited.
  void end_kernel(const std::string& kernel);
  /// The host has waited for the GPU.
  void synchronise();

 private:
  std::vector<std::unique_ptr<Allocation>> used_, freed_, reserved_;
  std::map<int, std::size_t> used_bytes_;  ///< by GPU
};

}  // namespace triptych::cuda::program
