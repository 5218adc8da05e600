// Memory of a device that computes in the host's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "core/runtime/device.h"
#include "core/tensor/tensor.h"

namespace triptych {

/// Bytes of the host, aligned to kAlignment.
class HostBuffer : public DeviceBuffer {
 public:
  explicit HostBuffer(std::size_t bytes) : bytes_(allocate_aligned(bytes)), size_(bytes) {}
  std::byte* data() override { return bytes_.get(); }
  std::size_t size() const override { return size_; }

 private:
  AlignedBytes bytes_;
  std::size_t size_;
};

}  // namespace triptych
