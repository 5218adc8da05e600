// Pages for teaching: what the program computes here, computed or replayed in a browser.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "experiments/page/json.h"

namespace triptych::web {

/// The page of the array: one HTML file that needs no network. Throws UnsupportedError, naming the
/// packages that are missing, when this build could not compile what it runs.
std::string array_page();

/// The page of the GPU with what record_gpu() recorded just now: one HTML file that needs no
/// network.
std::string gpu_page();

/// The page of collectives: rings, trees and servers stepped through, with the schedules, gradients
/// and prices of a report (experiments/studies/collectives_report.h).
std::string collectives_page(const page::Json& report);

}  // namespace triptych::web
