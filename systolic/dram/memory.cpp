// SPDX-License-Identifier: Apache-2.0
#include "systolic/dram/memory.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace triptych::mmu {

Memory::Memory(std::uint64_t bytes) : size_(bytes) {
  void* address = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    throw std::runtime_error(
        fmt::format("[dram] cannot map {} bytes ({}): give the machine less "
                    "dram_bytes",
                    bytes, std::strerror(errno)));
  data_ = static_cast<std::byte*>(address);
}

Memory::~Memory() { munmap(data_, size_); }

}  // namespace triptych::mmu
