// `triptych devices`: every backend of this build with its properties, or the reason why it is not
// available.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "backends/all_backends.h"
#include "core/base/console.h"
#include "experiments/app/commands.h"
#include "experiments/app/output.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

page::Json libraries_json(const Backend& backend) {
  page::Json list = page::Json::array();
  for (const auto& library : backend.libraries()) {
    page::Json entry = {{"name", library.name}, {"available", !library.version.empty()}};
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

page::Json devices_json() {
  page::Json results = page::Json::array();
  for (const Backend* backend : all_backends()) {
    const auto availability = backend->availability();
    page::Json entry = {{"backend", backend->name()}, {"available", availability.available}};
    if (!availability.available) {
      entry["reason"] = availability.reason;
      entry["remedy"] = availability.remedy;
    }
    entry["libraries"] = libraries_json(*backend);
    entry["devices"] = page::Json::array();
    for (const auto& info : backend->devices()) {
      entry["devices"].push_back({{"name", info.name},
                                  {"description", info.description},
                                  {"time_kind", to_string(info.time_kind)},
                                  {"properties", to_properties(info.facts)}});
    }
    results.push_back(std::move(entry));
  }
  return results;
}

/// "l2_bytes 2097152, threads 2".
std::string list_of_properties(const DeviceInfo& info) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : to_properties(info.facts))
    parts.push_back(fmt::format("{} {}", key, value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// A few lines for each backend. The table omits the properties of a backend with many machines.
/// --json has them.
void print_backend(const Backend& backend) {
  const auto print = [](const std::string& text) { print_text("{}", page::wrapped(text, 4)); };
  const auto availability = backend.availability();
  if (!availability.available) {
    print(fmt::format("{}: not available: {}", backend.name(), availability.reason));
    if (!availability.remedy.empty()) print(fmt::format("  to add it: {}", availability.remedy));
  }
  const auto libraries = list_of_libraries(backend);
  if (!libraries.empty()) print(fmt::format("{}: libraries: {}", backend.name(), libraries));
  const auto devices = backend.devices();
  if (devices.size() == 1) {
    const auto& info = devices.front();
    print(
        fmt::format("{}: {} (times: {})", info.name, info.description, to_string(info.time_kind)));
    print("  " + list_of_properties(info));
  } else if (!devices.empty()) {
    print(fmt::format("{}: {} machines (times: {})", backend.name(), devices.size(),
                      to_string(devices.front().time_kind)));
    for (const auto& info : devices) print(fmt::format("  {}: {}", info.name, info.description));
  }
}

void print_devices() {
  for (const Backend* backend : all_backends()) print_backend(*backend);
}

}  // namespace

void describe_devices(Command& command, Context& context) {
  command.add_flag("--json", context.json, "print JSON");
  command.callback([&context] {
    if (context.json) {
      print_document("devices", devices_json());
    } else {
      print_devices();
    }
  });
}

}  // namespace triptych::app
