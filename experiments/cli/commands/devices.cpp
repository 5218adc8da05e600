// `triptych devices`: every machine of this build, what it is, or why it cannot be used.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "backends/all_backends.h"
#include "experiments/cli/commands.h"
#include "experiments/cli/output.h"

namespace triptych::cli {
namespace {

Json devices_json() {
  Json results = Json::array();
  for (const Backend* backend : all_backends()) {
    const auto availability = backend->availability();
    Json entry = {{"backend", backend->name()}, {"available", availability.available}};
    if (!availability.available) {
      entry["reason"] = availability.reason;
      entry["remedy"] = availability.remedy;
    }
    entry["devices"] = Json::array();
    for (const auto& info : backend->devices()) {
      entry["devices"].push_back({{"name", info.name},
                                  {"description", info.description},
                                  {"time_kind", to_string(info.time_kind)},
                                  {"properties", info.properties}});
    }
    results.push_back(std::move(entry));
  }
  return results;
}

void print_devices() {
  for (const Backend* backend : all_backends()) {
    const auto availability = backend->availability();
    if (!availability.available) {
      fmt::print("{}: not available: {}\n", backend->name(), availability.reason);
      if (!availability.remedy.empty()) fmt::print("  to add it: {}\n", availability.remedy);
    }
    for (const auto& info : backend->devices()) {
      fmt::print("{}: {} (its times are {})\n", info.name, info.description,
                 to_string(info.time_kind));
      for (const auto& [key, value] : info.properties) fmt::print("  {}: {}\n", key, value);
    }
  }
}

}  // namespace

void add_devices_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("devices", "List the machines that can be used");
  command->add_flag("--json", context.json, "print JSON");
  command->callback([&context] {
    if (context.json) {
      print_document("devices", devices_json());
    } else {
      print_devices();
    }
  });
}

}  // namespace triptych::cli
