// SPDX-License-Identifier: Apache-2.0
#include "core/io/checkpoint_metadata.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/io/sha256.h"
#include "core/io/strict_json.h"

namespace triptych::internal {
namespace {

using nlohmann::json;

constexpr int kSchema = 3;
constexpr std::string_view kRemedy = "use the version of Triptych that wrote it, or train again";

json parse_object(const std::string& text, std::string_view what) {
  try {
    auto object = parse_strict<json>(text);
    if (object.is_object()) return object;
  } catch (const IoError& error) {
    throw InvalidArgument(fmt::format("{} of a checkpoint: {}", what, error.what()));
  }
  throw InvalidArgument(fmt::format("{} of a checkpoint must be a JSON object", what));
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

CheckpointEntry entry_from(const json& object) {
  CheckpointEntry entry;
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

/// Digest of the values, however they are laid out: keys in ascending order, no spaces.
std::string digest_of(const json& values) {
  Sha256 hash;
  const auto text = values.dump();
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

}  // namespace

bool is_tensor_file(std::string_view name) {
  return name.starts_with(kTensorPrefix) && name.ends_with(kTensorSuffix) &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

std::string to_text(const CheckpointEntry& entry) {
  json document = {{"schema", kSchema},
                   {"step", entry.info.step},
                   {"epoch", entry.info.epoch},
                   {"seed", entry.info.seed},
                   {"samples_drawn", entry.info.samples_drawn},
                   {"model", parse_object(entry.info.model_json, "model_json")},
                   {"run", parse_object(entry.info.run_json, "run_json")},
                   {"file", entry.file},
                   {"sha256", entry.sha256}};
  document["metadata_sha256"] = digest_of(document);
  return document.dump(2) + "\n";
}

CheckpointEntry parse_checkpoint(const std::string& text) {
  auto document = parse_strict<json>(text);
  require_schema(document, kSchema, kRemedy);
  const auto digest = member<std::string>(document, "metadata_sha256", &json::is_string);
  document.erase("metadata_sha256");
  if (digest_of(document) != digest) {
    throw IoError("its values do not have the SHA-256 that it states: it was damaged or edited");
  }
  return entry_from(document);
}

}  // namespace triptych::internal
