// A limit of the memory budget that ends with its scope.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "core/base/memory_budget.h"

namespace triptych::test {

/// Allows `bytes` beyond the memory in use now.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes) : before_(memory_budget().limit()) {
    memory_budget().set_limit(memory_budget().in_use() + bytes);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  ~MemoryLimit() { memory_budget().set_limit(before_); }

 private:
  std::size_t before_;
};

}  // namespace triptych::test
