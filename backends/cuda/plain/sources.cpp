// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/sources.h"

namespace triptych::cuda::plain {
namespace {

constexpr SourceFile kSources[] = {
#include "plain_sources.inc"
};

using namespace std::literals;

constexpr LibraryPart kParts[] = {
#include "library_parts.inc"
};

}  // namespace

std::span<const SourceFile> library_sources() { return kSources; }

std::span<const LibraryPart> library_parts() { return kParts; }

}  // namespace triptych::cuda::plain
