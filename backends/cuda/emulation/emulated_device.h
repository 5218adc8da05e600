// The device of the backend cuda-emulated: kernels of the GPU, run by this processor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/emulation/grid.h"
#include "backends/host/host_device.h"

namespace triptych::cuda::emulation {

class EmulatedDevice : public HostDevice {
 public:
  /// Option "emulation": "plain" (default), "counted", "checked", or "lessons", checked and with
  /// the kernels of lessons/ alone. Throws InvalidArgument for others, and
  /// UnsupportedError for all but plain in a build without the part "counted".
  explicit EmulatedDevice(const DeviceOptions& options);

  const DeviceInfo& info() const override { return info_; }
  KernelTable own_kernels() const override { return kernels_; }
  /// Empty in plain mode.
  const KernelCounterTable& kernel_counters() const override { return stream_.counters(); }
  /// Choices that a GPU leaves open, for the launches from now on: the bits do not depend on them.
  void follow(const Schedule& schedule) { stream_.follow(schedule); }
  /// Reports every request to `watcher`, until another one replaces it. Not in plain mode.
  void tell(RequestWatcher* watcher) { stream_.tell(watcher); }

 protected:
  Stream* stream() override { return &stream_; }

 private:
  DeviceInfo info_;
  EmulatedStream stream_;
  KernelTable kernels_;
};

/// As it would be opened with so many threads.
DeviceInfo describe_emulated(int threads, Mode mode);

}  // namespace triptych::cuda::emulation
