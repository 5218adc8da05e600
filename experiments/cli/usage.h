// What a wrong command line is answered with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace triptych::cli {

/// The name in `names` that `word` most likely meant; empty when none is near.
std::string nearest_name(const std::string& word, const std::vector<std::string>& names);

/// What is wrong, what was perhaps meant and where the help is, for an error of app.parse().
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace triptych::cli
