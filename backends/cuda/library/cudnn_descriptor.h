// cuDNN's backend descriptors (handles with attributes) as values that free themselves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/library/cudnn_calls.h"

namespace triptych::cuda::cudnn {

/// Throws UnsupportedError where cuDNN reports that it does not support the request, otherwise
/// DeviceError, with the action and cuDNN's own text.
void check(cudnnStatus_t status, const char* doing);

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check(calls().create_descriptor(type, &raw_), "making a descriptor");
  }
  ~Descriptor() {
    if (raw_ != nullptr) calls().destroy_descriptor(raw_);
  }
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  cudnnBackendDescriptor_t get() const { return raw_; }

  template <class T>
  void set_list(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                std::span<const T> values) {
    check(calls().set_attribute(raw_, name, type, static_cast<std::int64_t>(values.size()),
                                values.data()),
          "setting an attribute");
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set_list(name, type, std::span<const T>(&value, 1));
  }
  void set(cudnnBackendAttributeName_t name, std::int64_t value) {
    set(name, CUDNN_TYPE_INT64, value);
  }
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    set_list(name, CUDNN_TYPE_INT64, values);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.raw_);
  }
  /// A zero marks its end and is part of the attribute.
  void set(cudnnBackendAttributeName_t name, const std::string& text) {
    set_list(name, CUDNN_TYPE_CHAR, std::span(text.c_str(), text.size() + 1));
  }

  /// The values of an attribute that is a list.
  template <class T>
  std::vector<T> get_list(cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type) const {
    std::int64_t count = 0;
    check(calls().get_attribute(raw_, name, type, 0, &count, nullptr), "counting an attribute");
    std::vector<T> values(static_cast<std::size_t>(count));
    if (count == 0) return values;
    check(calls().get_attribute(raw_, name, type, count, &count, values.data()),
          "reading an attribute");
    values.resize(static_cast<std::size_t>(count));
    return values;
  }
  std::int64_t get_int(cudnnBackendAttributeName_t name) const {
    std::int64_t value = 0, count = 0;
    check(calls().get_attribute(raw_, name, CUDNN_TYPE_INT64, 1, &count, &value),
          "reading an attribute");
    return value;
  }
  std::string get_text(cudnnBackendAttributeName_t name) const {
    const auto text = get_list<char>(name, CUDNN_TYPE_CHAR);
    return {text.begin(), std::find(text.begin(), text.end(), '\0')};
  }
  /// Fills `into`, made by the caller, with the descriptor that is an attribute.
  void get(cudnnBackendAttributeName_t name, Descriptor& into) const {
    std::int64_t count = 0;
    check(calls().get_attribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &into.raw_),
          "reading a descriptor");
  }

  void finalize(const char* doing) { check(calls().finalize(raw_), doing); }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

}  // namespace triptych::cuda::cudnn
