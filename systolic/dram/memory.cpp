// SPDX-License-Identifier: Apache-2.0
#include "systolic/dram/memory.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace triptych::mmu {
namespace {

#if defined(__wasi__)  // where mapping is allocating
constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
#else
constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#endif

}  // namespace

Memory::Memory(std::uint64_t bytes) : size_(bytes) {
  void* address = mmap(nullptr, size_, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (address == MAP_FAILED)
    throw std::runtime_error(
        fmt::format("[dram] cannot map {} bytes ({}): give the machine less "
                    "dram_bytes",
                    bytes, std::strerror(errno)));
  data_ = static_cast<std::byte*>(address);
}

Memory::~Memory() { munmap(data_, size_); }

}  // namespace triptych::mmu
