// Pages that compute in the browser what the program computes here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace triptych::web {

/// The page of the array: one HTML file that needs no network. Throws UnsupportedError, naming the
/// packages that are missing, when this build could not compile what it runs.
std::string array_page();

}  // namespace triptych::web
