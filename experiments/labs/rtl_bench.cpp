// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/rtl_bench.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/io/find_program.h"
#include "experiments/labs/lab_texts.h"

namespace triptych::labs {
namespace {

/// Registers and unassigned signals begin with random bits. A delay or a wait would need an event
/// queue, which hardware has not.
constexpr const char* kVerilator[] = {
    "verilator",  "--cc",       "--exe",  "--no-timing", "-Wno-fatal", "-Wno-lint",
    "-Wno-style", "--x-assign", "unique", "--x-initial", "unique",     "--top-module",
    "lab_bench",  "--prefix",   "Vlab",   "--Mdir",      "model"};

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
  std::vector<std::string> command(std::begin(kVerilator), std::end(kVerilator));
  command.insert(command.end(), files.begin(), files.end());
  command.emplace_back("main.cpp");
  auto ending = bench.run(command, kBuildLimits);
  if (!ending.good()) return {problem(bench, "Verilator", ending, kBuildLimits), ""};
  ending = bench.run({"make", "-s", "-j2", "-C", "model", "-f", "Vlab.mk", "OPT_FAST=-O0",
                      "OPT_SLOW=-O0", "OPT_GLOBAL=-O0"},
                     kBuildLimits);
  if (!ending.good()) return {problem(bench, "the model's compilation", ending, kBuildLimits), ""};
  // The code can read its command line, which therefore has a number drawn by the seed.
  ending = bench.run({"model/Vlab", "+verilator+rand+reset+2",
                      fmt::format("+verilator+seed+{}", RandomStream(seed, 8).bits() / 2 + 1)});
  const auto printed = first_lines(ending.output, 40, bench.folder().string());
  if (!ending.good()) return {problem(bench, "the simulation", ending, kCheckLimits), printed};
  return {"", printed};
}

}  // namespace triptych::labs
