// The memory of a transport's messages: that of this process, or that of a device, with addresses
// that only the device can use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/tensor/dtype.h"

namespace triptych::parallel {

/// Freed on destruction.
class MessageBuffer {
 public:
  virtual ~MessageBuffer() = default;
  virtual std::span<std::byte> bytes() = 0;
};

/// Memory of one rank's messages. The work of a call is complete when it returns. Throws
/// DeviceError.
class MessageMemory {
 public:
  virtual ~MessageMemory() = default;

  virtual bool on_host() const = 0;
  /// Zeros.
  virtual std::unique_ptr<MessageBuffer> allocate(std::size_t bytes) = 0;
  /// Within this memory, and between it and that of other work on the same device. Spans of equal
  /// size that do not overlap.
  virtual void copy(std::span<std::byte> target, std::span<const std::byte> source) = 0;
  /// target += source, with the bits of add_to.
  virtual void add(std::span<std::byte> target, std::span<const std::byte> source, DType dtype) = 0;
  /// Multiplies f32 elements.
  virtual void scale(std::span<std::byte> target, float factor) = 0;
  virtual void write(std::span<std::byte> target, std::span<const std::byte> host_source) = 0;
  virtual void read(std::span<std::byte> host_target, std::span<const std::byte> source) = 0;
};

MessageMemory& host_memory();

}  // namespace triptych::parallel
