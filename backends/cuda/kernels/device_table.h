// Tables that a kernel needs in addition to its operands, in the device's memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/device.h"

namespace triptych::cuda {

template <class T>
std::unique_ptr<DeviceBuffer> copy_to_device(Device& device, const std::vector<T>& values) {
  auto buffer = device.allocate(values.size() * sizeof(T));
  device.upload(buffer->data(), reinterpret_cast<const std::byte*>(values.data()),
                values.size() * sizeof(T));
  return buffer;
}

}  // namespace triptych::cuda
