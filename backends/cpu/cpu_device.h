// One CPU device: it has its own team of threads, which flush subnormals to zero, so that
// every contract computes with the same rule on every thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/host/host_device.h"

namespace triptych::cpu {

class CpuDevice : public HostDevice {
 public:
  /// Throws InvalidArgument for options that the CPU does not have.
  explicit CpuDevice(const DeviceOptions& options);

  const DeviceInfo& info() const override { return info_; }
  KernelTable own_kernels() const override;
  bool reads_host_memory() const override { return true; }
  double measure_peak(Contract contract) const override;
  std::vector<LevelBandwidth> level_bandwidths() const override;

 private:
  DeviceInfo info_;
};

/// The processor's name in Linux's description.
std::string processor_name(const std::string& description = "/proc/cpuinfo");

/// Name, processor, threads, instruction set and caches of a device with so many threads.
DeviceInfo describe_cpu(int threads);

}  // namespace triptych::cpu
