// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "core/io/input_file.h"
#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {
namespace {

constexpr std::int64_t kMaxListBytes = std::int64_t{64} << 20;

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  if (line.ends_with(',')) fields.emplace_back();
  return fields;
}

std::optional<std::size_t> column(const std::vector<std::string>& header, std::string_view name) {
  const auto found = std::ranges::find(header, name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

void require_plain(const std::string& name) {
  const bool plain = !name.empty() && name.front() != '.' &&
                     name.find_first_of(std::string_view("/\\\"\0", 4)) == std::string::npos;
  if (!plain) throw IoError(fmt::format("\"{:.100}\" is not a plain file stem", name));
}

std::vector<ListEntry> parse_list(std::istringstream& stream) {
  std::vector<ListEntry> entries;
  std::set<std::string> seen;
  std::vector<std::string> header;
  std::string line;
  for (std::int64_t number = 1; std::getline(stream, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    auto fields = fields_of(line);
    if (entries.empty() && header.empty()) {
      const bool named = column(fields, "id").has_value();
      header = named ? fields : std::vector<std::string>{"id"};
      if (named) continue;
    }
    if (fields.size() != header.size()) {
      throw IoError(
          fmt::format("line {} has {} fields, expected {}", number, fields.size(), header.size()));
    }
    const auto split = column(header, "split");
    ListEntry entry{fields[*column(header, "id")], split ? fields[*split] : ""};
    require_plain(entry.name);
    if (!seen.insert(entry.name).second) {
      throw IoError(fmt::format("line {} names \"{}\" again", number, entry.name));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

std::vector<ListEntry> read_list(const std::filesystem::path& path) {
  const InputFile file(path, kMaxListBytes);
  std::istringstream stream(file.read_text(0, file.size()));
  return file.named([&] { return parse_list(stream); });
}

}  // namespace triptych::segmentation
