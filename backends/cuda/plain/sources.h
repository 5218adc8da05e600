// The headers that every library of plain kernels is compiled with, as text in the program, and the
// object files that it is linked with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace triptych::cuda::plain {

struct SourceFile {
  std::string_view path;  ///< from the root of the project
  std::string_view content;
};

std::span<const SourceFile> library_sources();

/// Compiled by the build, from callbacks.cpp, bridge.cpp, copies.cpp and the parts for inline PTX.
struct LibraryPart {
  std::string_view file;  ///< "callbacks.o"
  std::string_view content;
};

std::span<const LibraryPart> library_parts();

}  // namespace triptych::cuda::plain
