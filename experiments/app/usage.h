// Messages about a wrong command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace triptych::app {

/// The error of an option whose value is missing, so that the next option became its value. Empty:
/// none.
std::string problem_of_values(const CLI::App& command);

/// The problem that ended app.parse(), with a suggestion where there is one.
std::string usage_problem(CLI::App& app, const CLI::ParseError& error);

}  // namespace triptych::app
