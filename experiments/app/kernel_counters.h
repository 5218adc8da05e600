// Counts of an emulated GPU while its kernels ran: tables and JSON. Counts, never times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/kernel_counters.h"
#include "core/runtime/kernel_fault.h"
#include "experiments/page/json.h"

namespace triptych::app {

/// The counters of the kernels that one problem was computed by.
struct CountedRun {
  std::string name;  ///< of the problem
  KernelCounterTable kernels;
};

/// One entry per kernel. `by_line` adds its source lines.
page::Json to_json(const KernelCounterTable& kernels, bool by_line);

/// {"file", "line", "block": [x, y, z], "thread": [x, y, z]}.
page::Json place_json(const FaultPlace& place);

/// {"file", "line", "warps", "divergent_warps"}.
page::Json divergence_json(const std::string& file, unsigned line, std::uint64_t warps,
                           std::uint64_t divergent);

/// A line per problem and kernel. Occupancy is that of multiprocessors of this compute capability.
void print_counters(const std::vector<CountedRun>& runs, std::string_view capability = "9.0");
/// A line per problem: the traffic of all its kernels between global memory and the chip, in whole
/// sectors.
void print_traffic(const std::vector<CountedRun>& runs);
/// A table per problem and kernel. It has a row for each source line that accesses memory, with its
/// text if the source is available.
void print_lines(const std::vector<CountedRun>& runs);
/// A table per problem and kernel with a row for each line at which warps may part, and where some
/// did. Nothing for kernels that are not watched so.
void print_passes(const std::vector<CountedRun>& runs);

/// A line of a kernel's source, without the blanks before it. Empty if the source is not available.
std::string line_of_source(const std::string& file, unsigned line);

}  // namespace triptych::app
