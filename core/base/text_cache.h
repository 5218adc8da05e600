// A store of texts by key that persists between runs of a program. A cache may forget. Nothing but
// time depends on it. The one on disk is core/io/cache_file.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace triptych {

/// Safe to use from several threads.
class TextCache {
 public:
  virtual ~TextCache() = default;
  virtual std::optional<std::string> find(const std::string& key) = 0;
  virtual void insert(const std::string& key, const std::string& text) = 0;
};

/// Lives as long as the program.
class MemoryCache : public TextCache {
 public:
  std::optional<std::string> find(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    const auto found = texts_.find(key);
    if (found == texts_.end()) return std::nullopt;
    return found->second;
  }
  void insert(const std::string& key, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    texts_[key] = text;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

}  // namespace triptych
