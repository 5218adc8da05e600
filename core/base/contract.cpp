// SPDX-License-Identifier: Apache-2.0
#include "core/base/contract.h"

#include <array>
#include <string>

#include "core/base/error.h"
#include "core/base/nearest_name.h"

namespace triptych {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"f32", "bf16", "bf16-exact", "int8"};

}  // namespace

std::string_view to_string(Contract contract) { return kNames[static_cast<std::size_t>(contract)]; }

Contract contract_from_string(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Contract>(i);
  }
  throw InvalidArgument("unknown contract \"" + std::string(name) +
                        "\"; use f32, bf16, bf16-exact or int8" +
                        suggestion(name, {kNames.begin(), kNames.end()}));
}

}  // namespace triptych
