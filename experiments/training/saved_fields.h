// Fields of a saved run, read without the liberties of the JSON library, which turns 1e300 into
// some whole number and -1 into a large one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "experiments/training/run_options.h"

namespace triptych::training {

/// True when `json` is a whole number that a T holds.
template <class T>
bool holds_whole_number(const nlohmann::ordered_json& json) {
  if (json.is_number_unsigned()) return std::in_range<T>(json.get<std::uint64_t>());
  return json.is_number_integer() && std::in_range<T>(json.get<std::int64_t>());
}

/// True when `json` is a value of T, finite if it is a number.
template <class T>
bool holds(const nlohmann::ordered_json& json) {
  if constexpr (std::is_same_v<T, bool>) return json.is_boolean();
  if constexpr (std::is_same_v<T, std::string>) return json.is_string();
  if constexpr (std::is_floating_point_v<T>) {
    return json.is_number() && std::isfinite(static_cast<T>(json.get<double>()));
  }
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return holds_whole_number<T>(json);
  }
  return false;
}

/// Reads the field `name` of `json` into `member`. Throws InvalidArgument, naming it, when it is
/// missing or no such value.
template <class T>
void read_field(const nlohmann::ordered_json& json, const char* name, T& member) {
  const auto found = json.find(name);
  if (found == json.end()) throw InvalidArgument(fmt::format("\"{}\" is missing", name));
  if (!holds<T>(*found)) {
    throw InvalidArgument(fmt::format("\"{}\" cannot be {:.100}", name, found->dump()));
  }
  found->get_to(member);
}

/// The same for a value that may be null.
template <class T>
void read_field(const nlohmann::ordered_json& json, const char* name, std::optional<T>& member) {
  const auto found = json.find(name);
  member.reset();
  if (found != json.end() && found->is_null()) return;
  read_field(json, name, member.emplace());
}

/// The same for a list.
template <class T>
void read_list(const nlohmann::ordered_json& json, const char* name, std::vector<T>& values) {
  const auto found = json.find(name);
  if (found == json.end()) throw InvalidArgument(fmt::format("\"{}\" is missing", name));
  if (!found->is_array()) throw InvalidArgument(fmt::format("\"{}\" must be a list", name));
  values.clear();
  for (const auto& value : *found) {
    if (!holds<T>(value))
      throw InvalidArgument(fmt::format("\"{}\" cannot have {:.100}", name, value.dump()));
    values.push_back(value.template get<T>());
  }
}

/// The JSON of an option's value.
nlohmann::ordered_json json_of(const Value& value);

/// Reads the field of an option from the object that holds it. A field that is only written with
/// another one may be missing. Throws InvalidArgument, which contains the field, when it is wrong.
void read_option(const nlohmann::ordered_json& json, const RunOption& option, const Value& value);

/// Adds the fields of a machine that a checkpoint stores.
void write_machine(nlohmann::ordered_json& json, const ExecutionConfig& machine);

/// Reads them. Throws InvalidArgument, which contains the field.
ExecutionConfig read_machine(const nlohmann::ordered_json& json);

}  // namespace triptych::training
