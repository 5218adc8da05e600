// A TextCache in one JSON file, for what takes long to find out and may be lost without harm.
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

/// The file is read when it is first asked and written, as a whole, by save() and the destructor,
/// together with what other processes have added to it meanwhile. A file that cannot be read,
/// understood or written is told to `report` once and otherwise ignored.
class CacheFile : public TextCache {
 public:
  using Report = std::function<void(const std::string& message)>;

  explicit CacheFile(std::filesystem::path path, Report report = {});
  ~CacheFile() override;
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  std::optional<std::string> find(const std::string& key) override;
  void insert(const std::string& key, const std::string& text) override;
  /// Writes what was inserted since the last save.
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
