// SPDX-License-Identifier: Apache-2.0
#include "core/io/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/sha256.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kSchema = 1;
constexpr int kMaxDepth = 64;
constexpr std::int64_t kMaxIndexBytes = std::int64_t{16} << 20;
constexpr std::string_view kIndexName = "checkpoint.json";
constexpr std::string_view kTensorPrefix = "step-";
constexpr std::string_view kTensorSuffix = ".safetensors";

struct Entry {
  CheckpointInfo info;
  std::string file;
  std::string sha256;
};

/// JSON without the liberties of the parser: no key twice, no depth without end.
json parse_strict(const std::string& text) {
  if (text.find('\0') != std::string::npos) throw IoError("the JSON holds a NUL");
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) throw IoError("the JSON is nested too deeply");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed).second) {
      throw IoError(fmt::format("key \"{:.100}\" appears twice", parsed.get<std::string>()));
    }
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const json::exception& error) {
    throw IoError(fmt::format("not valid JSON: {}", error.what()));
  }
}

json parse_object(const std::string& text, std::string_view what) {
  try {
    auto object = parse_strict(text);
    if (object.is_object()) return object;
  } catch (const IoError& error) {
    throw InvalidArgument(fmt::format("{} of a checkpoint: {}", what, error.what()));
  }
  throw InvalidArgument(fmt::format("{} of a checkpoint must be a JSON object", what));
}

json to_json(const Entry& entry) {
  return {{"step", entry.info.step},
          {"epoch", entry.info.epoch},
          {"seed", entry.info.seed},
          {"samples_drawn", entry.info.samples_drawn},
          {"model", parse_object(entry.info.model_json, "model_json")},
          {"run", parse_object(entry.info.run_json, "run_json")},
          {"file", entry.file},
          {"sha256", entry.sha256}};
}

template <class T>
T member(const json& object, const char* key, bool (json::*is_type)() const noexcept) {
  const auto found = object.find(key);
  if (found == object.end() || !((*found).*is_type)()) {
    throw IoError(fmt::format("\"{}\" is missing or of the wrong type", key));
  }
  return found->get<T>();
}

std::int64_t count_member(const json& object, const char* key) {
  const auto value = member<std::uint64_t>(object, key, &json::is_number_unsigned);
  if (!std::in_range<std::int64_t>(value)) throw IoError(fmt::format("\"{}\" is too large", key));
  return static_cast<std::int64_t>(value);
}

bool is_tensor_file(std::string_view name) {
  return name.starts_with(kTensorPrefix) && name.ends_with(kTensorSuffix) &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

Entry entry_from(const json& object) {
  if (!object.is_object()) throw IoError("a checkpoint is not an object");
  Entry entry;
  entry.info.step = count_member(object, "step");
  entry.info.epoch = count_member(object, "epoch");
  entry.info.seed = member<std::uint64_t>(object, "seed", &json::is_number_unsigned);
  entry.info.samples_drawn = count_member(object, "samples_drawn");
  entry.info.model_json = member<json>(object, "model", &json::is_object).dump();
  entry.info.run_json = member<json>(object, "run", &json::is_object).dump();
  entry.file = member<std::string>(object, "file", &json::is_string);
  entry.sha256 = member<std::string>(object, "sha256", &json::is_string);
  if (!is_tensor_file(entry.file)) throw IoError("\"file\" is not the name of a tensor file");
  return entry;
}

/// The checkpoints that the index names, the newest first.
std::vector<Entry> read_index(const fs::path& folder) {
  const InputFile file(folder / kIndexName, kMaxIndexBytes);
  return file.named([&] {
    const auto index = parse_strict(file.read_text(0, file.size()));
    if (!index.is_object()) throw IoError("not a checkpoint index");
    if (const auto schema = count_member(index, "schema"); schema != kSchema) {
      throw UnsupportedError(fmt::format("schema {}, this version reads {}", schema, kSchema));
    }
    const auto list = member<json>(index, "checkpoints", &json::is_array);
    if (list.empty() || list.size() > 2) throw IoError("names neither one nor two checkpoints");
    std::vector<Entry> entries;
    for (const auto& object : list) entries.push_back(entry_from(object));
    return entries;
  });
}

void write_index(const fs::path& folder, const std::vector<Entry>& entries) {
  json list = json::array();
  for (const auto& entry : entries) list.push_back(to_json(entry));
  const json index = {{"schema", kSchema}, {"checkpoints", std::move(list)}};
  write_file_atomically(folder / kIndexName, index.dump(2) + "\n");
}

/// Never a name in use: an index written earlier may point at it.
std::string unused_tensor_name(const fs::path& folder, std::int64_t step) {
  auto name = fmt::format("{}{:09}{}", kTensorPrefix, step, kTensorSuffix);
  for (int copy = 2; fs::exists(folder / name); ++copy) {
    name = fmt::format("{}{:09}-{}{}", kTensorPrefix, step, copy, kTensorSuffix);
  }
  return name;
}

/// Removes tensor files that no entry names and what a killed save left. A file that resists
/// wastes space but harms nothing, so it is no reason to fail a save that is complete.
void remove_unnamed(const fs::path& folder, const std::vector<Entry>& entries) {
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(folder, ignored)) {
    const auto name = item.path().filename().string();
    const bool temporary =
        name.ends_with(kTemporarySuffix) && (name.starts_with(fmt::format(".{}", kTensorPrefix)) ||
                                             name.starts_with(fmt::format(".{}.", kIndexName)));
    const bool named = std::ranges::count(entries, name, &Entry::file) > 0;
    if (temporary || (is_tensor_file(name) && !named)) fs::remove(item.path(), ignored);
  }
}

}  // namespace

bool has_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kIndexName, ignored);
}

void save_checkpoint(const fs::path& folder, const TensorMap& tensors, const CheckpointInfo& info) {
  save_checkpoint_from(folder, sources_of(tensors), info);
}

void save_checkpoint_from(const fs::path& folder, const TensorSources& sources,
                          const CheckpointInfo& info) {
  if (info.step < 0 || info.epoch < 0 || info.samples_drawn < 0) {
    throw InvalidArgument("step, epoch and samples_drawn of a checkpoint must not be negative");
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw IoError(fmt::format("cannot make \"{}\": {}", folder.string(), error.message()));
  }
  std::vector<Entry> entries;
  if (has_checkpoint(folder)) entries = read_index(folder);
  entries.insert(entries.begin(), Entry{info, unused_tensor_name(folder, info.step), ""});
  entries.resize(std::min<std::size_t>(entries.size(), 2));
  to_json(entries.front());  // refuses a bad configuration before anything is written
  entries.front().sha256 = save_safetensors_from(folder / entries.front().file, sources);
  write_index(folder, entries);
  remove_unnamed(folder, entries);
}

Checkpoint load_checkpoint(const fs::path& folder, CheckpointAge age, std::int64_t max_bytes) {
  const auto entries = read_index(folder);
  const auto position = age == CheckpointAge::Newest ? 0u : 1u;
  if (position >= entries.size()) {
    throw IoError(fmt::format("\"{}\" holds no earlier checkpoint", folder.string()));
  }
  const auto& entry = entries[position];
  const InputFile file(folder / entry.file, max_bytes);
  if (sha256_of(file) != entry.sha256) {
    file.refuse(fmt::format(
        "its SHA-256 is not the one in {}: the file was damaged or replaced{}", kIndexName,
        position == 0 && entries.size() == 2
            ? fmt::format("; the checkpoint of step {} is kept beside it", entries[1].info.step)
            : ""));
  }
  return {entry.info, read_safetensors(file).tensors};
}

}  // namespace triptych
