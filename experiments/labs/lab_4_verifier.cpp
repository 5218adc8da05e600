// Lab 4: tests that a student writes for the array's RTL. Each is a program with its inputs and
// expected outputs. It must pass on the unchanged RTL and fail on copies with a fault. Some faults
// are shown and some are hidden.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/folder.h"
#include "core/base/random.h"
#include "core/io/strict_json.h"
#include "experiments/labs/all_labs.h"
#include "experiments/labs/kept_runtime.h"
#include "experiments/labs/lab_texts.h"
#include "experiments/labs/seeded_faults.h"

namespace triptych::labs {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTests = 32, kMostBytes = 64 << 10;
constexpr int kMostCycles = 1200;         // of all tests together
constexpr const char* kLongest = "5000";  // cycles of one, before it counts as endless
constexpr int kHiddenOfAPlace = 2;
constexpr std::size_t kFoundAtLeast = 6;  // of the faults shown, before silence is worth anything
constexpr const char* kExample = "example.s";
constexpr const char* kMachine = "machine.json";
const std::string kHandout = "handouts/4-verifier/";

/// Result of a test on the RTL with one fault.
struct Outcome {
  std::size_t fault = 0;  ///< 0: none
  std::string test;
  bool passed = false;
  int cycles = 0;
  std::string said;
};

/// The machine with all faults in its RTL. A run selects one of them.
class FaultyMachine {
 public:
  /// Builds it, where the bench has none yet. Throws DeviceError when it cannot be built.
  explicit FaultyMachine(Bench& bench) : bench_(bench) {
    if (fs::exists(bench.folder() / kMachine)) return;
    const auto names = modules_with_faults();
    std::vector<std::string> command = {"triptych", "machine", "rtl", "--out", "faulty"};
    command.insert(command.end(), names.begin(), names.end());
    succeed(command, kCheckLimits);
    std::map<std::string, std::string> modules;
    for (const auto& name : names) modules[name] = bench.text("faulty/" + name + ".sv");
    for (const auto& [name, text] : seed_faults(std::move(modules)))
      bench.put("faulty/" + name + ".sv", text);
    bench.put(kMachine, lab_text(kHandout + kMachine));
    const KeptRuntime runtime(bench);
    succeed({"triptych", "machine", "build", kMachine, "--rtl", "faulty", "--quick"}, kBuildLimits);
    runtime.keep();
  }

  /// All tests, which are files of the bench, with each of the faults.
  std::vector<Outcome> run(const std::vector<std::string>& tests,
                           const std::vector<std::size_t>& faults) const {
    if (tests.empty() || faults.empty()) return {};
    std::vector<std::string> command = {"triptych", "mmu", "test"};
    command.insert(command.end(), tests.begin(), tests.end());
    command.insert(command.end(), {"--machine", fmt::format("{}+faulty", kMachine), "--simulate",
                                   "rtl", "--max-cycles", kLongest, "--json"});
    for (const auto fault : faults) {
      command.emplace_back("--variant");
      command.push_back(fmt::format("fault={}", fault));
    }
    const auto ending = bench_.run(command, kBuildLimits);
    if (ending.cause != Cause::Exited || ending.status > 1)
      throw InvalidArgument("the tests: " + bench_.why(ending, kBuildLimits));
    const auto document = parse_strict<Json>(ending.output);
    std::vector<Outcome> outcomes;
    for (const auto& each : document.at("results")) {
      const auto variant = each.at("variant").get<std::string>();
      outcomes.push_back({.fault = std::stoul(variant.substr(variant.find('=') + 1)),
                          .test = each.at("program"),
                          .passed = each.at("passed"),
                          .cycles = each.at("cycles").is_null() ? 0 : each.at("cycles").get<int>(),
                          .said = each.at("said").is_null() ? "" : each.at("said")});
    }
    return outcomes;
  }

 private:
  void succeed(const std::vector<std::string>& command, const Limits& limits) const {
    const auto ending = bench_.run(command, limits);
    if (!ending.good())
      throw DeviceError(
          fmt::format("triptych {} {}: {}", command[1], command[2], bench_.why(ending, limits)));
  }

  Bench& bench_;
};

std::vector<std::size_t> numbers_where(bool shown) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < seeded_faults().size(); ++i)
    if (seeded_faults()[i].shown == shown) numbers.push_back(i + 1);
  return numbers;
}

const SeededFault& fault_of(std::size_t number) { return seeded_faults()[number - 1]; }

/// Some of each place.
std::vector<std::size_t> hidden_faults(std::uint64_t seed) {
  RandomStream random(seed, 4);
  std::vector<std::size_t> drawn;
  for (const auto& entry : kNamesOf<Place>) {
    auto left = numbers_where(false);
    std::erase_if(left, [&](std::size_t number) { return fault_of(number).place != entry.first; });
    for (int i = 0; i < kHiddenOfAPlace; ++i) {
      const auto at =
          static_cast<std::ptrdiff_t>(random.below(static_cast<std::int64_t>(left.size())));
      drawn.push_back(left[static_cast<std::size_t>(at)]);
      left.erase(left.begin() + at);
    }
  }
  return drawn;
}

/// Files tests/*.s of the submission, put on the bench under the same names.
std::vector<std::string> tests_of(const Submission& submission, Bench& bench) {
  std::set<std::string> names;
  const auto folder = submission.folder() / "tests";
  std::error_code none;  // without the folder there are no names
  for (const auto& name : names_in(folder, none))
    if (name.ends_with(".s")) names.insert("tests/" + name);
  if (names.empty())
    throw InvalidArgument(
        "there is no test yet: the first could be example.s, copied into the folder tests");
  if (names.size() > kMostTests)
    throw InvalidArgument(
        fmt::format("there are {} tests, {} are allowed", names.size(), kMostTests));
  for (const auto& name : names) {
    const auto text = submission.text(name);
    if (text.size() > kMostBytes)
      throw InvalidArgument(
          fmt::format("{} has {} bytes, {} are allowed", name, text.size(), kMostBytes));
    bench.put(name, text);
  }
  return {names.begin(), names.end()};
}

/// Results of all tests.
struct Findings {
  std::size_t tests = 0;
  std::vector<Outcome> alarms;  ///< of tests that fail where no fault is
  std::set<std::size_t> found;  ///< faults with which some sound test fails
  std::vector<std::size_t> hidden;
  int cycles = 0;  ///< of all tests, without a fault

  std::size_t shown_found() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(found, [](std::size_t number) { return fault_of(number).shown; }));
  }
};

Findings findings_of(const Submission& submission, Bench& bench) {
  Findings findings;
  const auto tests = tests_of(submission, bench);
  findings.tests = tests.size();
  findings.hidden = hidden_faults(submission.seed());
  const FaultyMachine machine(bench);
  std::vector<std::string> sound;
  for (auto& outcome : machine.run(tests, {0})) {
    findings.cycles += outcome.cycles;
    if (outcome.passed)
      sound.push_back(outcome.test);
    else
      findings.alarms.push_back(std::move(outcome));
  }
  auto faults = numbers_where(true);
  faults.insert(faults.end(), findings.hidden.begin(), findings.hidden.end());
  for (const auto& outcome : machine.run(sound, faults))
    if (!outcome.passed) findings.found.insert(outcome.fault);
  return findings;
}

std::string false_alarms(const Findings& findings) {
  if (!findings.alarms.empty())
    return fmt::format(
        "a false alarm of {}: {}; {} of {} tests fail on the RTL without a fault, and what they "
        "find elsewhere does not count",
        findings.alarms.front().test, findings.alarms.front().said, findings.alarms.size(),
        findings.tests);
  if (findings.shown_found() < kFoundAtLeast)
    return fmt::format(
        "no test gives a false alarm, but they find {} of the faults shown, and silence is worth "
        "points from {} on",
        findings.shown_found(), kFoundAtLeast);
  return {};
}

std::string economy(const Findings& findings) {
  if (findings.cycles > kMostCycles)
    return fmt::format("all tests take {} cycles together, {} are allowed", findings.cycles,
                       kMostCycles);
  if (findings.shown_found() < kFoundAtLeast)
    return fmt::format("counts when {} of the faults shown are found", kFoundAtLeast);
  return {};
}

std::string alive(const Findings& findings, std::size_t number) {
  if (findings.found.contains(number)) return {};
  const auto& fault = fault_of(number);
  const auto sound = findings.tests - findings.alarms.size();
  const auto tests = sound == 1 ? std::string("your test passes")
                                : fmt::format("all of your {} tests pass", sound);
  if (!fault.shown)
    return fmt::format(
        "alive: a fault of {}, with which {}; it breaks the promise \"{}\" of the handout's table",
        name_of(fault.place), tests, fault.promise);
  return fmt::format("alive: {} ({} with `{}` in {})", fault.words, tests, fault.wrong,
                     fault.module);
}

void grade(const Submission& submission, Bench& bench, Report& report) {
  Findings findings;
  std::string broken;
  try {
    findings = findings_of(submission, bench);
  } catch (const DeviceError&) {
    throw;
  } catch (const Error& error) {
    broken = error.what();
    findings.hidden = hidden_faults(submission.seed());
  }
  const auto judge = [&](const std::string& id, int points, const auto& problem) {
    report.exact(id, points, broken.empty() ? problem() : broken);
    if (!broken.empty()) broken = "nothing ran: see above";
  };
  judge("no_false_alarm", 8, [&] { return false_alarms(findings); });
  judge("economy", 4, [&] { return economy(findings); });
  for (const auto number : numbers_where(true))
    judge(std::string(fault_of(number).name), 2, [&] { return alive(findings, number); });
  for (std::size_t i = 0; i < findings.hidden.size(); ++i)
    judge(fmt::format("hidden_{}", i + 1), 3, [&] { return alive(findings, findings.hidden[i]); });
  if (broken.empty() &&
      findings.found.size() == numbers_where(true).size() + findings.hidden.size())
    report.standings.push_back({"cycles of all tests", static_cast<double>(findings.cycles)});
}

std::vector<Prediction> predictions(Bench& bench) {
  constexpr int rows = 4, columns = 4, exact_bits = 24, positions = 16;
  constexpr int start = std::max(2 * rows + 7, positions + 3);  // docs/reference/mmu.md
  bench.put(kExample, lab_text(kHandout + kExample));
  const FaultyMachine machine(bench);
  const auto faulty = machine.run({kExample}, numbers_where(true));
  const auto found =
      std::ranges::count_if(faulty, [](const Outcome& outcome) { return !outcome.passed; });
  return {{"cycles_16", 5, start + 2 * positions + rows + columns + 5},
          {"example_finds", 5, found},
          {"exact_bits", 5, exact_bits},
          {"hazard_positions", 5, rows + 1}};
}

constexpr Explanation kQuestions[] = {
    {"whose_values", 5, "93be3a07b54f5153e84865af377d74d2494b6e2ed32c4f05fb35b5c8c05d81c6",
     "think of a test whose values came out of the very RTL that it tests"},
    {"all_ran", 5, "fce069fa097fa00dfbf01c25e957209a29992431701597fbc991b0baa376f60f",
     "look at ties_away: your first product ran that line, too"},
    {"small_numbers", 5, "479167e407e00837587ee5f9e0a0c822ce30084d7ee51c8ddb9e231b29e0181f",
     "which of the faults can a sum of small whole numbers show?"},
    {"only_time", 5, "a163aae1253d40d938f399e9a9bea6c02ea968dc0cf64704bf6542c282d5b229",
     "what did you have to expect, to find queue_a_word_short?"}};

}  // namespace

Lab lab_4_verifier() {
  return {.number = 4,
          .slug = "verifier",
          .title = "Be the verifier",
          .question = "would you have found it?",
          .grade = grade,
          .predictions = predictions,
          .explanations = kQuestions};
}

}  // namespace triptych::labs
