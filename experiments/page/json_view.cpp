// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/json_view.h"

#include <limits>

#include "core/base/mapped.h"
#include "experiments/page/format.h"

namespace triptych::page {
namespace {

const Json kMissing = nullptr;

std::string pointer_token(std::string_view key) {
  std::string token;
  for (const char c : key) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

}  // namespace

JsonView JsonView::operator[](std::string_view key) const {
  if (!json_->is_object()) return {kMissing, ""};
  const auto found = json_->find(key);
  if (found == json_->end()) return {kMissing, ""};
  return {*found, path_ + "/" + pointer_token(key)};
}

JsonView JsonView::operator[](std::size_t index) const {
  if (index >= size()) return {kMissing, ""};
  return {(*json_)[index], path_ + "/" + std::to_string(index)};
}

std::vector<JsonView> JsonView::items() const {
  std::vector<JsonView> list;
  for (std::size_t i = 0; i < size(); ++i) list.push_back((*this)[i]);
  return list;
}

double JsonView::number() const {
  return json_->is_number() ? json_->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string JsonView::text() const {
  if (json_->is_string()) return json_->get<std::string>();
  if (json_->is_number_integer()) return json_->dump();
  if (json_->is_number()) return format_exact(number());
  if (json_->is_boolean()) return flag() ? "yes" : "no";
  return "";
}

std::vector<std::string> JsonView::texts() const {
  return mapped<std::string>(items(), [](const auto& item) { return item.text(); });
}

}  // namespace triptych::page
