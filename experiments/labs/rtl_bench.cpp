// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/rtl_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "core/base/error.h"
#include "core/base/fnv1a.h"
#include "core/base/folder.h"
#include "core/base/random.h"
#include "core/io/atomic_file.h"
#include "core/io/cache_file.h"
#include "core/io/find_program.h"
#include "core/io/input_file.h"
#include "experiments/labs/lab_texts.h"

namespace triptych::labs {
namespace {

namespace fs = std::filesystem;
using Command = std::vector<std::string>;

/// Registers and unassigned signals begin with random bits. A delay or a wait would need an event
/// queue, which hardware has not.
constexpr const char* kVerilator[] = {
    "verilator",  "--cc",       "--exe",  "--no-timing", "-Wno-fatal", "-Wno-lint",
    "-Wno-style", "--x-assign", "unique", "--x-initial", "unique",     "--top-module",
    "lab_bench",  "--prefix",   "Vlab",   "--Mdir",      "model"};

constexpr const char* kMake[] = {
    "make", "-s",      "-j2",          "-C",           "model",
    "-f",   "Vlab.mk", "OPT_FAST=-O0", "OPT_SLOW=-O0", "OPT_GLOBAL=-O0"};

/// Verilator's run time, two thirds of a model's compilation. It is the same for all models, so the
/// user's cache holds its objects, each with a checksum, under names with the tools' versions.
constexpr const char* kRuntime[] = {"verilated", "verilated_threads"};
constexpr std::int64_t kMostRuntimeBytes = std::int64_t{1} << 26;
constexpr std::size_t kSealSize = 16;
constexpr const char* kEmptyBench =
    "module lab_bench(input logic clk_i, input logic rst_i, output logic done_o);\n"
    "  assign done_o = clk_i & rst_i;\nendmodule\n";

template <std::size_t count>
Command command_of(const char* const (&words)[count], const std::vector<std::string>& more) {
  Command command(std::begin(words), std::end(words));
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

class ModelRuntime {
 public:
  explicit ModelRuntime(Bench& bench) : user_(cache_folder() / "labs") {
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
    if (!bench.run(command_of(kVerilator, {"runtime.sv"}), kBuildLimits).good()) return;
    std::vector<std::string> objects;
    for (const char* name : kRuntime) objects.push_back(fmt::format("{}.o", name));
    if (!bench.run(command_of(kMake, objects), kBuildLimits).good()) return;
    make_folder(user_);
    for (const char* name : kRuntime) {
      const auto content = bench.text(fmt::format("model/{}.o", name), kMostRuntimeBytes);
      write_file_atomically(file(name), content + checksum(content));
    }
  }

  fs::path user_;  ///< relative: the user has no cache
  std::string key_;
};

std::string problem(const Bench& bench, const std::string& what, const Ending& ending,
                    const Limits& limits) {
  const auto& text = ending.error.empty() ? ending.output : ending.error;
  return fmt::format("{} {}:\n{}", what, ending.said(limits),
                     first_lines(text, 8, bench.folder().string()));
}

}  // namespace

RtlRun build_and_run(Bench& bench, const std::vector<std::string>& files, std::uint64_t seed) {
  if (!find_program("g++"))  // Verilator's makefile takes it
    throw DeviceError(
        "this lab needs the program \"g++\", which is not on the PATH; triptych doctor has the "
        "package");
  bench.put("main.cpp", lab_text("benches/array_main.cpp.in"));
  auto sources = files;
  sources.emplace_back("main.cpp");
  auto ending = bench.run(command_of(kVerilator, sources), kBuildLimits);
  if (!ending.good()) return {problem(bench, "Verilator", ending, kBuildLimits), ""};
  ModelRuntime(bench).copy_to(bench);
  ending = bench.run(command_of(kMake, {}), kBuildLimits);
  if (!ending.good()) return {problem(bench, "the model's compilation", ending, kBuildLimits), ""};
  // The code can read its command line, which therefore has a number drawn by the seed.
  ending = bench.run({"model/Vlab", "+verilator+rand+reset+2",
                      fmt::format("+verilator+seed+{}", RandomStream(seed, 8).bits() / 2 + 1)});
  const auto printed = first_lines(ending.output, 40, bench.folder().string());
  if (!ending.good()) return {problem(bench, "the simulation", ending, kCheckLimits), printed};
  return {"", printed};
}

}  // namespace triptych::labs
