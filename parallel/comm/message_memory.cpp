// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/message_memory.h"

#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "parallel/comm/sum.h"
#include "parallel/comm/sum_element.h"

namespace triptych::parallel {
namespace {

class HostMessageBuffer : public MessageBuffer {
 public:
  explicit HostMessageBuffer(std::size_t bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes() override { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class HostMemory : public MessageMemory {
 public:
  bool on_host() const override { return true; }
  std::unique_ptr<MessageBuffer> allocate(std::size_t bytes) override {
    return std::make_unique<HostMessageBuffer>(bytes);
  }
  void copy(std::span<std::byte> target, std::span<const std::byte> source) override {
    TRIPTYCH_ASSERT(target.size() == source.size());
    if (!target.empty()) std::memmove(target.data(), source.data(), target.size());
  }
  void add(std::span<std::byte> target, std::span<const std::byte> source, DType dtype) override {
    add_to(target, source, dtype);
  }
  void scale(std::span<std::byte> target, float factor) override {
    auto* elements = reinterpret_cast<float*>(target.data());
    for (std::size_t i = 0; i < target.size() / sizeof(float); ++i) {
      elements[i] = plain_product(elements[i], factor);
    }
  }
  void write(std::span<std::byte> target, std::span<const std::byte> host_source) override {
    copy(target, host_source);
  }
  void read(std::span<std::byte> host_target, std::span<const std::byte> source) override {
    copy(host_target, source);
  }
};

}  // namespace

MessageMemory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace triptych::parallel
