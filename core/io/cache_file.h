// A TextCache in one JSON file, for results that take long to compute and may be lost without harm.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "core/base/text_cache.h"

namespace triptych {

/// The folder for this program's caches: $XDG_CACHE_HOME/triptych, else $HOME/.cache/triptych.
/// Empty where neither variable is an absolute path.
std::filesystem::path cache_folder();

/// The first lookup reads the file. save() and the destructor write it as a whole, merged with
/// entries that other processes have added meanwhile. A file that cannot be read, understood or
/// written is reported once to `report` and otherwise ignored.
class CacheFile : public TextCache {
 public:
  using Report = std::function<void(const std::string& message)>;

  explicit CacheFile(std::filesystem::path path, Report report = {});
  ~CacheFile() override;
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  std::optional<std::string> find(const std::string& key) override;
  void insert(const std::string& key, const std::string& text) override;
  /// Writes the entries inserted since the last save.
  void save();

 private:
  using Texts = std::map<std::string, std::string>;

  void load();
  Texts read();
  void report(const std::string& message);

  std::filesystem::path path_;
  Report report_;
  std::mutex mutex_;
  bool loaded_ = false;
  bool reported_ = false;
  Texts texts_;
  Texts added_;
};

}  // namespace triptych
