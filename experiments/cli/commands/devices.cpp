// `triptych devices`: every machine of this build, what it is, or why it cannot be used.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "backends/all_backends.h"
#include "experiments/cli/commands.h"
#include "experiments/cli/output.h"

namespace triptych::cli {
namespace {

Json libraries_json(const Backend& backend) {
  Json list = Json::array();
  for (const auto& library : backend.libraries()) {
    Json entry = {{"name", library.name}, {"available", !library.version.empty()}};
    if (library.version.empty()) {
      entry["reason"] = library.reason;
    } else {
      entry["version"] = library.version;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

/// "cuDNN 9.19.0, NCCL: not there (no nccl.h was found)".
std::string list_of_libraries(const Backend& backend) {
  std::string text;
  for (const auto& library : backend.libraries()) {
    if (!text.empty()) text += ", ";
    text += library.version.empty()
                ? fmt::format("{}: not there ({})", library.name, library.reason)
                : fmt::format("{} {}", library.name, library.version);
  }
  return text;
}

Json devices_json() {
  Json results = Json::array();
  for (const Backend* backend : all_backends()) {
    const auto availability = backend->availability();
    Json entry = {{"backend", backend->name()}, {"available", availability.available}};
    if (!availability.available) {
      entry["reason"] = availability.reason;
      entry["remedy"] = availability.remedy;
    }
    entry["libraries"] = libraries_json(*backend);
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
    const auto libraries = list_of_libraries(*backend);
    if (!libraries.empty()) fmt::print("{}: libraries: {}\n", backend->name(), libraries);
    for (const auto& info : backend->devices()) {
      fmt::print("{}: {} (its times are {})\n", info.name, info.description,
                 to_string(info.time_kind));
      for (const auto& [key, value] : info.properties) fmt::print("  {}: {}\n", key, value);
    }
  }
}

}  // namespace

void add_devices_command(Command& app, Context& context) {
  auto command = app.add_subcommand("devices", "List the machines that can be used");
  command.add_flag("--json", context.json, "print JSON");
  command.callback([&context] {
    if (context.json) {
      print_document("devices", devices_json());
    } else {
      print_devices();
    }
  });
}

}  // namespace triptych::cli
