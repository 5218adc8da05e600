// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/array_counters.h"

#include "core/base/error.h"

namespace triptych::labs {

namespace {

/// A machine maps its DRAM, up to 4 GiB, of which it touches little.
constexpr Limits kLimits = {.bytes = std::int64_t{8} << 30};

}  // namespace

ArrayCounters::ArrayCounters(Bench& bench, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"triptych", "trace"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.emplace_back("--json");
  const auto ending = bench.run(command, kLimits);
  if (!ending.good()) {
    const auto words = first_lines(ending.error, 3, bench.folder().string());
    throw InvalidArgument(words.empty() ? "the trace " + ending.said(kLimits) : words);
  }
  counters_ = Bench::result(ending).at("array").at("nodes").at(0).at("counters");
}

}  // namespace triptych::labs
