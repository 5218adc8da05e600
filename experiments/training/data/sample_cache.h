// Samples of a data set larger than memory: read when needed, and cached while there is space. Safe
// for several threads, which read one after another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {

class SampleCache {
 public:
  using Change = std::function<void(Sample&)>;

  /// `read` gives the sample at a place with its pixels. The cache has `limit_bytes` at most,
  /// including the sample that is being read. One that alone has more is never kept.
  /// `on_read` is called after each until go_quiet().
  SampleCache(
      std::function<Sample(std::size_t)> read, std::int64_t limit_bytes,
      std::function<void()> on_read = [] {});

  /// The sample at `place`, which has `expected_bytes` at most. Before a read, the least recently
  /// used ones are dropped. Throws the exceptions of `read`.
  std::shared_ptr<const Sample> at(std::size_t place, std::int64_t expected_bytes);
  /// From now on applied to the sample at `place` whenever it is read, behind earlier changes.
  void change(std::size_t place, const std::shared_ptr<const Change>& change);

  void go_quiet();

  std::int64_t limit_bytes() const { return limit_; }
  std::int64_t held_bytes() const;
  std::int64_t most_bytes() const;  ///< highest number that were held or being read
  std::int64_t reads() const;

 private:
  struct Kept {
    std::size_t place;
    std::int64_t bytes;
    std::shared_ptr<const Sample> sample;
  };

  void drop(std::list<Kept>::iterator kept);

  std::function<Sample(std::size_t)> read_;
  std::int64_t limit_;
  std::function<void()> on_read_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<std::shared_ptr<const Change>>> changes_;
  std::list<Kept> kept_;  ///< the last used first
  std::map<std::size_t, std::list<Kept>::iterator> by_place_;
  std::int64_t held_ = 0;
  std::int64_t most_ = 0;
  std::int64_t reads_ = 0;
};

/// Bytes of the pixels that `sample` holds.
std::int64_t bytes_of(const Sample& sample);

}  // namespace triptych::segmentation
