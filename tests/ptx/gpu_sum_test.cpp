// Sums of messages as nvcc compiled them: the bits of those in a host's memory.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/gpu_sum.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "parallel/comm/message_memory.h"
#include "parallel/comm/sum.h"

namespace triptych::parallel {
namespace {

/// Random bits, which are numbers of every magnitude, infinities and NaNs, and every pair of edges.
struct Operands {
  std::vector<std::uint32_t> a, b;

  Operands() {
    constexpr std::uint32_t kEdges[] = {0x00000000, 0x80000000, 0x00000001, 0x807FFFFF,
                                        0x00800000, 0x80800001, 0x7F800000, 0xFF800000,
                                        0x7F7FFFFF, 0x7FC00000, 0xFFC12345, 0x7F812345};
    for (const auto left : kEdges) {
      for (const auto right : kEdges) {
        a.push_back(left);
        b.push_back(right);
      }
    }
    std::mt19937 random(7);
    for (int i = 0; i < 4096; ++i) {
      a.push_back(static_cast<std::uint32_t>(random()));
      b.push_back(static_cast<std::uint32_t>(random()));
    }
  }
};

std::span<std::byte> bytes_of(std::vector<std::uint32_t>& words) {
  return std::as_writable_bytes(std::span(words));
}

/// `words` in the GPU's memory.
class OnGpu {
 public:
  explicit OnGpu(std::vector<std::uint32_t>& words) : words_(words) {
    cudaMalloc(&memory_, bytes_of(words).size());
    cudaMemcpyAsync(memory_, words.data(), bytes_of(words).size(), cudaMemcpyHostToDevice, nullptr);
  }
  ~OnGpu() { cudaFree(memory_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  std::byte* data() { return static_cast<std::byte*>(memory_); }
  std::vector<std::uint32_t> words() {
    auto read = words_;
    cudaMemcpyAsync(read.data(), memory_, bytes_of(read).size(), cudaMemcpyDeviceToHost, nullptr);
    return read;
  }

 private:
  std::vector<std::uint32_t>& words_;
  void* memory_ = nullptr;
};

TEST(GpuSum, has_the_bits_of_the_host) {
  for (const auto dtype : kAllDTypes) {
    if (dtype == DType::Bool) continue;
    SCOPED_TRACE(to_string(dtype));
    Operands host;
    OnGpu a(host.a), b(host.b);
    const auto bytes = bytes_of(host.a).size();
    ASSERT_EQ(gpu_add(a.data(), b.data(), bytes / dtype_size(dtype), dtype, nullptr), cudaSuccess);
    add_to(bytes_of(host.a), bytes_of(host.b), dtype);
    EXPECT_EQ(a.words(), host.a);
  }
}

TEST(GpuSum, scales_with_the_bits_of_the_host) {
  for (const float factor : {0.25F, 3.0F, -0.0F}) {
    SCOPED_TRACE(factor);
    Operands host;
    OnGpu a(host.a);
    ASSERT_EQ(gpu_scale(a.data(), host.a.size(), factor, nullptr), cudaSuccess);
    host_memory().scale(bytes_of(host.a), factor);
    EXPECT_EQ(a.words(), host.a);
  }
}

}  // namespace
}  // namespace triptych::parallel
