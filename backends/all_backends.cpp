// SPDX-License-Identifier: Apache-2.0
#include "backends/all_backends.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <string>

#include "backends/backend_list.h"
#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/base/shared_library.h"
#include "core/ops/all_ops.h"
#include "core/runtime/plugin.h"
#include "core/runtime/plugin_interface.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;

/// The parts of the build and of all plugins.
struct Registry {
  std::mutex loading;  ///< held while the code of a plugin runs
  std::mutex mutex;
  std::vector<const Backend*> backends;
  std::vector<PluginKernel> kernels;
  std::set<fs::path> plugins;
};

Registry& registry() {
  static Registry all;
  static const bool filled = [] {
    add_all_backends(all.backends);
    return true;
  }();
  static_cast<void>(filled);
  return all;
}

const Backend* backend_in(const std::vector<const Backend*>& list, std::string_view name) {
  const auto found = std::ranges::find(list, name, &Backend::name);
  return found == list.end() ? nullptr : *found;
}

std::string list_of_names(const std::vector<const Backend*>& list) {
  std::string names;
  for (const auto* one : list) names += (names.empty() ? "" : ", ") + std::string(one->name());
  return names;
}

/// "0.3.0 (1a2b3c4d5e6f)" of a mark.
std::string interface_of(std::string_view mark) {
  const auto text = mark.substr(kPluginMark.size());
  return std::string(text.substr(0, text.find('\0')));
}

/// Throws InvalidArgument unless the file is a plugin for the interface of this build. Runs nothing
/// of it.
void require_interface(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.good() && bytes.empty())
    throw InvalidArgument(fmt::format("cannot read the plugin \"{}\"", file.string()));
  const auto mark = bytes.find(kPluginMark);
  if (mark == std::string::npos) {
    throw InvalidArgument(fmt::format(
        "\"{}\" is not a plugin of Triptych; build it with triptych_add_plugin", file.string()));
  }
  const auto built = interface_of(std::string_view(bytes).substr(mark, kPluginInterface.size()));
  const auto own = interface_of({kPluginInterface.data(), kPluginInterface.size()});
  if (built == own) return;
  throw InvalidArgument(
      fmt::format("the plugin \"{}\" was built for interface {}, and this program has {}; build it "
                  "with the package of this program",
                  file.string(), built, own));
}

PluginParts parts_of(const fs::path& file) {
  SharedLibrary library(file);
  void (*add)(PluginParts&) = library.find("triptych_plugin_parts");
  if (add == nullptr) {
    throw InvalidArgument(
        fmt::format("the plugin \"{}\" does not load: {}", file.string(), library.problem()));
  }
  PluginParts parts;
  add(parts);
  return parts;
}

/// Throws InvalidArgument for parts that are none, or that do not fit to the others.
void require_fitting(const PluginParts& parts, std::vector<const Backend*> backends) {
  if (parts.backends.empty() && parts.kernels.empty())
    throw InvalidArgument("it adds no backend and no kernel");
  for (const auto* added : parts.backends) {
    if (backend_in(backends, added->name()) != nullptr) {
      throw InvalidArgument(fmt::format(
          "there is a backend \"{}\" already; rename that of the plugin", added->name()));
    }
    backends.push_back(added);
  }
  for (const auto* added : parts.backends) {
    if (!added->host().empty() && backend_in(backends, added->host()) == nullptr)
      throw InvalidArgument(fmt::format("its host \"{}\" is not a backend", added->host()));
  }
  for (const auto& kernel : parts.kernels) {
    find_op(kernel.entry.op);
    if (backend_in(backends, kernel.backend) == nullptr) {
      throw InvalidArgument(
          fmt::format("its kernel \"{}\" is for the backend \"{}\"; there are: {}",
                      kernel.entry.name, kernel.backend, list_of_names(backends)));
    }
  }
}

}  // namespace

std::vector<const Backend*> all_backends() {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  return all.backends;
}

const Backend& find_backend(std::string_view name) {
  const auto all = all_backends();
  if (const auto* found = backend_in(all, name)) return *found;
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const auto* one : all) names.emplace_back(one->name());
  const auto meant = suggestion(name, names);
  throw InvalidArgument(
      fmt::format("unknown backend \"{}\"; this build has: {}{}", name, list_of_names(all),
                  meant.empty() ? "; a plugin's backend needs the option plugin" : meant));
}

std::unique_ptr<Device> open_device(std::string_view backend, const DeviceOptions& options) {
  auto device = find_backend(backend).open(options);
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<KernelEntry> added;
  for (const auto& kernel : all.kernels)
    if (kernel.backend == backend) added.push_back(kernel.entry);
  if (!added.empty()) device->add_kernels(added);
  return device;
}

void load_plugin(const fs::path& file) {
  std::error_code error;
  const auto path = fs::canonical(file, error);
  if (error || !fs::is_regular_file(path, error))
    throw InvalidArgument(fmt::format("there is no plugin \"{}\"", file.string()));
  auto& all = registry();
  const std::lock_guard loading(all.loading);
  if (all.plugins.contains(path)) return;
  require_interface(path);
  const auto parts = parts_of(path);
  const std::lock_guard lock(all.mutex);
  try {
    require_fitting(parts, all.backends);
  } catch (const InvalidArgument& problem) {
    throw InvalidArgument(fmt::format("the plugin \"{}\": {}", file.string(), problem.what()));
  }
  all.backends.insert(all.backends.end(), parts.backends.begin(), parts.backends.end());
  all.kernels.insert(all.kernels.end(), parts.kernels.begin(), parts.kernels.end());
  all.plugins.insert(path);
}

}  // namespace triptych
