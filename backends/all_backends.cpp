// SPDX-License-Identifier: Apache-2.0
#include "backends/all_backends.h"

#include <array>
#include <string>

#include "backends/cpu/cpu_backend.h"
#include "core/base/error.h"

namespace triptych {

std::span<const Backend* const> all_backends() {
  static const std::array<const Backend*, 1> backends = {&cpu::backend()};
  return backends;
}

std::unique_ptr<Device> open_device(std::string_view backend, const DeviceOptions& options) {
  std::string names;
  for (const Backend* candidate : all_backends()) {
    if (candidate->name() == backend) return candidate->open(options);
    names += (names.empty() ? "" : ", ") + std::string(candidate->name());
  }
  throw InvalidArgument("unknown backend \"" + std::string(backend) +
                        "\"; this build has: " + names);
}

}  // namespace triptych
