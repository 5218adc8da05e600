// A student's SystemVerilog under Verilator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/labs/bench.h"

namespace triptych::labs {

struct RtlRun {
  std::string problem;  ///< why it did not come to its end, in the tools' words. Empty: it did
  std::string printed;  ///< first lines of the $display output
};

/// Builds the files, which are on the bench, with a top module lab_bench (clk_i, rst_i, done_o),
/// and clocks it until done_o is high. Registers begin with random bits out of `seed`. Throws
/// DeviceError when a tool is missing.
RtlRun build_and_run(Bench& bench, const std::vector<std::string>& files, std::uint64_t seed);

}  // namespace triptych::labs
