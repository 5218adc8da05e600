// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/sources.h"

namespace triptych::cuda::plain {
namespace {

constexpr SourceFile kSources[] = {
#include "plain_sources.inc"
};

}  // namespace

std::span<const SourceFile> library_sources() { return kSources; }

}  // namespace triptych::cuda::plain
