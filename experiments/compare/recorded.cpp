// SPDX-License-Identifier: Apache-2.0
#include "experiments/compare/recorded.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/folder.h"
#include "core/io/strict_json.h"

namespace triptych::compare {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kSchema = 2;

/// Times and rates of an item that was a `bench`.
void add_bench(const std::string& item, const Json& row, std::vector<RecordedFigure>& figures) {
  const auto name = row.value("name", item);
  const auto kernel = row.value("kernel", std::string());
  const auto label = fmt::format("{}{}{}, {}, batch {}", name, kernel.empty() ? "" : " by ", kernel,
                                 row.value("contract", std::string("?")), row.value("batch", 1));
  const auto seconds = row.at("median").at("value").get<double>();
  figures.push_back({label, seconds, "s"});
  if (row.contains("gflops") && row.at("gflops").is_number())
    figures.push_back({label, row.at("gflops").get<double>() * 1e9, "FLOP/s"});
}

/// True when the machines that an item trained on end with the same weights.
void add_training(const std::string& item, const Json& rows, std::vector<RecordedFigure>& figures) {
  if (rows.size() < 2) return;
  bool same = true;
  for (const auto& row : rows) {
    same = same && row.at("weights_sha256") == rows[0].at("weights_sha256") &&
           row.at("losses") == rows[0].at("losses");
  }
  figures.push_back({fmt::format("{}: same losses and weights on {} and {} (1: yes)", item,
                                 rows[0].at("backend").get<std::string>(),
                                 rows.back().at("backend").get<std::string>()),
                     same ? 1.0 : 0.0, "1"});
}

RecordedSession session_of(const Json& json, const fs::path& file) {
  RecordedSession session = {.machine = json.at("machine").at("gpu"),
                             .date = json.at("date"),
                             .commit = json.at("commit"),
                             .file = file.filename().string(),
                             .figures = {}};
  for (const auto& item : json.at("items")) {
    if (!item.contains("result") || !item.at("result").is_object()) continue;
    const auto& rows = item.at("result").value("results", Json::array());
    const auto name = item.at("name").get<std::string>();
    if (!rows.is_array() || rows.empty()) continue;
    if (rows[0].contains("weights_sha256")) add_training(name, rows, session.figures);
    for (const auto& row : rows) {
      if (row.contains("median") && row.at("median").is_object())
        add_bench(name, row, session.figures);
    }
  }
  return session;
}

}  // namespace

std::vector<RecordedSession> load_recorded(const fs::path& folder) {
  std::vector<RecordedSession> sessions;
  std::error_code missing;
  for (const auto& name : names_in(folder, missing)) {
    const auto path = folder / name;
    if (!name.starts_with("gpu-") || path.extension() != ".json") continue;
    try {
      std::ifstream file(path);
      const auto json = Json::parse(file);
      require_schema(json, kSchema, "record the session again");
      if (json.at("machine").at("gpu").is_null()) continue;  // it found no GPU
      sessions.push_back(session_of(json, path));
    } catch (const std::exception& error) {
      throw IoError(
          fmt::format("\"{}\" is no session of experiments/studies/rivals/gpu_session.sh: {}",
                      path.string(), error.what()));
    }
  }
  std::ranges::sort(sessions, std::greater{}, &RecordedSession::date);
  return sessions;
}

fs::path recorded_folder() { return fs::path(TRIPTYCH_SOURCE_DIR) / "experiments/recorded"; }

}  // namespace triptych::compare
