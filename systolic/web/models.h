// The machines with RTL that was compiled in through Yosys' write_cxxrtl. The list comes from
// CMake.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>

namespace cxxrtl {
struct module;
}

namespace triptych::mmu {

struct CompiledModel {
  std::string_view machine;
  std::unique_ptr<cxxrtl::module> (*make)();
};

std::span<const CompiledModel> compiled_models();

}  // namespace triptych::mmu
