// Lab 5: a cell that is cut into stages. Its clock is the longest way between registers in gates of
// two inputs, as Yosys counts it. Its cycles are those of a product on a 4 x 4 array.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <regex>
#include <sstream>

#include "core/base/random.h"
#include "experiments/labs/all_labs.h"
#include "experiments/labs/lab_texts.h"
#include "experiments/labs/rtl_bench.h"

namespace triptych::labs {
namespace {

constexpr int kCells = 4, kColumns = 4, kRows = 64;  // the array, and rows of x
constexpr int kMostStages = 8;
constexpr int kTwoStages = 50, kSplitCarry = 34;  // gates
constexpr int kFaster = 3700, kFastest = 2500;    // gates times cycles

/// Cycles with working cells in a 4 x 4 array, for `rows` rows of x.
constexpr int cycles_of(int rows, int latency) { return rows + kCells * latency + kColumns - 2; }

/// Numbers for a column of cells.
struct Numbers {
  std::vector<int> x, w;            ///< 8 bits, x row by row
  std::vector<std::uint32_t> sums;  ///< that enter the first cell

  std::int32_t y(int row) const {
    auto sum = sums[static_cast<std::size_t>(row)];
    for (std::size_t k = 0; k < kCells; ++k)
      sum += static_cast<std::uint32_t>(x[static_cast<std::size_t>(row) * kCells + k] * w[k]);
    return static_cast<std::int32_t>(sum);
  }
};

/// They include sums just below and above multiples of 65536, which have long carries.
Numbers numbers(std::uint64_t seed) {
  RandomStream random(seed, 5);
  const auto small = [&] { return static_cast<int>(random.below(256)) - 128; };
  Numbers result;
  for (int i = 0; i < kRows * kCells; ++i) result.x.push_back(small());
  for (int i = 0; i < kCells; ++i) result.w.push_back(small() | 1);
  for (int row = 0; row < kRows; ++row) {
    const auto near = static_cast<std::uint32_t>(small());
    const auto bits = random.bits();
    result.sums.push_back(row % 4 == 0 ? near : row % 4 == 1 ? (bits & 0xFFFF0000U) + near : bits);
  }
  return result;
}

template <class Number>
std::string memory_text(const std::vector<Number>& numbers, std::uint32_t mask) {
  std::string text;
  for (const auto number : numbers)
    text += fmt::format("{:x}\n", static_cast<std::uint32_t>(number) & mask);
  return text;
}

/// The stages that latency.txt states. 0: it states none.
int latency_of(const Submission& submission) {
  if (!submission.has("latency.txt")) return 0;
  int latency = 0;
  std::istringstream(submission.text("latency.txt")) >> latency;
  return latency >= 1 && latency <= kMostStages ? latency : 0;
}

std::string wrong_bits(const Numbers& given, const std::string& log) {
  std::istringstream stream(log);
  char kind = 0;
  int cycle = 0, row = 0, seen = 0;
  std::int64_t value = 0;
  while (stream >> kind >> cycle >> row >> value) {
    if (row != seen++ || row >= kRows) break;
    if (value != given.y(row))
      return fmt::format("y[{}] should be {} (0x{:08x}), and in cycle {} it is {} (0x{:08x})", row,
                         given.y(row), static_cast<std::uint32_t>(given.y(row)), cycle, value,
                         static_cast<std::uint32_t>(value));
  }
  return seen == kRows ? "" : "the log of the simulation is damaged";
}

/// Builds the column and runs it.
std::string simulate(const Submission& submission, Bench& bench, int latency, Report& report) {
  const auto given = numbers(submission.seed());
  bench.put("pe.sv", submission.text("pe.sv"));
  bench.put("a.x", memory_text(given.x, 0xFF));
  bench.put("a.w", memory_text(given.w, 0xFF));
  bench.put("a.s", memory_text(given.sums, ~0U));
  std::string text(lab_text("benches/pe_bench.sv"));
  const auto set = [&](const std::string& name, int from, int value) {
    const auto old = fmt::format("parameter int {} = {}", name, from);
    text.replace(text.find(old), old.size(), fmt::format("parameter int {} = {}", name, value));
  };
  set("Rows", 4, kRows);
  set("Latency", 1, latency);
  bench.put("pe_bench.sv", text);
  const auto run = build_and_run(bench, {"pe.sv", "pe_bench.sv"}, submission.seed());
  report.printed = run.printed;
  return run.problem.empty() ? wrong_bits(given, bench.text("a.log")) : run.problem;
}

/// The longest path between registers, or from a port, in gates, or an error message of Yosys.
struct Depth {
  int gates = 0;
  std::string problem;
};

Depth depth_of(Bench& bench) {
  bench.remove("depth");
  const auto ending = bench.run(
      {"yosys", "-q", "-p",
       "read_verilog -sv pe.sv; hierarchy -check -top lab_pe; proc; flatten; opt -fast; wreduce; "
       "peepopt; opt_clean; alumacc; share; opt -full; techmap; opt -fast; opt_clean; "
       "abc -g AND,OR,XOR,MUX; tee -q -o depth ltp -noff"},
      kBuildLimits);
  if (!ending.good()) return {0, "Yosys: " + bench.why(ending, kBuildLimits)};
  const auto text = bench.text("depth");
  std::smatch match;
  if (!std::regex_search(text, match, std::regex("length=(\\d+)")))
    return {0, "Yosys finds no way between registers in lab_pe"};
  return {std::stoi(match[1]), ""};
}

void grade(const Submission& submission, Bench& bench, Report& report) {
  const int latency = latency_of(submission);
  auto problem = latency == 0 ? fmt::format(
                                    "latency.txt should hold the number of cycles that a "
                                    "sum takes through your cell, 1 to {}",
                                    kMostStages)
                              : simulate(submission, bench, latency, report);
  report.exact("bits", 20, problem);
  Depth depth = {0, "counts when the bits are right"};
  if (problem.empty()) depth = depth_of(bench);
  const int cycles = cycles_of(kRows, latency), time = depth.gates * cycles;
  const auto judge = [&](const std::string& id, int got, int allowed, const std::string& what) {
    std::string said = depth.problem;
    if (said.empty() && got > allowed)
      said = fmt::format("{}: {}, {} are allowed", what, got, allowed);
    report.exact(id, 10, said);
  };
  for (const int allowed : {kTwoStages, kSplitCarry})
    judge(fmt::format("depth_{}", allowed), depth.gates, allowed, "gates in a cycle");
  const auto product = fmt::format("{} gates times {} cycles", depth.gates, cycles);
  for (const int allowed : {kFaster, kFastest})
    judge(fmt::format("time_{}", allowed), time, allowed, product);
  if (depth.problem.empty()) report.standings.push_back({"gates times cycles", double(time)});
}

std::vector<Prediction> predictions(Bench& /*bench*/) {
  constexpr int kFew = 4;
  return {{"cycles_1", 5, cycles_of(kRows, 1)},
          {"cycles_3", 5, cycles_of(kRows, 3)},
          {"few_rows_1", 5, cycles_of(kFew, 1)},
          {"few_rows_3", 5, cycles_of(kFew, 3)}};
}

constexpr Explanation kQuestions[] = {
    {"what_limits", 5, "ab5306f961ca34f44de246d5136f8f7913403985302e63f9c1a7d6dda1cff4ff",
     "follow the last bit that settles, from x to the sum"},
    {"why_cut_the_adder", 5, "4a4494ad6cc924badc7cdaa4fe743ee324ab7fd96cc5c78f9b54e6970098c10f",
     "compare the gates of two stages with those of one"},
    {"same_bits", 5, "faabf810f682a8d0e1274caeb995510903018518250a5ae891c997119db3488e",
     "write down which x and which sum meet, before and after"},
    {"when_not", 5, "746b8c1937e9c9148baa836e51bf6de1898caf270cc6f3c6f542745763fd5fed",
     "look at your four predictions"}};

}  // namespace

Lab lab_5_clock() {
  return {.number = 5,
          .slug = "clock",
          .title = "Make it 700 MHz",
          .question = "what does a clock cost?",
          .grade = grade,
          .predictions = predictions,
          .explanations = kQuestions};
}

}  // namespace triptych::labs
