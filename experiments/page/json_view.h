// A value of the report together with its position, so that the page can cite it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/page/json.h"

namespace triptych::page {

/// Missing members and members of another type read as null. So an incomplete report gives an
/// incomplete page. Holds a reference to the report.
class JsonView {
 public:
  explicit JsonView(const Json& json) : json_(&json) {}

  JsonView operator[](std::string_view key) const;
  JsonView operator[](std::size_t index) const;
  /// Elements of an array. None for anything else.
  std::vector<JsonView> items() const;
  std::size_t size() const { return json_->is_array() ? json_->size() : 0; }

  bool null() const { return json_->is_null(); }
  bool is_object() const { return json_->is_object(); }
  bool is_string() const { return json_->is_string(); }
  /// NaN if it is not a number.
  double number() const;
  /// Strings as they are, numbers and booleans written, else empty.
  std::string text() const;
  bool flag() const { return json_->is_boolean() && json_->get<bool>(); }
  std::vector<std::string> texts() const;

  const Json& json() const { return *json_; }
  /// The JSON pointer (RFC 6901) from the report's root. Empty for missing members.
  const std::string& path() const { return path_; }

 private:
  JsonView(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {}

  const Json* json_;
  std::string path_;
};

}  // namespace triptych::page
