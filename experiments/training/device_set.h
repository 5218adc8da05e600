// The devices that one run uses: the asked machine with its host, and its allowed fallback.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/choice.h"
#include "core/base/contract.h"
#include "core/ops/collectives.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/plan.h"
#include "parallel/strategies/strategy.h"
#include "systolic/driver/simulation.h"

namespace triptych::training {

/// Mover of the messages of ranks.
enum class Transport : std::uint8_t {
  Threads,    ///< memory that they share
  Mpi,        ///< each is a process
  Nccl,       ///< threads with a GPU each
  Simulated,  ///< threads, virtual time
};

}  // namespace triptych::training

namespace triptych {

template <>
inline constexpr auto kNamesOf<training::Transport> =
    std::to_array<std::pair<training::Transport, std::string_view>>(
        {{training::Transport::Threads, "threads"},
         {training::Transport::Mpi, "mpi"},
         {training::Transport::Nccl, "nccl"},
         {training::Transport::Simulated, "simulated"}});

template <>
inline constexpr auto kNamesOf<mmu::Simulation> = mmu::kSimulationNames;

}  // namespace triptych

namespace triptych::training {

/// How a node's kernel is chosen among several.
enum class Selection : std::uint8_t {
  ByDevice,  ///< measured on devices that say so (Device::chooses_by_measurement)
  Measured,
  Table,  ///< the best by its rules
};

}  // namespace triptych::training

namespace triptych {

template <>
inline constexpr auto kNamesOf<training::Selection> =
    std::to_array<std::pair<training::Selection, std::string_view>>(
        {{training::Selection::Measured, "measured"},
         {training::Selection::Table, "table"},
         {training::Selection::ByDevice, "auto"}});

}  // namespace triptych

namespace triptych::training {

/// How a training step is spread over several machines of one kind.
struct ParallelConfig {
  int ranks = 1;
  Transport transport = Transport::Threads;
  /// For simulated transport, see parallel::make_interconnect. The default is the link of a TPU
  /// v5e's torus.
  std::string interconnect = "ring";
  double link_latency_s = 1e-6;
  double link_bytes_per_s = 45e9;
  parallel::Strategy strategy;
  ReductionOrder order = ReductionOrder::RankOrdered;
  int shards = 0;         ///< of the batch, with ShardTree. 0: one per rank
  bool overlap = false;   ///< collectives overlap the computation
  double timeout_s = 30;  ///< how long a rank may keep the others waiting
};

struct ExecutionConfig {
  std::string backend = "cpu";
  std::string fallback;  ///< backend for nodes that `backend` cannot run. Empty: none
  int device = 0;        ///< which of the backend's
  int threads = 0;       ///< 0: as many as the machine has
  Contract contract = Contract::F32;
  std::string machine;  ///< of a simulated backend: which one. Empty: its default
  std::optional<mmu::Simulation> simulate;  ///< of a simulated backend. Nothing: its default
  std::string tiling = {};  ///< of a systolic array: sizes that its lowering is to take
  std::string kernel;       ///< own, library or a kernel's name: PlacementOptions::forced
  Selection choice = Selection::ByDevice;
  bool winograd = true;  ///< PlacementOptions::transformed
  bool graph = true;     ///< of a GPU: false launches each kernel by itself
  /// Mode of a backend that emulates another: plain, counted or checked. Empty: its default.
  std::string emulation = {};
  /// Earlier times for the choice of kernels, by measurement_key: they have priority over the
  /// cache's.
  std::map<std::string, std::string> kernel_times = {};
  ParallelConfig parallel;
};

/// Kernels chosen by their times, which are stored in the user's cache folder.
struct MeasuredChoice {
  /// A note on standard error reports kernels that are left out because they are wrong.
  explicit MeasuredChoice(TextCache& cache);
  DeviceStopwatch stopwatch;
  MeasuringChooser chooser;
};

/// A cache that remembers found and inserted entries, and knows `known` from the start.
class RecordedTimes : public TextCache {
 public:
  RecordedTimes(TextCache& cache, std::map<std::string, std::string> known);

  std::optional<std::string> find(const std::string& key) override;
  void insert(const std::string& key, const std::string& text) override;
  std::map<std::string, std::string> texts() const;
  void prefer(const std::map<std::string, std::string>& texts);

 private:
  TextCache& cache_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

/// Share of a plan that the host of a simulated machine runs, in addition to the simulated nodes.
struct HostShare {
  std::string device;      ///< "cpu"
  std::size_t nodes = 0;   ///< that run something there
  double operations = 0;   ///< at least one for each element of a node's largest operand
  double bytes = 0;        ///< of all operands and results
  double lanes = 0;        ///< of the vector unit that prices the operations
  double clock_mhz = 0;    ///< of that unit
  double bytes_per_s = 0;  ///< of the machine's DRAM. 0: unlimited
  Duration time;           ///< modelled: of each node the longer of its operations and its bytes
};

class DeviceSet {
 public:
  /// Opens the devices: the backend's, its host's, the fallback's. Throws DeviceError when one is
  /// not available here, InvalidArgument for options that the backend does not take.
  explicit DeviceSet(const ExecutionConfig& config);

  Device& device() const { return *owned_.front(); }
  const std::vector<Device*>& devices() const { return devices_; }
  const ExecutionConfig& config() const { return config_; }
  PlanOptions plan_options() const;
  /// Threads of the device, or of its host. 0 when neither has any.
  int threads() const;
  /// Seconds that the device has computed for the thread that asks, however many others share the
  /// processor: on a processor the thread's processor time, else the device's own clock. Throws
  /// InvalidArgument when a processor computes with more threads than that one.
  std::function<double()> work_clock() const;
  /// The times that have chosen kernels so far. With them a resumed run, another rank or another
  /// process chooses the same kernels.
  std::map<std::string, std::string> kernel_times() const;
  /// Chooses kernels by these times from now on, before any cache.
  void prefer(const std::map<std::string, std::string>& kernel_times);
  /// Nothing when the machine is not simulated or has no host.
  std::optional<HostShare> host_share(const Plan& plan) const;
  /// The time of `runs` runs of a plan that took the device `device_s`: of a simulated machine with
  /// its host's share (modelled).
  Duration whole_time(double device_s, const Plan& plan, std::int64_t runs) const;
  /// The modelled time of one step on the host: the longer of its operations on the vector unit and
  /// its bytes at the DRAM's bandwidth. Call it where host_share exists.
  Duration host_time(const Plan& plan, const Step& step) const;

 private:
  ExecutionConfig config_;
  bool has_host_ = false;
  std::shared_ptr<TextCache> cache_;
  std::unique_ptr<RecordedTimes> times_;    ///< of choice_
  std::unique_ptr<MeasuredChoice> choice_;  ///< empty: the table's order counts
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<Device*> devices_;
};

/// Example: "host: cpu; 12 nodes run there, 1.2e+06 operations on 16 lanes at 700 MHz, 9.6e+06
/// bytes at 34 GB/s: ... (modelled)".
std::string to_string(const HostShare& share);

}  // namespace triptych::training
