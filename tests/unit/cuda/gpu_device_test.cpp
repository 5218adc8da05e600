// The device of a real GPU on GPUs that are played on the host (fake_cuda.h).
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/gpu_device.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/unit/cuda/fake_cuda/fake_cuda.h"

namespace triptych::cuda::gpu {
namespace {

using Bytes = std::array<std::byte, 4>;
constexpr Bytes kClear = {}, kMarked = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};

Bytes read(GpuDevice& device, DeviceBuffer& buffer) {
  Bytes bytes;
  device.download(bytes.data(), buffer.data(), bytes.size());
  return bytes;
}

TEST(GpuDevice, memory_is_clear_for_a_stream_of_somebody_else) {
  GpuDevice device({});
  const auto buffer = device.allocate(kClear.size());
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  Bytes seen = kMarked;
  fake_cuda::launch(stream, [&] { std::copy_n(buffer->data(), seen.size(), seen.data()); });
  cudaStreamSynchronize(stream);
  EXPECT_EQ(seen, kClear);
  cudaStreamDestroy(stream);
}

TEST(GpuDevice, what_is_uploaded_is_not_cleared_afterwards) {
  GpuDevice device({});
  const auto buffer = device.allocate(kMarked.size());
  device.upload(buffer->data(), kMarked.data(), kMarked.size());
  EXPECT_EQ(read(device, *buffer), kMarked);
}

TEST(GpuDevice, a_segment_runs_plainly_once_and_is_then_replayed) {
  int recorded = 0, ran = 0;
  const int replays = fake_cuda::replays();
  {
    GpuDevice device({});
    const auto enqueue = [&](Stream* stream) {
      ++recorded;
      fake_cuda::launch(static_cast<GpuStream*>(stream)->get(), [&] { ++ran; });
    };
    for (int i = 0; i < 4; ++i) device.submit(7, enqueue);
    device.synchronize();
    EXPECT_EQ(ran, 4);
    EXPECT_EQ(recorded, 2);
    EXPECT_EQ(fake_cuda::replays() - replays, 3);
    device.release(7);
    EXPECT_EQ(fake_cuda::graphs(), 0);
  }
}

TEST(GpuDevice, a_segment_that_fails_while_it_is_recorded_leaves_the_stream_usable) {
  GpuDevice device({});
  bool fails = false;
  const auto enqueue = [&](Stream*) {
    if (fails) throw DeviceError("no launch");
  };
  device.submit(8, enqueue);
  fails = true;
  EXPECT_THROW(device.submit(8, enqueue), DeviceError);
  const auto buffer = device.allocate(kMarked.size());
  device.upload(buffer->data(), kMarked.data(), kMarked.size());
  EXPECT_EQ(read(device, *buffer), kMarked);
  EXPECT_EQ(fake_cuda::graphs(), 0);
}

/// A library's handle: notes the current device when it came, and when it went.
struct Handle {
  explicit Handle(GpuDevice&) : device(fake_cuda::current_device()) {}
  ~Handle() { graphs_at_end = fake_cuda::graphs(); }
  int device;
  static inline int graphs_at_end = -1;
};

TEST(GpuDevice, a_librarys_handle_is_made_on_its_device_and_outlives_what_was_recorded) {
  {
    GpuDevice second({.index = 1});
    const GpuDevice first({.index = 0});
    EXPECT_EQ(second.shared<Handle>().device, 1);
    for (int i = 0; i < 2; ++i) second.submit(9, [](Stream*) {});
    EXPECT_EQ(fake_cuda::graphs(), 1);
  }
  EXPECT_EQ(Handle::graphs_at_end, 0);
}

TEST(GpuDevice, an_error_that_was_told_is_forgotten) {
  fake_cuda::leave_error();
  EXPECT_THROW(check(cudaErrorInvalidValue, "launching a kernel"), DeviceError);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace triptych::cuda::gpu
