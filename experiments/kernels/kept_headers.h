// Headers that kernels and programs are compiled with, in the user's cache. There the compilers'
// precompiled forms of the first of them stay valid, which save half of a compilation or more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace triptych::kernels {

using Words = std::vector<std::string>;

/// True for clang++, else the command is g++'s.
bool is_clang(const Words& command);

/// Content by name.
using Headers = std::map<std::filesystem::path, std::string>;

class KeptHeaders {
 public:
  /// Finds the folder of these headers. It is written at the second use, so that a cache which is
  /// used once costs nothing.
  explicit KeptHeaders(const Headers& headers);

  /// Empty at the first use, and where the user has no cache that can be written.
  const std::filesystem::path& folder() const { return folder_; }

  /// The precompiled form of a header for commands that begin like this one. g++ finds it by itself
  /// where it is asked for the header, clang needs it as -include-pch. Compiled where it is
  /// missing, or where a header of the system has changed since. Nothing where that fails.
  std::optional<std::filesystem::path> precompiled(const Words& command,
                                                   const std::filesystem::path& header) const;

 private:
  std::filesystem::path folder_;
};

/// Where clang's output says that it refuses the precompiled header of the command (the file is
/// damaged): puts the header itself in its place.
bool replace_refused(Words& command, std::string_view output);

}  // namespace triptych::kernels
