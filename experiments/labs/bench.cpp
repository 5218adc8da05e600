// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/bench.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "core/io/npy.h"
#include "core/io/strict_json.h"

namespace triptych::labs {

namespace fs = std::filesystem;

Bench::Bench() : outer_("lab"), folder_(outer_.path() / "work") {
  // Another user must come through the outer folder.
  fs::permissions(outer_.path(),
                  fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
  fs::create_directory(folder_);
}

void Bench::put(const std::string& name, std::string_view content) {
  const auto path = folder_ / name;
  fs::create_directories(path.parent_path());
  fs::remove(path);  // of another user, or a link
  std::ofstream file(path, std::ios::binary);
  file << content << std::flush;
  if (!file) throw IoError(fmt::format("cannot write \"{}\"", path.string()));
}

void Bench::put(const std::string& name, const Tensor& tensor) { put(name, encode_npy(tensor)); }

void Bench::remove(const std::string& name) { fs::remove(folder_ / name); }

Ending Bench::run(const std::vector<std::string>& command, const Limits& limits) {
  return run_confined(command, folder_, limits);
}

fs::path Bench::plain(const std::string& name) const {
  auto path = folder_;
  for (const auto& part : fs::path(name)) {
    path /= part;
    const auto type = fs::symlink_status(path).type();
    if (type != fs::file_type::regular && type != fs::file_type::directory)
      throw IoError(fmt::format(
          "no file \"{}\" was written; did the code end too early, or remove it?", name));
  }
  return path;
}

std::string Bench::text(const std::string& name, std::int64_t max_bytes) const {
  return read_file(plain(name), max_bytes);
}

Tensor Bench::array(const std::string& name) const {
  return load_npy(plain(name), std::int64_t{1} << 28);
}

page::Json Bench::result(const Ending& ending) {
  const auto document = parse_strict<page::Json>(ending.output);
  const auto results =
      document.is_object() ? document.value("results", page::Json()) : page::Json();
  if (!results.is_array() || results.empty()) throw IoError("the output is no document");
  return results.front();
}

std::string Bench::why(const Ending& ending, const Limits& limits) const {
  if (ending.cause != Cause::Exited || ending.error.empty())
    return "the run " + ending.said(limits);
  constexpr std::string_view kBegin = "triptych: ";  // of each message
  auto text = first_lines(ending.error, 8, folder_.string());
  if (text.starts_with(kBegin)) text.erase(0, kBegin.size());
  return text;
}

std::string first_lines(const std::string& text, std::size_t count, const std::string& hidden) {
  std::istringstream stream(text);
  std::string result;
  std::size_t lines = 0;
  for (std::string line; lines < count && std::getline(stream, line);) {
    for (auto at = line.find(hidden + "/"); !hidden.empty() && at != line.npos;
         at = line.find(hidden + "/", at))
      line.erase(at, hidden.size() + 1);
    if (line.empty()) continue;
    result += (lines++ == 0 ? "" : "\n") + line.substr(0, 600);
  }
  return result;
}

}  // namespace triptych::labs
