// Faults of all the kernels of a plan that read computed indices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "core/runtime/plan.h"

namespace triptych {

class IndexWatch {
 public:
  /// Gives each such kernel a word in its device's memory. `plan` must outlive it.
  explicit IndexWatch(const Plan& plan);

  /// Throws InvalidArgument that names the first node whose index was out of range since the last
  /// call, the index and its position. The devices must have finished. Does not allocate else.
  void check();

 private:
  struct Reader {
    NodeId node;
    std::int64_t size;
  };
  /// The readers of one device; words[i] is that of readers[i].
  struct Words {
    Device* device;
    std::vector<Reader> readers;
    std::vector<std::uint64_t> host;
    std::unique_ptr<DeviceBuffer> words;
  };

  const Plan& plan_;
  std::vector<Words> devices_;  ///< those with readers
};

}  // namespace triptych
