// Numbers with units on the command line: "2GiB", "1us", "10GB/s".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "experiments/training/option_value.h"

namespace triptych::app {

/// The number of `text` in `unit`: "2048" for "2GiB" in MiB. A text that is no number with one of
/// the unit's suffixes is returned as it is.
std::string number_in(training::Unit unit, const std::string& text);

/// An example for messages: "2GiB". Empty without a unit.
std::string unit_example(training::Unit unit);

}  // namespace triptych::app
