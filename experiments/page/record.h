// Records in reports: their values, listed once (core/base/report_field.h), as JSON, CSV and rows
// of tables.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/report_field.h"
#include "experiments/page/json.h"

namespace triptych::page {

/// Null where there is no value.
struct ReportedValue {
  ReportField field;
  Json value;
};
using ReportedValues = std::vector<ReportedValue>;

template <class T>
Json value_json(const T& value) {
  return value;
}
template <class T>
Json value_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class Record>
ReportedValues values_of(const Record& record) {
  ReportedValues values;
  const auto add = [&](const ReportField& field, const auto& value) {
    values.push_back({field, value_json(value)});
  };
  Record::visit(record, add);
  return values;
}

/// The same fields for a record that is missing, each without a value.
template <class Record>
ReportedValues values_of(const std::optional<Record>& record) {
  auto values = values_of(record.value_or(Record{}));
  for (auto& one : values)
    if (!record) one.value = nullptr;
  return values;
}

template <class Record>
std::vector<ReportField> fields_of() {
  std::vector<ReportField> fields;
  for (const auto& one : values_of(Record{})) fields.push_back(one.field);
  return fields;
}

ReportedValues operator+(ReportedValues first, const ReportedValues& second);

/// An object with a member for each value.
Json to_json(const ReportedValues& values);

template <class Record>
Json to_json(const std::vector<Record>& records) {
  Json list = Json::array();
  for (const auto& record : records) list.push_back(to_json(values_of(record)));
  return list;
}

/// Heads and cells of a terminal's table, behind those in `first`. A share has four digits, pixels
/// have two, and a missing value is "-".
std::vector<std::string> heads(std::vector<std::string> first, const ReportedValues& values);
std::vector<std::string> cells(std::vector<std::string> first, const ReportedValues& values);

/// ",dice_2,iou_2" for the suffix "_2".
std::string csv_heads(const ReportedValues& values, const std::string& suffix = {});
/// ",0.912345,": six digits after the point, whole numbers as they are, nothing for a missing one.
std::string csv_cells(const ReportedValues& values);

}  // namespace triptych::page
