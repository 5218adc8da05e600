// Pages that compute in the browser what the program computes here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "experiments/page/json.h"

namespace triptych::web {

/// The page of the array: one HTML file that needs no network. Throws UnsupportedError, naming the
/// packages that are missing, when this build could not compile what it runs.
std::string array_page();

/// The page of collectives: rings, trees and servers stepped through, with the schedules, gradients
/// and prices of a report (experiments/studies/collectives_report.h).
std::string collectives_page(const page::Json& report);

}  // namespace triptych::web
