// Requests of emulated kernels, one by one: the numbers of the page of the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/page/json.h"

namespace triptych::web {

/// Runs the kernels of the page on the counted and on the checked emulation, some seconds, the same
/// result every time:
/// {"problems": [{"name", "op", "kernels": [{"name", counters, "sites": [{"file", "line", "space",
/// "access", counters, "visits": [request]}]}]}], "patterns": [{"space", "floats", "stride",
/// "first", request}], "mistakes": [{"name", "kind", "file", "line", "block", "thread",
/// "reason"}], "sources": {file: text}}. A request is that of request_json() (request_record.h).
page::Json record_gpu();

}  // namespace triptych::web
