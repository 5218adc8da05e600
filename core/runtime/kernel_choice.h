// Choice by measurement: where several kernels of a device accept a node, each is timed once for
// its operator, shapes, contract and device, and the fastest is taken from then on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "core/base/text_cache.h"
#include "core/runtime/device.h"

namespace triptych {

/// The kernel that was taken, and why in words for people; empty where there was nothing to choose.
struct KernelChoice {
  const KernelEntry* entry = nullptr;
  std::string reason;
};

/// Chooses among kernels that accept a node; `candidates` are in the table's order, at least one.
class KernelChooser {
 public:
  virtual ~KernelChooser() = default;
  virtual KernelChoice choose(const KernelQuery& query, Device& device,
                              std::span<const KernelEntry* const> candidates) = 0;
};

/// How long a kernel takes.
class KernelStopwatch {
 public:
  virtual ~KernelStopwatch() = default;
  /// Seconds of one run for this node. Throws UnsupportedError when it cannot be prepared.
  virtual double time(const KernelEntry& entry, const KernelQuery& query, Device& device) = 0;
};

/// Prepares the kernel, runs it on operands of its own by the device's clock, and takes the fastest
/// of several samples, which spans enough runs to be long beside the clock's steps. Float operands
/// are noise, since a GPU is faster on zeros; integers are 0, which every operator takes.
class DeviceStopwatch : public KernelStopwatch {
 public:
  double time(const KernelEntry& entry, const KernelQuery& query, Device& device) override;
};

/// Takes the fastest, and keeps what it measured in a cache. A kernel that cannot be prepared is
/// passed over with its reason; when none can, choose throws UnsupportedError with all of them.
class MeasuringChooser : public KernelChooser {
 public:
  /// Both must outlive it.
  MeasuringChooser(KernelStopwatch& stopwatch, TextCache& cache)
      : stopwatch_(stopwatch), cache_(cache) {}

  KernelChoice choose(const KernelQuery& query, Device& device,
                      std::span<const KernelEntry* const> candidates) override;

 private:
  KernelStopwatch& stopwatch_;
  TextCache& cache_;
};

/// Everything that the times of these kernels depend on: the device with its properties, the
/// operator with its attributes, the operands, the contract and the kernels' names.
std::string measurement_key(const KernelQuery& query, const Device& device,
                            std::span<const KernelEntry* const> candidates);

}  // namespace triptych
