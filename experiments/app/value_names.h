// Names of values in the help: "DIR" in "--data DIR". A name is also a kind: the same name has the
// same completion.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace triptych::app {

/// Name of the value of an option that no row of the table has (training/run_options.h), or of a
/// positional argument: "run". Empty: none is known.
std::string_view value_name(std::string_view option);

/// Values that completion offers for a metavariable. None for files, directories and numbers.
std::vector<std::string> values_named(std::string_view name);

/// "RUN": a positional argument as help and messages show it.
std::string upper_case(std::string name);

}  // namespace triptych::app
