// Choice by measurement: where several kernels of a device accept a node, each is timed once for
// its operator, shapes, contract and device. From then on the fastest of those that compute the
// same result is used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/text_cache.h"
#include "core/runtime/device.h"

namespace triptych {

/// The chosen kernel, and the reason as text for people. Empty where there was nothing to choose.
struct KernelChoice {
  const KernelEntry* entry = nullptr;
  std::string reason;
};

/// The node that a kernel is chosen for.
struct ChoiceQuery : KernelQuery {
  /// Operands that the plan may store channels last. The query has planes.
  ChannelsLastOperands storable = {};
};

/// Chooses among kernels that accept a node. `candidates` are in the table's order, at least one.
class KernelChooser {
 public:
  virtual ~KernelChooser() = default;
  virtual KernelChoice choose(const ChoiceQuery& query, Device& device,
                              std::span<const KernelEntry* const> candidates) = 0;
};

/// Outcome of trying a kernel for a node.
struct KernelTrial {
  double seconds = 0;   ///< of one run. 0: its time does not count
  std::string problem;  ///< why not
  bool wrong = false;   ///< it computed something else than the trusted kernel
  bool lasting = true;  ///< another trial on this device would end so, too
};

/// How long kernels take.
class KernelStopwatch {
 public:
  virtual ~KernelStopwatch() = default;
  /// One trial per candidate.
  virtual std::vector<KernelTrial> time(std::span<const KernelEntry* const> candidates,
                                        const ChoiceQuery& query, Device& device) = 0;
};

/// Prepares each kernel, runs it on shared operands, timed by the device's clock, and chooses the
/// fastest by several samples. A sample spans enough runs to be long in comparison with the clock's
/// resolution. Operands that the plan may store channels last, and that the kernel takes so, are
/// stored so for its time, but in planes for its values. Float operands are noise, since a GPU is
/// faster on zeros. Integers are 0, which every operator takes. A time counts only where the values
/// are those of the trusted kernel (kernel_values.h): the last of our own in the table, which is
/// the simplest, that runs. A kernel that fails is passed over. One that leaves the device unusable
/// ends the trials with a DeviceError that names it.
class DeviceStopwatch : public KernelStopwatch {
 public:
  std::vector<KernelTrial> time(std::span<const KernelEntry* const> candidates,
                                const ChoiceQuery& query, Device& device) override;
};

/// Chooses the fastest and stores its measurements in a cache, unless an error occurred that might
/// not occur again. A kernel without a time is passed over with its reason. When none has one,
/// choose throws with all of them: UnsupportedError, or DeviceError where one failed.
class MeasuringChooser : public KernelChooser {
 public:
  using Tell = std::function<void(const std::string& warning)>;

  /// Both must outlive it. `tell` hears of kernels that compute something else.
  MeasuringChooser(KernelStopwatch& stopwatch, TextCache& cache, Tell tell = {})
      : stopwatch_(stopwatch), cache_(cache), tell_(std::move(tell)) {}

  KernelChoice choose(const ChoiceQuery& query, Device& device,
                      std::span<const KernelEntry* const> candidates) override;

 private:
  KernelStopwatch& stopwatch_;
  TextCache& cache_;
  Tell tell_;
};

/// Everything that the times of these kernels depend on: the device with its properties, the
/// operator with its attributes, the operands, the contract and the kernels' names.
std::string measurement_key(const ChoiceQuery& query, const Device& device,
                            std::span<const KernelEntry* const> candidates);

}  // namespace triptych
