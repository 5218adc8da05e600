// The machines with RTL that was verilated with the project, and the means to verilate others: the
// library contains the sources and flags of this build, so that a machine made later has the same
// RTL as its twin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "systolic/sim/rtl_model.h"

namespace triptych::mmu {

struct BuiltInModel {
  std::string_view machine;  ///< a shipped one
  RtlModel* (*make)();
};
std::span<const BuiltInModel> built_in_models();

/// A file that the making of a model needs, under its path in the repository.
struct SourceFile {
  std::string_view path;
  std::string_view content;
};
/// The RTL in Verilator's reading order, then the files around a model.
std::span<const SourceFile> model_sources();

}  // namespace triptych::mmu
