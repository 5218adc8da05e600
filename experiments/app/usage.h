// What a wrong command line is answered with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace triptych::app {

/// What is wrong, what was perhaps meant and where the help is, for an error of app.parse().
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace triptych::app
