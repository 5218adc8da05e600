// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/epoch_json.h"

#include <fmt/format.h>

#include "experiments/training/saved_fields.h"

namespace triptych::training {
namespace {

using Json = nlohmann::ordered_json;

/// Calls visit(field, member) for every field, for reading and writing.
template <class Report, class Visitor>
void visit_epoch(Report& report, const Visitor& visit) {
  visit({"epoch"}, report.epoch);
  visit({"steps"}, report.steps);
  visit({"loss"}, report.loss);
  visit({"images"}, report.scores.images);
  visit({"mean_dice"}, report.scores.mean_dice);
  visit({"mean_iou"}, report.scores.mean_iou);
  visit({"pooled_dice"}, report.scores.pooled_dice);
  visit({"pooled_iou"}, report.scores.pooled_iou);
  visit({"pixel_accuracy"}, report.scores.pixel_accuracy);
  visit({"pixel_error"}, report.scores.pixel_error);
  visit({"train_seconds"}, report.train_time.seconds);
  visit({"evaluate_seconds"}, report.evaluate_time.seconds);
  visit({"images_per_second"}, report.images_per_second);
}

TimeKind time_kind_from(const std::string& name) {
  for (const auto kind :
       {TimeKind::Measured, TimeKind::Simulated, TimeKind::Modelled, TimeKind::Recorded}) {
    if (to_string(kind) == name) return kind;
  }
  throw IoError(fmt::format("unknown kind of time \"{}\"", name));
}

template <class T>
const T& value_json(const T& value) {
  return value;
}

Json value_json(const segmentation::Score& score) { return score ? Json(*score) : Json(); }

}  // namespace

Json epoch_json(const EpochReport& report) {
  Json json;
  const auto to = [](Json& object) {
    return [&object](const ReportField& field, const auto& member) {
      object[field.key] = value_json(member);
    };
  };
  visit_epoch(report, to(json));
  json["validation_loss"] = report.validation_loss;
  json["classes"] = Json::array();
  for (const auto& scores : report.scores.classes) {
    const auto write = to(json["classes"].emplace_back());
    segmentation::ClassScores::visit(scores, write);
  }
  json["time_kind"] = to_string(report.train_time.kind);
  return json;
}

EpochReport epoch_from_json(const Json& json) {
  EpochReport report;
  const auto from = [](const Json& object) {
    return [&object](const ReportField& field, auto& member) {
      read_field(object, field.key, member);
    };
  };
  visit_epoch(report, from(json));
  read_field(json, "validation_loss", report.validation_loss);
  for (const auto& scores : json.at("classes")) {
    const auto read = from(scores);
    segmentation::ClassScores::visit(report.scores.classes.emplace_back(), read);
  }
  const auto kind = time_kind_from(json.at("time_kind").get<std::string>());
  report.train_time.kind = report.evaluate_time.kind = kind;
  return report;
}

Json open_epoch_json(const OpenEpoch& epoch) {
  return {{"steps", epoch.steps},
          {"train_seconds", epoch.time.seconds},
          {"time_kind", to_string(epoch.time.kind)}};
}

OpenEpoch open_epoch_from_json(const Json& json) {
  OpenEpoch epoch;
  read_field(json, "steps", epoch.steps);
  read_field(json, "train_seconds", epoch.time.seconds);
  epoch.time.kind = time_kind_from(json.at("time_kind").get<std::string>());
  return epoch;
}

}  // namespace triptych::training
