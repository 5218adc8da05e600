// Whether other programs had the processors while something was timed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace triptych::measure {

/// Shares of the time of all processors. They add up to 1.
struct ProcessorShares {
  double own = 0;     ///< this process and its children
  double others = 0;  ///< other programs, and the share of a hypervisor
  double idle = 0;
};

/// Shares between two texts of /proc/stat, with `own_s` seconds of the process, in ticks of 1 /
/// `ticks_per_s`. Nothing where a text is none or no time has passed.
std::optional<ProcessorShares> shares_between(std::string_view before, std::string_view after,
                                              double own_s, double ticks_per_s);

/// A warning for times measured then. Empty where the processors were free.
std::string busy_note(const std::optional<ProcessorShares>& shares);

/// Watches the processors from its construction on.
class ProcessorWatch {
 public:
  ProcessorWatch();
  std::string busy_note() const;

 private:
  std::string before_;
  double own_s_;
};

}  // namespace triptych::measure
