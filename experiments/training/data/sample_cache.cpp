// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/sample_cache.h"

#include <algorithm>
#include <utility>

namespace triptych::segmentation {

SampleCache::SampleCache(std::function<Sample(std::size_t)> read, std::int64_t limit_bytes,
                         std::function<void()> on_read)
    : read_(std::move(read)), limit_(limit_bytes), on_read_(std::move(on_read)) {}

std::shared_ptr<const Sample> SampleCache::at(std::size_t place, std::int64_t expected_bytes) {
  const std::scoped_lock lock(mutex_);
  if (const auto known = by_place_.find(place); known != by_place_.end()) {
    kept_.splice(kept_.begin(), kept_, known->second);
    return known->second->sample;
  }
  const bool fits = expected_bytes <= limit_;
  while (fits && held_ + expected_bytes > limit_) drop(std::prev(kept_.end()));
  if (fits) most_ = std::max(most_, held_ + expected_bytes);
  ++reads_;
  auto sample = std::make_shared<Sample>(read_(place));
  if (const auto found = changes_.find(place); found != changes_.end())
    for (const auto& change : found->second) (*change)(*sample);
  on_read_();
  if (!fits) return sample;
  kept_.push_front({place, bytes_of(*sample), sample});
  held_ += kept_.front().bytes;
  by_place_[place] = kept_.begin();
  return sample;
}

void SampleCache::change(std::size_t place, const std::shared_ptr<const Change>& change) {
  const std::scoped_lock lock(mutex_);
  changes_[place].push_back(change);
  if (const auto known = by_place_.find(place); known != by_place_.end()) drop(known->second);
}

void SampleCache::go_quiet() {
  const std::scoped_lock lock(mutex_);
  on_read_ = [] {};
}

std::int64_t SampleCache::held_bytes() const {
  const std::scoped_lock lock(mutex_);
  return held_;
}

std::int64_t SampleCache::most_bytes() const {
  const std::scoped_lock lock(mutex_);
  return most_;
}

std::int64_t SampleCache::reads() const {
  const std::scoped_lock lock(mutex_);
  return reads_;
}

void SampleCache::drop(std::list<Kept>::iterator kept) {
  held_ -= kept->bytes;
  by_place_.erase(kept->place);
  kept_.erase(kept);
}

std::int64_t bytes_of(const Sample& sample) {
  const auto floats = std::ssize(sample.image) + std::ssize(sample.weights);
  return floats * static_cast<std::int64_t>(sizeof(float)) + std::ssize(sample.labels);
}

}  // namespace triptych::segmentation
