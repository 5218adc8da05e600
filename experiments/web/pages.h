// Pages for teaching: what the program computes here, computed or replayed in a browser.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace triptych::web {

/// The page of the array: one HTML file that needs no network. Throws UnsupportedError, naming the
/// packages that are missing, when this build could not compile what it runs.
std::string array_page();

/// The page of the GPU with what record_gpu() recorded just now: one HTML file that needs no
/// network.
std::string gpu_page();

}  // namespace triptych::web
