// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/noted_faults.h"

#include <algorithm>

namespace triptych::cuda::emulation {

void NotedFaults::add(const NotedFault& more) {
  const auto found = std::ranges::find_if(faults_, [&](const NotedFault& each) {
    const auto &a = each.first.place(), &b = more.first.place();
    return a.line == b.line && each.other_line == more.other_line &&
           each.first.kind() == more.first.kind() && a.file == b.file;
  });
  if (found != faults_.end()) {
    found->count += more.count;
  } else if (faults_.size() < kMostPlaces) {
    faults_.push_back(more);
  } else {
    unlisted_ += more.count;
  }
}

void NotedFaults::add(const NotedFaults& more) {
  for (const auto& each : more.faults_) add(each);
  unlisted_ += more.unlisted_;
}

}  // namespace triptych::cuda::emulation
