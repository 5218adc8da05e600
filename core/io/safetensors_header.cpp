// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/base/checked_math.h"
#include "core/io/safetensors.h"

namespace triptych {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxRank = 64;

constexpr std::pair<std::string_view, DType> kKnown[] = {
    {"F32", DType::F32}, {"BF16", DType::BF16}, {"F16", DType::F16}, {"I8", DType::I8},
    {"U8", DType::U8},   {"I32", DType::I32},   {"I64", DType::I64}, {"BOOL", DType::Bool}};

constexpr std::string_view kForeign[] = {"F64", "F8_E4M3", "F8_E5M2", "F8_E8M0",
                                         "I16", "U16",     "U32",     "U64"};

[[noreturn]] void refuse(const std::string& problem) {
  throw IoError("safetensors header: " + problem);
}

DType dtype_of_name(std::string_view tensor, std::string_view name) {
  for (const auto& [known, dtype] : kKnown) {
    if (known == name) return dtype;
  }
  const auto message = fmt::format(
      "tensor \"{:.100}\" has dtype \"{:.100}\"; F32, BF16, F16, I8, U8, I32, I64 and BOOL can be "
      "read",
      tensor, name);
  if (std::ranges::count(kForeign, name) > 0) throw UnsupportedError(message);
  refuse(message);
}

/// Receives the JSON events and accepts exactly the header's form. Memory grows only with accepted
/// entries. Depth: 1 is the header, 2 a tensor or the metadata, 3 a list inside a tensor.
class HeaderReader : public json::json_sax_t {
 public:
  struct Entry {
    std::string name;
    std::optional<DType> dtype;
    std::optional<std::vector<std::int64_t>> shape, offsets;
  };
  std::vector<Entry> entries;
  StringMap metadata;

  bool start_object(std::size_t) override {
    if (depth_ == 2) unexpected("an object");
    if (depth_ == 3) unexpected("an object in a list");
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (depth_ == 2 && !in_metadata_) {
      const auto& entry = entries.back();
      if (!entry.dtype || !entry.shape || !entry.offsets) {
        refuse(fmt::format("tensor \"{:.100}\" lacks dtype, shape or data_offsets", entry.name));
      }
    }
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) return open_entry(name);
    if (in_metadata_ && !metadata.try_emplace(name).second) duplicate(name);
    key_ = name;
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata_) {
      metadata[key_] = value;
      return true;
    }
    if (depth_ != 2 || key_ != "dtype") unexpected("a string");
    if (entries.back().dtype) duplicate(key_);
    entries.back().dtype = dtype_of_name(entries.back().name, value);
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || (key_ != "shape" && key_ != "data_offsets")) {
      unexpected("a list");
    }
    if (list()) duplicate(key_);
    list().emplace();
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ != 3) unexpected("a number");
    if (!std::in_range<std::int64_t>(value)) refuse("a number exceeds 63 bits");
    if (list()->size() >= kMaxRank) refuse("a list is too long");
    list()->push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    unexpected("a number that is no 64-bit integer");
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool binary(binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    refuse(fmt::format("not valid JSON at byte {}", position));
  }

 private:
  bool open_entry(const std::string& name) {
    if (!names_.insert(name).second) duplicate(name);
    in_metadata_ = name == "__metadata__";
    if (!in_metadata_) entries.push_back({name, {}, {}, {}});
    key_ = name;
    return true;
  }
  std::optional<std::vector<std::int64_t>>& list() {
    return key_ == "shape" ? entries.back().shape : entries.back().offsets;
  }
  [[noreturn]] void unexpected(std::string_view what) const {
    refuse(fmt::format("{} where it does not belong, after key \"{:.100}\"", what, key_));
  }
  [[noreturn]] static void duplicate(const std::string& name) {
    refuse(fmt::format("key \"{:.100}\" appears twice", name));
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  std::string key_;
  std::set<std::string> names_;
};

SafetensorsEntry checked_entry(HeaderReader::Entry& raw, std::int64_t data_bytes) {
  const auto& offsets = *raw.offsets;
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_bytes) {
    refuse(fmt::format("tensor \"{:.100}\" has offsets [{}] in {} bytes of data", raw.name,
                       fmt::join(offsets, ", "), data_bytes));
  }
  SafetensorsEntry entry{std::move(raw.name), {*raw.dtype, {}}, offsets[0]};
  std::size_t bytes = 0;
  try {
    entry.spec.shape = Shape(std::move(*raw.shape));
    bytes = entry.spec.bytes();
  } catch (const InvalidArgument& error) {
    refuse(fmt::format("tensor \"{:.100}\": {}", entry.name, error.what()));
  }
  if (bytes != static_cast<std::size_t>(offsets[1] - offsets[0])) {
    refuse(fmt::format("tensor \"{:.100}\" is {} ({} bytes), its range has {} bytes", entry.name,
                       to_string(entry.spec), bytes, offsets[1] - offsets[0]));
  }
  return entry;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, std::int64_t data_bytes) {
  // The JSON lexer takes a NUL for the end of its input and skips the rest.
  if (!text.starts_with('{') || text.find('\0') != std::string_view::npos) {
    refuse("does not start with \"{\" or holds a NUL");
  }
  HeaderReader reader;
  if (!json::sax_parse(text.begin(), text.end(), &reader)) refuse("not valid JSON");

  SafetensorsHeader header;
  header.metadata = std::move(reader.metadata);
  for (auto& raw : reader.entries) header.entries.push_back(checked_entry(raw, data_bytes));
  std::ranges::stable_sort(header.entries, {}, [](const SafetensorsEntry& entry) {
    return std::pair(entry.offset, entry.spec.bytes());
  });
  std::int64_t end = 0;
  for (const auto& entry : header.entries) {
    if (entry.offset != end) {
      refuse(fmt::format("tensor \"{:.100}\" starts at {}, the one before ends at {}", entry.name,
                         entry.offset, end));
    }
    end += static_cast<std::int64_t>(entry.spec.bytes());
  }
  if (end != data_bytes) {
    refuse(fmt::format("tensors end at {}, the data at {}", end, data_bytes));
  }
  return header;
}

}  // namespace triptych
