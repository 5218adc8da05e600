// The configuration of a run and its machine as JSON: the fields of the table of options.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "core/base/file_text.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/run_options.h"
#include "experiments/training/saved_fields.h"

namespace triptych::training {

using Json = nlohmann::ordered_json;

Json json_of(const Value& value) {
  const auto json = []<class T>(const T& member) -> Json {
    if constexpr (std::is_same_v<T, TextValue>) {
      return member.text();
    } else {
      return *member;
    }
  };
  return std::visit(json, value);
}

namespace {

/// "data" of "data.source".
std::string object_of(std::string_view field) {
  const auto point = field.find('.');
  return std::string(point == field.npos ? "" : field.substr(0, point));
}

void write_field(Json& json, std::string_view field, const Value& value) {
  const auto object = object_of(field);
  auto& holder = object.empty() ? json : json[object];
  holder[std::string(last_part(field))] = json_of(value);
}

void read_text(const Json& json, const char* name, const TextValue& member) {
  std::string text;
  read_field(json, name, text);
  try {
    member.take(text);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("\"{}\" {}", name, error.what()));
  }
}

void read_value(const Json& json, const char* name, const Value& value) {
  const auto read = [&]<class T>(const T& member) {
    if constexpr (std::is_same_v<T, TextValue>) {
      read_text(json, name, member);
    } else if constexpr (requires { member->push_back({}); } && !std::is_same_v<T, std::string*>) {
      read_list(json, name, *member);
    } else {
      read_field(json, name, *member);
    }
  };
  std::visit(read, value);
}

/// False for a field that another one makes superfluous.
bool is_written(const RunOption& option, RunConfig& config) {
  if (option.written_with.empty()) return option.stored;
  const auto other = std::ranges::find(run_options(), option.written_with, &RunOption::field);
  RunConfig usual;
  return !same_value(*value_in(*other, config), *value_in(*other, usual));
}

Json model_json(ModelConfig model) {
  Json json;
  for (const auto& option : run_options()) {
    if (const auto* member = std::get_if<ModelMember>(&option.member))
      json[std::string(last_part(option.field))] = json_of((*member)(model));
  }
  const auto* network = imported_network(model);
  if (network == nullptr) return json;
  json["network"] = {
      {"sha256", network->sha256()}, {"frozen", network->frozen()}, {"rows", network->rows()}};
  json["maps"] = model.maps;
  return json;
}

/// A preset, or another one, which attach_network must complete.
void read_model(const Json& json, RunConfig& config) {
  if (!json.contains("network")) {
    config.model = model_preset(json.at("name").get<std::string>());
    return;
  }
  const auto& network = json.at("network");
  config.model.architecture = Architecture::Given;
  read_field(network, "sha256", config.network.sha256);
  read_list(network, "frozen", config.network.frozen);
  for (const auto& row : network.at("rows"))
    read_list(Json{{"rows", row}}, "rows", config.network.rows.emplace_back());
  read_field(json, "maps", config.model.maps);
}

void require_mesh_fits(const parallel::Strategy& strategy) {
  try {
    parallel::validate(strategy);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("\"strategy\" and \"mesh\": {}", error.what()));
  }
}

}  // namespace

void read_option(const Json& json, const RunOption& option, const Value& value) {
  const auto object = object_of(option.field);
  const std::string name(last_part(option.field));
  const Json& holder = object.empty() ? json : json.at(object);
  if (option.written_with.empty() || holder.contains(name)) read_value(holder, name.c_str(), value);
}

void write_machine(Json& json, const ExecutionConfig& machine) {
  auto copy = machine;
  for (const auto& option : run_options()) {
    const auto value = value_in(option, copy);
    if (value && option.stored) write_field(json, option.field, *value);
  }
}

ExecutionConfig read_machine(const Json& json) {
  ExecutionConfig machine;
  for (const auto& option : run_options()) {
    const auto value = value_in(option, machine);
    if (!value || !option.stored) continue;
    read_option(json, option, *value);
    require_within(option.field, option.limits, *value);
  }
  require_mesh_fits(machine.parallel.strategy);
  return machine;
}

std::string to_json(const ModelConfig& model) { return model_json(model).dump(); }

std::string to_json(const RunConfig& config) {
  auto copy = config;
  Json json = {{"model", model_json(config.model)}};
  for (const auto& option : run_options()) {
    const auto* member = std::get_if<RunMember>(&option.member);
    if (member != nullptr && is_written(option, copy))
      write_field(json, option.field, (*member)(copy));
  }
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    throw InvalidArgument(fmt::format(
        "a run keeps its paths and names in UTF-8, and one of its data (\"{}\"), its list or its "
        "start is not; rename it",
        shown(config.data.images.empty() ? config.data.source : config.data.images)));
  }
}

RunConfig run_config_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    RunConfig config;
    read_model(json.at("model"), config);
    for (const auto& option : run_options()) {
      if (const auto value = value_in(option, config)) read_option(json, option, *value);
    }
    validate(config);
    return config;
  } catch (const Json::exception& error) {
    throw InvalidArgument(fmt::format("the run's configuration is not readable: {}", error.what()));
  }
}

}  // namespace triptych::training
