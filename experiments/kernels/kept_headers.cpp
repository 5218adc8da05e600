// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/kept_headers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <span>
#include <string_view>

#include "core/base/error.h"
#include "core/base/fnv1a.h"
#include "core/base/folder.h"
#include "core/io/atomic_file.h"
#include "core/io/cache_file.h"
#include "core/io/find_program.h"
#include "core/io/input_file.h"
#include "core/io/temporary_folder.h"
#include "systolic/sim/toolchain.h"

namespace triptych::kernels {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;

std::string checksum(std::string_view text) {
  return fmt::format("{:016x}", fnv1a(std::as_bytes(std::span(text))));
}

/// A line with the size and the time of a file. Empty for none.
std::string state_of(const std::string& file) {
  std::error_code failed;
  const auto bytes = fs::file_size(file, failed);
  const auto time = failed ? fs::file_time_type() : fs::last_write_time(file, failed);
  return failed ? "" : fmt::format("{} {} {}\n", bytes, time.time_since_epoch().count(), file);
}

/// True when the precompiled header is there and all files that it was made of are as they were:
/// g++ does not look.
bool is_current(const fs::path& file, const fs::path& list) {
  std::ifstream states(list);
  if (!fs::is_regular_file(file) || !states) return false;
  for (std::string line; std::getline(states, line);) {
    const auto name = line.substr(std::min(line.size(), line.find('/')));
    if (state_of(name) != line + "\n") return false;
  }
  return true;
}

/// The files that a rule for make depends on.
Words dependencies_in(const fs::path& rule) {
  std::ifstream file(rule);
  Words files;
  for (std::string word; file >> word;) {
    if (word.starts_with('/') && !word.ends_with(':')) files.push_back(word);
  }
  return files;
}

/// Writes the list before the precompiled header, each at once. A list alone says that the compiler
/// refuses.
void compile(Words command, const fs::path& header, const fs::path& file, const fs::path& list) {
  const TemporaryFolder temporary("headers");
  const auto rule = temporary.path() / "rule", written = temporary.path() / "precompiled";
  const Words precompile =
      is_clang(command) ? Words{"-Xclang", "-emit-pch"} : Words{"-x", "c++-header"};
  command.insert(command.end(), precompile.begin(), precompile.end());
  for (const auto& word : {std::string("-c"), std::string("-MD"), std::string("-MF"), rule.string(),
                           header.string(), std::string("-o"), written.string()}) {
    command.push_back(word);
  }
  std::string states;
  if (mmu::run_logged(command, temporary.path() / "log", temporary.path()) != 0) {
    return write_file_atomically(list, states);
  }
  for (const auto& each : dependencies_in(rule)) states += state_of(each);
  make_folder(file.parent_path());
  write_file_atomically(list, states);
  write_file_atomically(file, read_file(written, kMostBytes));
}

}  // namespace

bool is_clang(const Words& command) { return command.front().find("clang") != std::string::npos; }

KeptHeaders::KeptHeaders(const Headers& headers) {
  const auto cache = cache_folder();
  if (!cache.is_absolute()) return;
  std::string all;
  for (const auto& [name, content] : headers) {
    all += fmt::format("{} {}\n{}", name.string(), content.size(), content);
  }
  const auto folder = cache / "headers" / checksum(all);
  std::error_code failed;
  if (fs::create_directories(folder, failed) || failed) return;  // the first use
  try {
    for (const auto& [name, content] : headers) {
      if (fs::file_size(folder / name, failed) == content.size()) continue;
      make_folder((folder / name).parent_path());
      write_file_atomically(folder / name, content);
    }
    folder_ = folder;
  } catch (const IoError&) {  // compilations take longer, then
  }
}

std::optional<fs::path> KeptHeaders::precompiled(const Words& command,
                                                 const fs::path& header) const {
  if (folder_.empty()) return std::nullopt;
  const auto compiler = find_program(command.front());
  if (!compiler) return std::nullopt;
  std::error_code failed;
  const auto key = checksum(fmt::format("{} {}", fmt::join(command, " "),
                                        state_of(fs::canonical(*compiler, failed).string())));
  const auto name = is_clang(command) ? fmt::format("{}.{}.pch", header.string(), key)
                                      : fmt::format("{}.gch/{}", header.string(), key);
  const auto file = folder_ / name;
  const auto list = folder_ / fmt::format("{}.list", key);
  if (is_current(file, list)) return file;
  if (fs::exists(list, failed) && !fs::exists(file, failed)) return std::nullopt;
  try {
    compile(command, folder_ / header, file, list);
  } catch (const IoError&) {  // a full disk: compilations take longer, then
    return std::nullopt;
  }
  return is_current(file, list) ? std::optional(file) : std::nullopt;
}

bool replace_refused(Words& command, std::string_view output) {
  const auto at = std::ranges::find(command, "-include-pch");
  if (at == command.end()) return false;
  const fs::path file = *(at + 1);
  const bool is_refused =
      output.find(file.string()) != output.npos || output.find("AST file") != output.npos;
  if (!is_refused) return false;
  *at = "-include";
  *(at + 1) = fs::path(file).replace_extension().replace_extension().string();
  return true;
}

}  // namespace triptych::kernels
