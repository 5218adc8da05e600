// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/record.h"

#include <fmt/format.h>

#include <string_view>

#include "experiments/page/text_table.h"

namespace triptych::page {
namespace {

std::string text_of(const ReportedValue& one) {
  const std::string_view unit = one.field.unit;
  if (one.value.is_null()) return "-";
  if (unit == "%") return format_score(one.value.get<double>());
  return unit == "px" ? fmt::format("{:.2f}", one.value.get<double>()) : one.value.dump();
}

}  // namespace

ReportedValues operator+(ReportedValues first, const ReportedValues& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Json to_json(const ReportedValues& values) {
  Json json = Json::object();
  for (const auto& one : values) json[one.field.key] = one.value;
  return json;
}

std::vector<std::string> heads(std::vector<std::string> first, const ReportedValues& values) {
  for (const auto& one : values) first.emplace_back(one.field.name);
  return first;
}

std::vector<std::string> cells(std::vector<std::string> first, const ReportedValues& values) {
  for (const auto& one : values) first.push_back(text_of(one));
  return first;
}

std::string csv_heads(const ReportedValues& values, const std::string& suffix) {
  std::string text;
  for (const auto& one : values) text += fmt::format(",{}{}", one.field.key, suffix);
  return text;
}

std::string csv_cells(const ReportedValues& values) {
  std::string text;
  for (const auto& [field, value] : values) {
    text += ',';
    if (value.is_number_float()) text += fmt::format("{:.6f}", value.get<double>());
    if (value.is_number_integer()) text += value.dump();
  }
  return text;
}

}  // namespace triptych::page
