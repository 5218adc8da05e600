// Launches kernels written for a test on an emulated device of its own. Include it where
// TRIPTYCH_COUNTED is defined.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/cuda/emulation/emulated_device.h"
#include "backends/cuda/kernels/platform.h"

namespace triptych::cuda::counted {

struct Bench {
  explicit Bench(const std::string& mode = "counted", int threads = 2)
      : device({.threads = threads, .extra = {{"emulation", mode}}}) {}

  template <class... Parameters, class... Arguments>
  void run(const LaunchShape& shape, void (*kernel)(Parameters...), const Arguments&... arguments) {
    device.submit(0, [&](Stream* stream) { launch(stream, "test", shape, kernel, arguments...); });
  }
  const KernelCounters& counters() { return device.kernel_counters().at("test"); }

  emulation::EmulatedDevice device;
};

template <class T>
struct alignas(128) Array {
  std::vector<T> values;
  explicit Array(std::size_t size, T value = {}) : values(size, value) {}
  Global<T> global() { return {values.data(), static_cast<std::int64_t>(values.size())}; }
};

}  // namespace triptych::cuda::counted
