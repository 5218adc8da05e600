// SPDX-License-Identifier: Apache-2.0
#include "core/io/cache_file.h"

#include <fmt/core.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/io/atomic_file.h"
#include "core/io/input_file.h"
#include "core/io/strict_json.h"

namespace triptych {
namespace {

using Json = nlohmann::json;

constexpr int kSchema = 1;
constexpr std::int64_t kMaxCacheBytes = std::int64_t{1} << 28;

/// {"schema": 1, "texts": {key: text}}; throws an Error for anything else.
std::map<std::string, std::string> parse(const std::string& content) {
  const auto json = Json::parse(content, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) throw InvalidArgument("it is no JSON object");
  require_schema(json, kSchema, "its entries are measured again");
  std::map<std::string, std::string> texts;
  if (!json.contains("texts") || !json["texts"].is_object())
    throw InvalidArgument("its texts are no JSON object");
  for (const auto& [key, text] : json["texts"].items()) {
    if (!text.is_string()) throw InvalidArgument(fmt::format("\"{}\" is no text", key));
    texts[key] = text.get<std::string>();
  }
  return texts;
}

}  // namespace

std::filesystem::path cache_folder() {
  const auto variable = [](const char* name) -> std::filesystem::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  // The XDG specification has relative paths ignored.
  if (const auto xdg = variable("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / "triptych";
  const auto home = variable("HOME");
  return home.is_absolute() ? home / ".cache" / "triptych" : std::filesystem::path();
}

CacheFile::CacheFile(std::filesystem::path path, Report report)
    : path_(std::move(path)), report_(std::move(report)) {}

CacheFile::~CacheFile() {
  try {
    save();
  } catch (const std::exception&) {
    // Entries that a cache loses are computed again.
  }
}

std::optional<std::string> CacheFile::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  load();
  const auto found = texts_.find(key);
  if (found == texts_.end()) return std::nullopt;
  return found->second;
}

void CacheFile::insert(const std::string& key, const std::string& text) {
  const std::lock_guard lock(mutex_);
  load();
  texts_[key] = text;
  added_[key] = text;
}

void CacheFile::save() {
  const std::lock_guard lock(mutex_);
  if (added_.empty()) return;
  auto texts = read();
  for (const auto& [key, text] : added_) texts[key] = text;
  added_.clear();
  try {
    std::filesystem::create_directories(path_.parent_path());
    write_file_atomically(path_, Json{{"schema", kSchema}, {"texts", texts}}.dump(1) + "\n");
  } catch (const std::exception& error) {
    report(fmt::format("the cache \"{}\" was not written: {}", path_.string(), error.what()));
  }
}

void CacheFile::load() {
  if (loaded_) return;
  texts_ = read();
  loaded_ = true;
}

CacheFile::Texts CacheFile::read() {
  std::error_code unknown;
  if (!std::filesystem::exists(path_, unknown)) return {};
  try {
    return parse(read_file(path_, kMaxCacheBytes));
  } catch (const Error& error) {
    report(fmt::format("the cache \"{}\" is ignored and will be replaced: {}", path_.string(),
                       error.what()));
    return {};
  }
}

void CacheFile::report(const std::string& message) {
  if (report_ && !reported_) report_(message);
  reported_ = true;
}

}  // namespace triptych
