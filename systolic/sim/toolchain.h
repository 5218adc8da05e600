// The programs that make a simulator of RTL: Verilator, make, a C++ compiler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace triptych::mmu {

struct Toolchain {
  std::string verilator, make, compiler;  ///< their names. Empty: not there
  bool is_clang = false;
  std::string identity;  ///< versions of Verilator and compiler, and the processor they compile for

  /// Throws std::runtime_error with the missing tool and how to add it.
  void require() const;
};
/// Tools on the PATH of this process, looked up once. clang has priority over other compilers.
const Toolchain& toolchain();

/// Command that installs everything that a machine's build needs.
inline constexpr const char* kToolsRemedy = "apt-get install verilator make clang zlib1g-dev";

/// Status of a command that could not be started, as shells have it.
inline constexpr int kNotStarted = 127;
/// Runs a command in `folder` (empty: in the current one), appends it and its output to `log`, and
/// returns its exit status. Its temporary files go to `temporary` (TMPDIR), a folder that the
/// caller removes: a compiler that is killed leaves its own. Throws std::system_error when the log
/// cannot be written.
int run_logged(const std::vector<std::string>& command, const std::filesystem::path& log,
               const std::filesystem::path& temporary, const std::filesystem::path& folder = {});

}  // namespace triptych::mmu
