// The contract between the runtime and a backend: devices that allocate, copy, run and keep time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/text_cache.h"
#include "core/base/time_kind.h"
#include "core/runtime/device_facts.h"
#include "core/runtime/kernel.h"
#include "core/runtime/kernel_counters.h"

namespace triptych {

/// Description that `triptych devices` prints.
struct DeviceInfo {
  std::string name;         ///< "cpu", "cuda:0", "systolic:mmu16"
  std::string description;  ///< model name of the processor
  TimeKind time_kind = TimeKind::Measured;
  DeviceFacts facts;
};

/// Options of the caller. A backend refuses options that it does not know.
struct DeviceOptions {
  int index = 0;
  int threads = 0;                           ///< 0: as many as the machine has
  std::map<std::string, std::string> extra;  ///< backend-specific: "machine": "mmu16"
  std::shared_ptr<TextCache> cache;          ///< persistent cache of the device, may be empty
};

/// Device memory, freed on destruction. `data` is a device address.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual std::byte* data() = 0;
  virtual std::size_t size() const = 0;
};

/// An ordered queue of work on a device. Backends derive from it.
class Stream {
 public:
  virtual ~Stream() = default;
};

/// Bandwidths of one level of a device's memory, all its copies on the device together.
struct LevelBandwidth {
  std::string level;             ///< "L1", "L2", "memory"
  double capacity_bytes = 0;     ///< 0: not known
  double array_bytes = 0;        ///< that all arrays had together. 0: nothing was run
  double copy_bytes_per_s = 0;   ///< of b[i] = a[i], reads and writes counted
  double triad_bytes_per_s = 0;  ///< of a[i] = b[i] + s c[i], reads and writes counted
  TimeKind kind = TimeKind::Measured;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  /// The kernels in the order in which placement asks them: added ones, then its own.
  KernelTable kernels() const { return kernels_.empty() ? own_kernels() : KernelTable(kernels_); }
  /// Places the kernels of a plugin before its own. To be called once, before the first plan.
  void add_kernels(KernelTable added) {
    kernels_.assign(added.begin(), added.end());
    const auto own = own_kernels();
    kernels_.insert(kernels_.end(), own.begin(), own.end());
  }
  /// The kernels of its backend, best first.
  virtual KernelTable own_kernels() const = 0;

  /// Zeroed memory aligned to kAlignment. Throws DeviceError when there is not enough.
  virtual std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) = 0;
  /// Copies that are complete on return. Ordered after all work submitted before.
  virtual void upload(std::byte* device_target, const std::byte* host_source,
                      std::size_t bytes) = 0;
  virtual void download(std::byte* host_target, const std::byte* device_source,
                        std::size_t bytes) = 0;

  /// True when its kernels read host memory where it lies: constants are then not copied.
  virtual bool reads_host_memory() const { return false; }

  /// Runs `enqueue`, which launches the kernels of one plan segment in order on the given stream. A
  /// device may enter its thread pool here, or record the launches under `segment` once and replay
  /// them afterwards (the launches of a segment never change).
  /// Segment numbers are unique in the process.
  virtual void submit(int segment, const std::function<void(Stream*)>& enqueue) = 0;
  /// The segment will not be submitted again: its recorded work may be freed.
  virtual void release(int segment) { static_cast<void>(segment); }
  /// Returns when all submitted work is done. Rethrows a failure of that work.
  virtual void synchronize() = 0;

  /// True when kernels are chosen by their measured times where nobody says otherwise. Only
  /// sensible where times are measured and the kernel table's order is a guess.
  virtual bool chooses_by_measurement() const { return false; }

  /// FLOP/s that its processors just reached in a short loop of the multiply-adds of a contract
  /// that waits for nothing (measured). 0: it has no such loop.
  virtual double measure_peak(Contract) const { return 0; }
  /// The bandwidth of each level of its memory, the nearest first, float32 arrays: just measured on
  /// a real device (about two seconds), from its description on a simulated one. Empty: it cannot
  /// tell.
  virtual std::vector<LevelBandwidth> level_bandwidths() const { return {}; }

  /// This device's clock since it was opened: wall time after synchronize() for real devices,
  /// cycles over the clock rate for simulated ones.
  virtual Duration elapsed() = 0;
  /// Counters since the device was opened, by name ("bytes_uploaded", "mmu_cycles"). May be empty.
  virtual std::map<std::string, double> counters() const { return {}; }
  /// Demands of its kernels on its memories since it was opened. Empty where nobody counts.
  virtual const KernelCounterTable& kernel_counters() const {
    static const KernelCounterTable none;
    return none;
  }

 private:
  std::vector<KernelEntry> kernels_;  ///< with the added ones. Empty: none were added
};

/// Says whether this backend can be used here.
struct Availability {
  bool available = true;
  std::string reason;  ///< why not: "not built", "no driver", "no device"
  std::string remedy;  ///< the command that would add it, may be empty
};

/// A library of the machine's vendor that a backend uses where it is there.
struct BackendLibrary {
  std::string name;
  std::string purpose;  ///< "matrix products"
  std::string version;  ///< of the one that this build has. Empty: none
  std::string reason;   ///< why it has none
  std::string remedy;   ///< the command that would add it
};

/// A kind of machine. Backends are stateless. All state is in the devices they open.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  ///< "cpu", "cuda", "systolic"
  /// The backend of the processor that drives this one and runs the nodes it has no kernel for, as
  /// part of the same machine. Empty: none.
  virtual std::string_view host() const { return {}; }
  /// The backend that provides the kernels that this one runs in its place. Empty: none. Times of
  /// such a stand-in do not apply to the machine, but it may count ("emulation": "counted") or
  /// check ("checked") the kernels' actions.
  virtual std::string_view emulates() const { return {}; }
  /// Names of DeviceOptions::extra that open() takes.
  virtual std::vector<std::string> options() const { return {}; }
  virtual Availability availability() const = 0;
  /// The vendor's libraries that a build of it can use, those that are not there included. Empty
  /// where the backend itself was not built.
  virtual std::vector<BackendLibrary> libraries() const { return {}; }
  /// Its devices with default options. Empty when not available.
  virtual std::vector<DeviceInfo> devices() const = 0;
  /// Throws DeviceError with the reason when it is not available.
  virtual std::unique_ptr<Device> open(const DeviceOptions& options) const = 0;
};

}  // namespace triptych
