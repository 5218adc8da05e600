// Pages for teaching: what the program computes here, computed or replayed in a browser.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "experiments/page/json.h"

namespace triptych::web {

/// The page of the array: one HTML file that needs no network. `program` is null, or an object with
/// the `text` of the program that the page begins with.
std::string array_page(const page::Json& program);

/// The page of the GPU with a record of record_gpu() (experiments/web/gpu_record.h): one HTML file
/// that needs no network.
std::string gpu_page(const page::Json& record);

/// The page of a user's kernels with a record: {"file", "gpu", "versions": [{"name", "finding",
/// "counters", "warps"}], "sources": {file: text}}. `counters` (null with a finding) are those of
/// `triptych kernel run --json`, `warps` those of WarpLog (experiments/web/kernel_record.h).
std::string kernel_page(const page::Json& record);

/// The page of collectives: rings, trees and servers stepped through, with the schedules, gradients
/// and prices of a report (experiments/studies/collectives_report.h).
std::string collectives_page(const page::Json& report);

}  // namespace triptych::web
