// Strict parsing of JSON from files, and the version of a file format.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace triptych {

/// Throws IoError for invalid JSON, a repeated key in one object, a NUL, too deep nesting, or too
/// many keys in one object. nlohmann::ordered_json compares each new key with all before it.
template <class Json>
Json parse_strict(const std::string& text) {
  constexpr int max_depth = 64;
  constexpr std::size_t max_keys = 10'000;
  if (text.find('\0') != std::string::npos) throw IoError("the JSON holds a NUL");
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, typename Json::parse_event_t event, Json& parsed) {
    if (depth > max_depth) throw IoError("the JSON is nested too deeply");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed).second) {
      throw IoError(
          fmt::format("key \"{:.100}\" appears twice", parsed.template get<std::string>()));
    }
    if (!keys.empty() && keys.back().size() > max_keys) {
      throw IoError(fmt::format("an object has more than {} keys", max_keys));
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const typename Json::exception& error) {
    throw IoError(fmt::format("not valid JSON: {}", error.what()));
  }
}

/// Checks the version of a file format, the member "schema". `remedy` completes "this version
/// reads schema 2; ". Throws IoError when the version is missing and UnsupportedError when it is
/// another one.
template <class Json>
void require_schema(const Json& document, int schema, std::string_view remedy) {
  const auto found = document.is_object() ? document.find("schema") : document.end();
  if (found == document.end() || !found->is_number_integer()) {
    throw IoError(fmt::format("it has no whole number \"schema\"; this version reads schema {}; {}",
                              schema, remedy));
  }
  if (*found != schema) {
    throw UnsupportedError(fmt::format("it has schema {}; this version reads schema {}; {}",
                                       found->dump(), schema, remedy));
  }
}

}  // namespace triptych
