// The device of the backend cuda-emulated: kernels of the GPU, run by this processor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/emulation/grid.h"
#include "backends/host/host_device.h"

namespace triptych::cuda::emulation {

class EmulatedDevice : public HostDevice {
 public:
  /// Option "emulation": "plain" (default), "counted" or "checked". Throws InvalidArgument for
  /// others, DeviceError where the processor cannot do it.
  explicit EmulatedDevice(const DeviceOptions& options);

  const DeviceInfo& info() const override { return info_; }
  KernelTable kernels() const override;
  /// What the kernels counted, by kernel; empty in plain mode.
  const CounterTable& kernel_counters() const { return stream_.counters(); }

 protected:
  Stream* stream() override { return &stream_; }

 private:
  DeviceInfo info_;
  EmulatedStream stream_;
};

/// As it would be opened with so many threads.
DeviceInfo describe_emulated(int threads, Mode mode);

}  // namespace triptych::cuda::emulation
