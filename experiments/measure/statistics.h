// Repeated timing: medians with their spread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "core/base/time_kind.h"
#include "experiments/page/json.h"

namespace triptych::measure {

struct Statistics {
  double median = 0;
  double min = 0;
  double max = 0;
  int samples = 0;
};

/// {"samples", "median", "min", "max"}, and back. The times are figures.
page::Json times_json(const Statistics& times, TimeKind kind);
Statistics times_from(const page::Json& json);

/// Order statistics of `values`. Throws InvalidArgument when there are none.
Statistics statistics_of(std::vector<double> values);

/// Seconds of `run`, once to warm up and then `repeats` times, or with repeats 0 until about a
/// second has passed, at least 5 and at most 1000 times. `now` is the device's clock.
Statistics time_repeatedly(const std::function<void()>& run, const std::function<double()>& now,
                           int repeats);

/// The largest resident memory of this process so far, in MiB.
double peak_memory_mib();

}  // namespace triptych::measure
