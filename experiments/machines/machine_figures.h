// A machine as figures: peaks, bandwidths, latencies, each with its kind and its source. Read from
// and written to device files (experiments/machines/devices/*.json). `triptych calibrate` makes
// one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time_kind.h"

namespace triptych::machines {

struct Figure {
  double value = 0;  ///< FLOP/s, bytes/s, seconds, bytes or watts: SI without prefix
  TimeKind kind = TimeKind::Recorded;
  std::string source;  ///< the command that measured it, or a publication and where in it
  /// The factors of this product, within 2 % (checked). Empty: none stated. "132 units, 128 lanes,
  /// 2, Hz"
  std::vector<double> factors = {};
};

/// One level of the memory, all its copies on the machine together.
struct MemoryLevel {
  std::string name;  ///< "L1", "shared memory", "memory"
  std::optional<Figure> capacity;
  std::optional<Figure> copy;   ///< bytes/s of b[i] = a[i], reads and writes counted
  std::optional<Figure> triad;  ///< bytes/s of a[i] = b[i] + s * c[i], reads and writes counted
};

/// A message of n bytes takes alpha + n / beta.
struct Link {
  Figure alpha;                    ///< seconds
  Figure beta;                     ///< bytes/s, one direction
  std::optional<Figure> add = {};  ///< bytes/s of received data that a rank adds to its own
};

/// Efficiency of a kernel at work of one size and intensity.
struct Efficiency {
  double bound_s = 0;         ///< the roofline's time for the work
  double flops_per_byte = 0;  ///< of the work: few where weights are many and pixels few
  double fraction = 0;  ///< of the bound that was reached: above 1 where it saves multiplications
};

/// Efficiencies of kernels on a machine that was measured.
struct EfficiencyTable {
  int ranks = 1;  ///< machines side by side, each with so many-th part of the threads
  int busy = 1;   ///< of them at work at once
  TimeKind kind = TimeKind::Measured;
  std::string source;
  /// By "Operator/kernel" ("Conv/winograd-4x4"), at least one point each.
  std::map<std::string, std::vector<Efficiency>> classes;
};

struct MachineFigures {
  std::string name;                     ///< of the file: "h200"
  std::string description;              ///< "NVIDIA H200 SXM"
  std::string kind;                     ///< "cpu", "gpu" or "array"
  std::map<std::string, Figure> peaks;  ///< FLOP/s by format: "f32", "tf32", "bf16", "int8"
  std::vector<MemoryLevel> levels;      ///< the nearest first. The last is the main memory
  std::optional<Figure> launch;         ///< seconds that starting one kernel takes
  std::map<std::string, Link> links;    ///< by destination: "host", "rank"
  std::optional<Figure> power;          ///< watts of the whole board or package under load
  std::vector<EfficiencyTable> efficiencies = {};  ///< of a machine that was measured

  /// The better of copy and triad of the main memory. 0: not known.
  double memory_bytes_per_s() const;
};

/// Throws InvalidArgument with the file, the field and its requirement. IoError where it cannot be
/// read.
MachineFigures load_figures(const std::filesystem::path& file);
/// The same from text. `origin` names it in messages.
MachineFigures parse_figures(std::string_view json, const std::string& origin);
std::string to_json(const MachineFigures& figures);

/// A published machine by name ("h200"), or a path to a file. Throws InvalidArgument with the names
/// that exist. Published ones are built into the program.
MachineFigures find_figures(std::string_view name_or_path);
std::vector<std::string> published_machines();

}  // namespace triptych::machines
