// The driver API: addresses that are reserved, memory that is created, and the mapping between
// them. A reservation is never given back, so that uses of old addresses are noticed.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "backends/cuda/program/driver.h"

namespace triptych::cuda::program::calls {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

/// The reservation that holds the whole range. nullptr, with a finding: none.
Reservation* reservation_of(const char* call, Place place, CUdeviceptr pointer, std::size_t bytes) {
  auto& all = Driver::current().reservations;
  const auto next = all.upper_bound(pointer);
  if (next != all.begin()) {
    auto& [begin, found] = *std::prev(next);
    if (bytes <= found.bytes && pointer - begin <= found.bytes - bytes) return &found;
  }
  mistake(CUDA_ERROR_INVALID_VALUE, call, place,
          fmt::format("the {} bytes are no part of one range of cuMemAddressReserve", bytes));
  return nullptr;
}

/// The memory. nullptr, with a finding: none.
PhysicalMemory* memory_of(const char* call, Place place, CUmemGenericAllocationHandle handle) {
  auto& all = Driver::current().physical;
  const auto found = all.find(handle);
  if (found != all.end() && !found->second.is_released) return &found->second;
  mistake(CUDA_ERROR_INVALID_HANDLE, call, place,
          "the memory was not created with cuMemCreate, or was released");
  return nullptr;
}

CUresult check_size(const char* call, Place place, std::size_t bytes) {
  if (bytes != 0 && bytes % kGranularity == 0) return CUDA_SUCCESS;
  return mistake(CUDA_ERROR_INVALID_VALUE, call, place,
                 fmt::format("{} bytes; a size is a multiple of {} "
                             "(cuMemGetAllocationGranularity)",
                             bytes, kGranularity));
}

CUresult refuse_sharing(const char* call, Place place) {
  return mistake(CUDA_ERROR_NOT_SUPPORTED, call, place,
                 "memory that processes share is not emulated");
}

void unmap(Reservation& reservation, CUdeviceptr at, const std::string& where) {
  auto& session = Session::current();
  auto& memory = Driver::current().physical[reservation.mapped.at(at)];
  auto* allocation = session.heap.find(pointer_of(at));
  if (allocation != nullptr && allocation->gone.empty()) session.heap.free(*allocation, where);
  memory.address = 0;
  reservation.mapped.erase(at);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
CUresult cuMemGetAllocationGranularity(Place, size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(Place place, CUdeviceptr* pointer, size_t bytes, size_t, CUdeviceptr,
                             unsigned long long) {
  constexpr auto kCall = "cuMemAddressReserve";
  const DriverCall scope(kCall);
  if (const auto missing = require_context(kCall, place)) return missing;
  if (const auto wrong = check_size(kCall, place, bytes)) return wrong;
  void* range = mmap(nullptr, bytes + kGranularity, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    return mistake(CUDA_ERROR_OUT_OF_MEMORY, kCall, place,
                   fmt::format("this computer does not have {} bytes of addresses", bytes));
  }
  *pointer = (address_of(range) + kGranularity - 1) / kGranularity * kGranularity;
  Driver::current().reservations[*pointer].bytes = bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(Place place, CUdeviceptr pointer, size_t bytes) {
  constexpr auto kCall = "cuMemAddressFree";
  const DriverCall scope(kCall);
  auto& all = Driver::current().reservations;
  const auto found = all.find(pointer);
  if (found == all.end() || found->second.bytes != bytes) {
    return mistake(CUDA_ERROR_INVALID_VALUE, kCall, place,
                   "no cuMemAddressReserve gave a range with this address and size");
  }
  if (!found->second.mapped.empty()) {
    return mistake(CUDA_ERROR_INVALID_VALUE, kCall, place,
                   "memory is still mapped there; call cuMemUnmap first");
  }
  all.erase(found);
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(Place place, CUmemGenericAllocationHandle* memory, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long) {
  constexpr auto kCall = "cuMemCreate";
  const DriverCall scope(kCall);
  if (const auto missing = require_context(kCall, place)) return missing;
  if (const auto wrong = check_size(kCall, place, bytes)) return wrong;
  if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return refuse_sharing(kCall, place);
  }
  auto& session = Session::current();
  const auto most = session.options.gpu->memory_bytes;
  if (bytes > most || session.heap.used_bytes(Devices::current()) > most - bytes) {
    return mistake(CUDA_ERROR_OUT_OF_MEMORY, kCall, place,
                   fmt::format("{} bytes; {} of the GPU's {} are in use", bytes,
                               session.heap.used_bytes(Devices::current()), most));
  }
  *memory = session.new_handle();
  auto& made = Driver::current().physical[*memory];
  made = {bytes, *properties, fmt::format("cuMemCreate ({})", session.text_of(place)), false, 0};
  // Compression changes no value. Where the GPU has none, it gives other memory.
  if (properties_of(*session.options.gpu).major < 8) {
    made.properties.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE;
  }
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(Place place, CUmemGenericAllocationHandle memory) {
  const DriverCall scope("cuMemRelease");
  auto* found = memory_of("cuMemRelease", place, memory);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  found->is_released = true;
  return CUDA_SUCCESS;
}
CUresult cuMemGetAllocationPropertiesFromHandle(Place place, CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle memory) {
  const DriverCall scope("cuMemGetAllocationPropertiesFromHandle");
  const auto* found = memory_of("cuMemGetAllocationPropertiesFromHandle", place, memory);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *properties = found->properties;
  return CUDA_SUCCESS;
}
CUresult cuMemMap(Place place, CUdeviceptr pointer, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle memory, unsigned long long) {
  constexpr auto kCall = "cuMemMap";
  const DriverCall scope(kCall);
  auto* reservation = reservation_of(kCall, place, pointer, bytes);
  if (reservation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* found = memory_of(kCall, place, memory);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (offset != 0 || bytes != found->bytes) {
    return mistake(CUDA_ERROR_INVALID_VALUE, kCall, place,
                   fmt::format("only the whole memory of {}, {} bytes from offset 0 on, can be "
                               "mapped",
                               found->made, found->bytes));
  }
  if (found->address != 0) {
    return mistake(CUDA_ERROR_NOT_SUPPORTED, kCall, place,
                   fmt::format("the memory of {} is mapped at another address; one at a time is "
                               "emulated",
                               found->made));
  }
  const auto& mapped = reservation->mapped;
  const bool overlaps = std::ranges::any_of(mapped, [&](const auto& each) {
    const auto other = Driver::current().physical[each.second].bytes;
    return each.first < pointer + bytes && pointer < each.first + other;
  });
  if (overlaps) {
    return mistake(CUDA_ERROR_ALREADY_MAPPED, kCall, place, "memory is mapped at these addresses");
  }
  reservation->mapped[pointer] = memory;
  found->address = pointer;
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(Place place, CUdeviceptr pointer, size_t bytes,
                        const CUmemAccessDesc* access, size_t count) {
  constexpr auto kCall = "cuMemSetAccess";
  const DriverCall scope(kCall);
  auto& session = Session::current();
  auto* reservation = reservation_of(kCall, place, pointer, bytes);
  if (reservation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool may_write = std::all_of(access, access + count, [](const CUmemAccessDesc& each) {
    return each.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  });
  if (!may_write || count == 0) {
    return mistake(CUDA_ERROR_NOT_SUPPORTED, kCall, place,
                   "only CU_MEM_ACCESS_FLAGS_PROT_READWRITE is emulated");
  }
  for (auto at = pointer; at < pointer + bytes;) {
    const auto mapped = reservation->mapped.find(at);
    if (mapped == reservation->mapped.end()) {
      return mistake(CUDA_ERROR_INVALID_VALUE, kCall, place,
                     fmt::format("no memory is mapped from byte {} of the range on", at - pointer));
    }
    const auto& memory = Driver::current().physical[mapped->second];
    const auto* allocation = session.heap.find(pointer_of(at));
    if (allocation == nullptr || !allocation->gone.empty()) {
      session.heap.add_mapped({pointer_of<std::byte>(at), memory.bytes},
                              fmt::format("the {}-byte memory of {}", memory.bytes, memory.made));
    }
    at += memory.bytes;
  }
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(Place place, CUdeviceptr pointer, size_t bytes) {
  constexpr auto kCall = "cuMemUnmap";
  const DriverCall scope(kCall);
  auto* reservation = reservation_of(kCall, place, pointer, bytes);
  if (reservation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUdeviceptr> parts;
  for (const auto& [at, memory] : reservation->mapped) {
    const auto end = at + Driver::current().physical[memory].bytes;
    if (pointer <= at && end <= pointer + bytes) parts.push_back(at);
  }
  if (parts.empty()) {
    return mistake(CUDA_ERROR_NOT_MAPPED, kCall, place, "no memory is mapped in this range");
  }
  const auto where = Session::current().text_of(place);
  for (const auto at : parts) unmap(*reservation, at, where);
  return CUDA_SUCCESS;
}
CUresult cuMemExportToShareableHandle(Place place, void*, CUmemGenericAllocationHandle,
                                      CUmemAllocationHandleType, unsigned long long) {
  return refuse_sharing("cuMemExportToShareableHandle", place);
}
CUresult cuMemImportFromShareableHandle(Place place, CUmemGenericAllocationHandle*, void*,
                                        CUmemAllocationHandleType) {
  return refuse_sharing("cuMemImportFromShareableHandle", place);
}
// NOLINTEND(readability-identifier-naming)

}  // namespace triptych::cuda::program::calls
