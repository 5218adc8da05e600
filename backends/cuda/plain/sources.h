// The headers and the source that every library of plain kernels is compiled with, as text in the
// program.
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

}  // namespace triptych::cuda::plain
