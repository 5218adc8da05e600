// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/built_in.h"

namespace triptych::mmu {
namespace {

constexpr SourceFile kSources[] = {
#include "model_sources.inc"
};

}  // namespace

std::span<const SourceFile> model_sources() { return kSources; }

}  // namespace triptych::mmu
