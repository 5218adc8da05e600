// SPDX-License-Identifier: Apache-2.0
#include "backends/all_backends.h"

#include <string>
#include <vector>

#include "backends/backend_list.h"
#include "core/base/error.h"

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
  std::string names;
  for (const Backend* candidate : all_backends()) {
    if (candidate->name() == name) return *candidate;
    names += (names.empty() ? "" : ", ") + std::string(candidate->name());
  }
  throw InvalidArgument("unknown backend \"" + std::string(name) + "\"; this build has: " + names);
}

std::unique_ptr<Device> open_device(std::string_view backend, const DeviceOptions& options) {
  return find_backend(backend).open(options);
}

}  // namespace triptych
