// SPDX-License-Identifier: Apache-2.0
#include "backends/all_backends.h"

#include <string>
#include <vector>

#include "backends/backend_list.h"
#include "core/base/error.h"
#include "core/base/nearest_name.h"

namespace triptych {

std::span<const Backend* const> all_backends() {
  static const std::vector<const Backend*> backends = [] {
    std::vector<const Backend*> list;
    add_all_backends(list);
    return list;
  }();
  return backends;
}

const Backend& find_backend(std::string_view name) {
  std::vector<std::string> names;
  std::string list;
  for (const Backend* candidate : all_backends()) {
    if (candidate->name() == name) return *candidate;
    names.emplace_back(candidate->name());
    list += (list.empty() ? "" : ", ") + names.back();
  }
  throw InvalidArgument("unknown backend \"" + std::string(name) + "\"; this build has: " + list +
                        suggestion(name, names));
}

std::unique_ptr<Device> open_device(std::string_view backend, const DeviceOptions& options) {
  return find_backend(backend).open(options);
}

}  // namespace triptych
