// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "core/io/base64.h"
#include "experiments/compare/report_json.h"
#include "experiments/measure/energy_json.h"
#include "experiments/page/record.h"

namespace triptych::compare {
namespace {

Json timing_json(const Timing& timing) {
  auto json = figure_json(timing.seconds, "s", timing.kind, timing.source);
  if (timing.samples.size() > 1) json["samples"] = timing.samples;
  return json;
}

Json masks_json(const MachineResult& result, const MachineResult& first) {
  Json list = Json::array();
  for (std::size_t i = 0; i < result.masks.size(); ++i) {
    const auto& mask = result.masks[i];
    const auto &own = mask.prediction.samples, &other = first.masks[i].prediction.samples;
    std::int64_t different = 0;
    for (std::size_t p = 0; p < other.size(); ++p) different += own[p] != other[p];
    list.push_back({{"image", mask.name},
                    {"width", mask.input.width},
                    {"height", mask.input.height},
                    {"input_png", base64(encode_png(mask.input))},
                    {"truth_png", base64(encode_png(mask.truth))},
                    {"prediction_png", base64(encode_png(mask.prediction))},
                    {"different_pixels", different}});
  }
  return list;
}

Json epochs_json(const MachineResult& result) {
  Json list = Json::array();
  const bool timed = !result.request.stands_in();
  for (std::size_t i = 0; i < result.epochs.size(); ++i) {
    const auto& epoch = result.epochs[i];
    Json train, evaluate;
    if (timed) {
      train = figure_json(result.epoch.samples[i], "s", result.epoch.kind);
      evaluate = figure_json(epoch.evaluate_time.seconds, "s", epoch.evaluate_time.kind,
                             result.anatomy.host_seconds > 0 ? "the array alone" : "");
    }
    Json json = {{"epoch", epoch.epoch}, {"loss", epoch.loss}};
    json.update(to_json(page::values_of(segmentation::MapScores(epoch.scores))));
    json.update({{"classes", page::to_json(epoch.scores.classes)},
                 {"train_time", std::move(train)},
                 {"evaluate_time", std::move(evaluate)}});
    list.push_back(std::move(json));
  }
  return list;
}

Json layers_json(const StepAnatomy& anatomy) {
  Json list = Json::array();
  for (const auto& layer : anatomy.layers) {
    Json time, intensity;
    if (layer.time) time = figure_json(layer.time->seconds, "s", layer.time->kind);
    if (layer.cost.bytes > 0) intensity = layer.cost.flops / layer.cost.bytes;
    list.push_back({{"node", layer.node},
                    {"op", layer.op},
                    {"pass", layer.pass},
                    {"stage", layer.stage},
                    {"kernel", layer.kernel},
                    {"device", layer.device},
                    {"why", layer.why},
                    {"time", std::move(time)},
                    {"flops", layer.cost.flops},
                    {"bytes", layer.cost.bytes},
                    {"intensity", std::move(intensity)}});
  }
  return list;
}

/// A share of the step on one device.
struct DeviceShare {
  std::int64_t nodes = 0;
  double flops = 0;
  std::optional<Duration> time;
};

Json placement_json(const StepAnatomy& anatomy) {
  std::map<std::string, DeviceShare> places;
  for (const auto& layer : anatomy.layers) {
    auto& place = places[layer.device];
    ++place.nodes;
    place.flops += layer.cost.flops;
    if (!layer.time) continue;
    if (!place.time) place.time = Duration{0, layer.time->kind};
    place.time->seconds += layer.time->seconds;
  }
  Json list = Json::array();
  for (const auto& [device, place] : places) {
    Json time;
    if (place.time) time = figure_json(place.time->seconds, "s", place.time->kind);
    list.push_back({{"device", device},
                    {"nodes", place.nodes},
                    {"flops", place.flops},
                    {"time", std::move(time)}});
  }
  return list;
}

Json figure_of(const machines::Figure& figure, std::string_view unit) {
  return figure_json(figure.value, unit, figure.kind, figure.source);
}

Json roofline_json(const std::optional<Ceilings>& ceilings) {
  if (!ceilings) return nullptr;
  Json levels = Json::array();
  for (const auto& [name, bandwidth] : ceilings->levels)
    levels.push_back({{"name", name}, {"bandwidth", figure_of(bandwidth, "byte/s")}});
  return {{"peak", figure_of(ceilings->peak, "FLOP/s")},
          {"memory", figure_of(ceilings->memory, "byte/s")},
          {"levels", std::move(levels)},
          {"source", ceilings->source}};
}

Cost step_cost(const StepAnatomy& anatomy) {
  Cost cost;
  for (const auto& layer : anatomy.layers) {
    cost.flops += layer.cost.flops;
    cost.bytes += layer.cost.bytes;
  }
  return cost;
}

/// Work of the machine in a step: recomputation, and of an array the waste at its edges.
double executed_flops(const MachineResult& result) {
  double flops = step_cost(result.anatomy).flops;
  if (result.reuse && result.reuse->executed_macs > 0)
    flops += 2 * (result.reuse->executed_macs - result.reuse->macs);
  return flops;
}

Json utilisation_json(const MachineResult& result) {
  if (!result.ceilings || result.step.seconds <= 0) return nullptr;
  const auto& peak = result.ceilings->peak;
  const bool measured = result.step.kind == TimeKind::Measured && peak.kind == TimeKind::Measured;
  const auto kind = measured ? TimeKind::Measured : TimeKind::Modelled;
  const auto share = [&](double flops) {
    return Json{{"value", flops / (result.step.seconds * peak.value)},
                {"kind", to_string(kind)},
                {"peak", figure_of(peak, "FLOP/s")},
                {"flops", flops}};
  };
  return {{"mfu", share(result.anatomy.model_flops)}, {"hfu", share(executed_flops(result))}};
}

Json reuse_json(const std::optional<Reuse>& reuse) {
  Json list = Json::array();
  if (!reuse) return list;
  for (const auto& level : reuse->levels) {
    list.push_back({{"level", level.level},
                    {"reads_per_mac", figure_json(level.reads / reuse->macs, "1", level.kind)},
                    {"how", level.how}});
  }
  return list;
}

Json energy_json(const MachineResult& result, const machines::EnergyTable& table) {
  if (!result.reuse) return nullptr;
  return measure::energy_json(
      energy_per_image(*result.reuse, result.anatomy, result.step_images, table), table,
      "per_image");
}

/// Members that only machines with times have.
void add_times(Json& json, const MachineResult& result) {
  json["times"] = nullptr;
  json["throughput"] = nullptr;
  if (result.request.stands_in()) return;
  const double image = result.image_seconds();
  json["times"] = {{"epoch", timing_json(result.epoch)},
                   {"step", timing_json(result.step)},
                   {"image", figure_json(image, "s", result.epoch.kind)},
                   {"inference_image", timing_json(result.inference)}};
  if (image > 0) json["throughput"] = figure_json(1 / image, "image/s", result.epoch.kind);
}

}  // namespace

Json machine_json(const MachineResult& result, const MachineResult& first,
                  const machines::EnergyTable& table) {
  const auto& config = result.request.config;
  const auto cost = step_cost(result.anatomy);
  Json json = {{"name", result.request.label},
               {"backend", config.backend},
               {"simulate", config.simulate ? name_of(*config.simulate) : ""},
               {"device", result.device},
               {"target_clock", !target_clock_note(result.request).empty()},
               {"contract", to_string(config.contract)},
               {"available", true},
               {"checks_bits_only", result.request.stands_in()},
               {"threads", result.threads},
               {"losses", result.losses},
               {"epochs", epochs_json(result)},
               {"weights_sha256", result.weights_sha256},
               {"masks_sha256", result.masks_sha256}};
  json.update(to_json(page::values_of(result.boundary)));
  json["masks"] = masks_json(result, first);
  add_times(json, result);
  json.update({{"flops_per_step", cost.flops},
               {"bytes_per_step", cost.bytes},
               {"layers", layers_json(result.anatomy)},
               {"placement", placement_json(result.anatomy)},
               {"roofline", roofline_json(result.ceilings)},
               {"utilisation", utilisation_json(result)},
               {"reuse", reuse_json(result.reuse)},
               {"energy", energy_json(result, table)}});
  return json;
}

}  // namespace triptych::compare
