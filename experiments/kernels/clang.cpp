// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/clang.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>

#include "core/base/error.h"
#include "core/io/find_program.h"
#include "core/io/temporary_folder.h"
#include "systolic/sim/toolchain.h"

namespace triptych::kernels {
namespace {

constexpr int kOldest = 14, kNewestTested = 19, kNewestKnown = 25;

/// The newest of the versions with a number.
std::optional<std::string> numbered_clang(int newest, int oldest) {
  for (int version = newest; version >= oldest; --version) {
    auto name = fmt::format("clang++-{}", version);
    if (find_program(name)) return name;
  }
  return {};
}

/// The first number that -dumpversion prints. Nothing: the program fails.
std::optional<int> version_of(const std::string& name) {
  const TemporaryFolder folder("version");
  const auto log = folder.path() / "log";
  if (mmu::run_logged({name, "-dumpversion"}, log, folder.path()) != 0) return {};
  int version = 0;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {  // the last one: the command is in front
    std::from_chars(line.data(), line.data() + line.size(), version);
  }
  return version;
}

}  // namespace

std::string find_clang(const std::string& what) {
  if (find_program("clang++")) return "clang++";
  if (auto name = numbered_clang(kNewestKnown, kOldest)) return *name;
  throw DeviceError(fmt::format(
      "{} are compiled by clang, which is not on the PATH; add it: apt-get install clang", what));
}

std::optional<std::string> newer_clang(const std::string& than) {
  const auto version = version_of(than);
  return version ? numbered_clang(kNewestTested, *version + 1) : std::nullopt;
}

}  // namespace triptych::kernels
