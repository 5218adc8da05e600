// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/kept_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/base/fnv1a.h"
#include "core/base/folder.h"
#include "core/io/atomic_file.h"
#include "core/io/cache_file.h"
#include "core/io/input_file.h"

namespace triptych::labs {
namespace {

namespace fs = std::filesystem;

const std::string kCache = ".cache/triptych/machines/";
constexpr std::int64_t kLargest = std::int64_t{1} << 28;

using Command = std::vector<std::string>;

constexpr const char* kRuntime[] = {"verilated", "verilated_threads"};
constexpr std::int64_t kMostRuntimeBytes = std::int64_t{1} << 26;
constexpr std::size_t kSealSize = 16;
constexpr const char* kEmptyBench =
    "module lab_bench(input logic clk_i, input logic rst_i, output logic done_o);\n"
    "  assign done_o = clk_i & rst_i;\nendmodule\n";

Command extended(Command command, const Command& more) {
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

class ModelRuntime {
 public:
  ModelRuntime(Bench& bench, const ModelCommands& commands)
      : commands_(commands), user_(cache_folder() / "labs") {
    std::string versions;
    for (const char* tool : {"verilator", "g++"}) versions += bench.run({tool, "--version"}).output;
    key_ = checksum(versions);
  }

  /// Copies the objects to the bench, where Verilator has written the model. The makefile compiles
  /// objects that are missing.
  void copy_to(Bench& bench) const {
    if (!user_.is_absolute()) return;
    try {
      if (!std::ranges::all_of(kRuntime, [&](auto* name) { return object(name).has_value(); }))
        compile();
      for (const char* name : kRuntime) {
        if (const auto content = object(name)) bench.put(fmt::format("model/{}.o", name), *content);
      }
    } catch (const IoError&) {
      // Without a cache, grading takes longer.
    }
  }

 private:
  static std::string checksum(std::string_view content) {
    return fmt::format("{:016x}", fnv1a(std::as_bytes(std::span(content))));
  }
  fs::path file(const char* name) const { return user_ / fmt::format("{}-{}.o", name, key_); }

  /// Nothing where the cache has no whole file.
  std::optional<std::string> object(const char* name) const {
    if (!fs::is_regular_file(file(name))) return std::nullopt;
    auto content = read_file(file(name), kMostRuntimeBytes);
    const auto seal = content.substr(content.size() - std::min(content.size(), kSealSize));
    content.resize(content.size() - seal.size());
    if (checksum(content) != seal) return std::nullopt;
    return content;
  }

  /// On a bench of its own, because code of a student must not reach the cache.
  void compile() const {
    Bench bench;
    bench.put("runtime.sv", kEmptyBench);
    if (!bench.run(extended(commands_.verilate, {"runtime.sv"}), commands_.limits).good()) return;
    std::vector<std::string> objects;
    for (const char* name : kRuntime) objects.push_back(fmt::format("{}.o", name));
    if (!bench.run(extended(commands_.make, objects), commands_.limits).good()) return;
    make_folder(user_);
    for (const char* name : kRuntime) {
      const auto content = bench.text(fmt::format("model/{}.o", name), kMostRuntimeBytes);
      write_file_atomically(file(name), content + checksum(content));
    }
  }

  const ModelCommands& commands_;
  fs::path user_;  ///< relative: the user has no cache
  std::string key_;
};

}  // namespace

KeptRuntime::KeptRuntime(Bench& bench) : bench_(bench), user_(cache_folder() / "machines") {
  copy(user_, [&](const std::string& name) { bench.put(kCache + name, read_file(user_ / name)); });
}

void KeptRuntime::keep() const {
  copy(bench_.folder() / kCache, [&](const std::string& name) {
    if (fs::exists(user_ / name)) return;
    make_folder(user_);
    write_file_atomically(user_ / name, bench_.text(kCache + name));
  });
}

void KeptRuntime::keep(const std::string& built, const std::string& name,
                       const std::function<void(const fs::path&)>& seal) const {
  bench_.put(kCache + name, bench_.text(kCache + built, kLargest));
  seal(bench_.folder() / (kCache + name));
  make_folder(user_);
  write_file_atomically(user_ / name, bench_.text(kCache + name, kLargest));
  std::error_code none;
  fs::remove(log_of(name), none);
}

std::string KeptRuntime::keep_log(const std::string& message, const std::string& name) const {
  std::error_code none;
  const auto logs = names_in(bench_.folder() / kCache, none);
  const auto log =
      std::ranges::find_if(logs, [](const std::string& each) { return each.ends_with(".log"); });
  if (log == logs.end() || !user_.is_absolute()) return message;
  try {
    make_folder(user_);
    write_file_atomically(log_of(name), bench_.text(kCache + *log));
  } catch (const IoError&) {
    return message;
  }
  const auto kept = log_of(name).string(), inside = kCache + *log;
  const auto at = message.find(inside);
  if (at == message.npos) return fmt::format("{}\nthe whole log: {}", message, kept);
  return message.substr(0, at) + kept + message.substr(at + inside.size());
}

fs::path KeptRuntime::log_of(const std::string& name) const {
  return (user_ / name).replace_extension("log");
}

void KeptRuntime::copy(const fs::path& folder,
                       const std::function<void(const std::string& name)>& copy_one) const {
  std::error_code none;
  if (!user_.is_absolute()) return;
  for (const auto& name : names_in(folder, none)) {
    if (!name.starts_with("verilated-") || !name.ends_with(".o")) continue;
    try {
      copy_one(name);
    } catch (const IoError&) {
      return;
    }
  }
}

void put_verilator_runtime(Bench& bench, const ModelCommands& commands) {
  ModelRuntime(bench, commands).copy_to(bench);
}

}  // namespace triptych::labs
