// The device files of experiments/machines/devices, built into the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace triptych::machines {

struct PublishedMachine {
  std::string_view name, json;
};

/// In alphabetical order.
std::span<const PublishedMachine> published_files();

}  // namespace triptych::machines
