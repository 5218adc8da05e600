// Reads the JSON files of machines and energy tables: strict members, and errors with their place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace triptych::machines {

/// A JSON value and where it stands, for messages.
class Field {
 public:
  using Json = nlohmann::ordered_json;

  Field(const Json& json, std::string origin, std::string path)
      : json_(json), origin_(std::move(origin)), path_(std::move(path)) {}

  [[noreturn]] void refuse(const std::string& problem) const {
    throw InvalidArgument(
        fmt::format("{}: {} {}", origin_, path_.empty() ? "the file" : path_, problem));
  }

  /// An object with no other members than these.
  const Field& object(std::initializer_list<std::string_view> members) const {
    if (!json_.is_object()) refuse("must be an object");
    for (const auto& [name, value] : json_.items()) {
      if (std::ranges::find(members, name) == members.end()) {
        refuse(fmt::format("has no member \"{}\"; its members are {}", name,
                           fmt::join(members, ", ")));
      }
    }
    return *this;
  }
  bool has(const char* name) const { return json_.contains(name); }
  Field at(const char* name) const {
    if (!json_.contains(name)) refuse(fmt::format("must have a member \"{}\"", name));
    return {json_.at(name), origin_, path_.empty() ? name : path_ + "." + name};
  }

  std::string text() const {
    if (!json_.is_string() || json_.get_ref<const std::string&>().empty()) {
      refuse("must be a text that is not empty");
    }
    return json_.get<std::string>();
  }
  double number(double least) const {
    const double value = json_.is_number() ? json_.get<double>() : std::nan("");
    if (!(std::isfinite(value) && value >= least)) {
      refuse(fmt::format("must be a finite number of at least {}", least));
    }
    return value;
  }
  template <class Visit>
  void each(const Visit& visit) const {
    if (!json_.is_array()) refuse("must be a list");
    for (std::size_t i = 0; i < json_.size(); ++i) {
      visit(Field(json_[i], origin_, fmt::format("{}[{}]", path_, i)));
    }
  }
  template <class Visit>
  void each_member(const Visit& visit) const {
    if (!json_.is_object()) refuse("must be an object");
    for (const auto& [name, value] : json_.items()) {
      visit(name, Field(value, origin_, path_ + "." + name));
    }
  }

 private:
  const Json& json_;
  std::string origin_, path_;
};

}  // namespace triptych::machines
