// One convolution at several batch sizes on several machines: from which one on a machine is faster
// than the first one, with and without the copies between its memory and the host's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/machines/machine_figures.h"
#include "experiments/measure/bench_problems.h"
#include "experiments/measure/statistics.h"

namespace triptych::measure {

/// Options of `bench conv --backends` in addition to the convolution.
struct SweepOptions {
  std::string layer;            ///< "MODEL:NODE", the source of the shape, may be empty
  std::string backends;         ///< a comma list. The first is the baseline of the others
  std::string link = "tpu-v1";  ///< to a simulated machine, see host_link
};

/// Copies of a run's operands to a machine's memory and of its results back.
struct Transfers {
  double bytes_in = 0, bytes_out = 0;
  Duration in, out;
};

struct SweepPoint {
  std::int64_t batch = 1;
  std::string kernel;
  std::string simulated_by;   ///< "twin", "rtl" or "both". Empty where nothing is simulated
  bool twin_instead = false;  ///< too large for the requested RTL
  Statistics time;            ///< of the computation alone
  TimeKind kind = TimeKind::Measured;
  std::optional<Transfers> transfers;  ///< nothing where the machine computes in the host's memory

  Duration compute() const { return {time.median, kind}; }
  Duration with_transfers() const;
};

struct SweptMachine {
  std::string backend;
  std::string reason, remedy;  ///< why it has no points
  std::string device;          ///< description
  std::string link;            ///< that its transfers are modelled by
  std::int64_t threads = 0;
  std::vector<SweepPoint> points;
};

struct BatchSweep {
  std::string problem;  ///< "conv/64>64@256x256k3"
  std::string layer;    ///< its source, may be empty
  std::string contract;
  double flops_per_image = 0;
  std::vector<SweptMachine> machines;  ///< in the order asked for
};

/// A link between a host and its machine: "pcie3x16", that of a published machine or a device file,
/// or "LATENCY,BANDWIDTH". Throws InvalidArgument.
machines::Link host_link(const std::string& text);

/// The kind of a sum of two times: theirs if it is one, else modelled.
TimeKind kind_of_sum(TimeKind a, TimeKind b);

/// The smallest batch from which on all speedups are above 1. `batches` ascend.
std::optional<std::int64_t> break_even(std::span<const std::int64_t> batches,
                                       std::span<const double> speedups);

/// Speedups of a machine over the first one, batch by batch.
std::vector<double> speedups(const SweptMachine& machine, const SweptMachine& first,
                             bool with_transfers);

/// Sets shape and window of `options` to those of a convolution "MODEL:NODE". Throws
/// InvalidArgument listing the nodes, and UnsupportedError for one that `bench conv` cannot state.
void take_layer(const std::string& layer, BenchOptions& options);

/// Runs every machine at every batch, and models those of --device. Machines that are not here get
/// a reason. The first must be. Throws InvalidArgument for unknown machines and links.
BatchSweep sweep_batches(const BenchOptions& options, const SweepOptions& sweep);

}  // namespace triptych::measure
