// The ranks of a run: threads of this process, or processes including this one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "parallel/comm/transport.h"

namespace triptych::parallel {

/// Outlives its transports.
class RankGroup {
 public:
  virtual ~RankGroup() = default;

  virtual int world_size() const = 0;
  /// Those that live in this process, ascending.
  virtual std::vector<int> local_ranks() const = 0;
  /// That local rank's end, once per rank. Its destruction tells the others that the rank has
  /// ended.
  virtual std::unique_ptr<Transport> transport(int rank) = 0;
};

}  // namespace triptych::parallel
