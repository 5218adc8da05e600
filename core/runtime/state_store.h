// The memory of a graph's states on one device, by name. Several executors on one device may share
// a store: training and evaluation of one model then see the same parameters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/device.h"

namespace triptych {

class StateStore {
 public:
  explicit StateStore(Device& device) : device_(device) {}

  /// The memory of `name`, allocated and set to `initial` on first use. Throws InvalidArgument when
  /// it exists with another spec.
  std::byte* require(const std::string& name, const Tensor& initial);
  bool contains(std::string_view name) const;
  /// A host copy. Throws InvalidArgument for an unknown name.
  Tensor read(std::string_view name) const;
  /// Throws InvalidArgument for an unknown name or another spec.
  void write(std::string_view name, const Tensor& value);
  /// Names in ascending order.
  std::vector<std::string> names() const;
  std::size_t bytes() const;
  Device& device() const { return device_; }

 private:
  struct Entry {
    TensorSpec spec;
    std::unique_ptr<DeviceBuffer> memory;
  };
  const Entry& entry(std::string_view name) const;

  Device& device_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace triptych
