// Answers to a wrong command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace triptych::app {

/// Message for an error of app.parse(): what is wrong, what was perhaps meant and where the help
/// is.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace triptych::app
