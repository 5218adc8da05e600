// Every option of every command, as the program itself lists them, with values that make no sense.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <iterator>
#include <set>
#include <sstream>

#include "core/base/random.h"
#include "experiments/app/command_guide.h"
#include "experiments/app/commands.h"

namespace triptych::app {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

class Program : public ::testing::Test {
 protected:
  Program() {
    add_commands(app_, context_);
    collect(app_, {});
  }

  std::string problem(const Words& words) { return app_.problem_of(words); }

  struct Target {
    Words path;  ///< of the command
    std::vector<KnownOption> options;
  };

  Context context_;
  CommandLine app_{"triptych"};
  std::vector<Target> commands_;

 private:
  void collect(const Command& command, const Words& path) {
    if (!path.empty()) commands_.push_back({path, command.options()});
    for (const auto& below : command.subcommands()) {
      auto longer = path;
      longer.push_back(below.name());
      collect(below, longer);
    }
  }
};

TEST_F(Program, every_option_refuses_values_that_it_cannot_have_and_says_which) {
  const Words nonsense = {
      "-2",  "99999999999999999999", "1e400", "nan", "inf", "-inf", "", "x", "1x", "0x", " ",
      "1,,2"};
  std::set<std::string> seen;
  for (const auto& [path, options] : commands_) {
    for (const auto& option : options) {
      if (!option.takes_value) continue;
      seen.insert(option.name);
      for (const auto& value : option.of_numbers ? nonsense : Words{""}) {
        auto words = path;
        words.push_back(option.name + "=" + value);
        EXPECT_THAT(problem(words), HasSubstr(option.name)) << path.back() << " " << value;
        if (option.name == "--confine") continue;  // its value may be left out
        words.back() = option.name;
        words.push_back(value);
        EXPECT_THAT(problem(words), HasSubstr(option.name)) << path.back() << " " << value;
      }
    }
  }
  EXPECT_GT(commands_.size(), 20U);
  for (const auto* name :
       {"--lr", "--margin", "--bytes", "--link-latency", "--shape", "--claims"}) {
    EXPECT_TRUE(seen.contains(name)) << name;
  }
}

TEST_F(Program, options_that_mean_nothing_here_are_refused_with_what_they_apply_with) {
  const std::pair<Words, const char*> cases[] = {
      {{"train", "--train-split", "a"}, "--list"},
      {{"train", "--validation-split", "a"}, "--list"},
      {{"train", "--data", "x", "--synthetic-images", "9"}, "--data synthetic"},
      {{"train", "--images", "x", "--synthetic-images", "9"}, "--images"},
      {{"train", "--momentum", "0.5"}, "--optimizer sgd"},
      {{"train", "--schedule-steps", "5"}, "--schedule cosine"},
      {{"train", "--link-latency", "1"}, "--transport simulated"},
      {{"train", "--transport", "mpi", "--interconnect", "ring"}, "--transport simulated"},
      {{"train", "--shards", "4"}, "--order shard-tree"},
      {{"train", "--replay", "x", "--strategy", "zero1"}, "ps-async"},
      {{"train", "--previous"}, "--resume"},
      {{"train", "--overwrite"}, "--out or --resume"},
      {{"evaluate", "w", "--overwrite"}, "--out"},
      {{"explain", "--overwrite"}, "--dot"},
      {{"trace", "--overwrite"}, "--out or --program or --waves or --per-pe"},
      {{"bench", "--momentum", "0.5", "--mode", "train"}, "--optimizer sgd"},
      {{"bench", "--optimizer", "sgd"}, "--mode train"},
      {{"bench", "--source"}, "--backend cuda-emulated"},
      {{"bench", "--backend", "cuda-emulated", "--repeats", "3"}, "cuda-emulated"},
      {{"bench", "--mode", "train", "matmul"},
       "after the command matmul: triptych bench matmul --mode"},
      {{"bench", "conv", "--link", "pcie3x16"}, "--backends"},
      {{"bench", "conv", "--layer", "unet-l:x", "--window", "3"}, "--window"},
      {{"bench", "bandwidth", "--machine", "mmu16"}, "--backends systolic"},
      {{"bench", "strategies", "--launch", "1"}, "--device"},
      {{"bench", "strategies", "--calibration", "x", "--device", "h200"}, "--device"},
      {{"compare", "--backends", "cpu,cuda", "--machine", "mmu16"}, "--backends systolic"},
      {{"explain", "--mode", "infer", "--memory-limit", "5"}, "--mode train"},
      {{"trace", "--cycles", "1..5"}, "--backend systolic"},
      {{"trace", "--backend", "systolic", "--cycles", "1..5"}, "--waves"},
      {{"trace", "--backend", "systolic", "--ranks", "2", "--node", "x"}, "--ranks"},
      {{"--lr", "0.1", "train"}, "after the command: triptych train --lr"}};
  for (const auto& [words, says] : cases) {
    EXPECT_THAT(problem(words), HasSubstr(says)) << testing::PrintToString(words);
  }
}

TEST_F(Program, a_search_for_a_rate_has_no_option_of_a_rate_a_length_or_an_evaluation) {
  for (const auto* option : {"--lr", "--schedule", "--warmup", "--epochs", "--steps-per-epoch",
                             "--tile", "--margin", "--statistics-batches", "--mask-pictures"}) {
    EXPECT_THAT(problem({"find-lr", option, "1"}), HasSubstr("unknown option")) << option;
    EXPECT_THAT(problem({"cross-validate", option, "1"}), Not(HasSubstr("unknown"))) << option;
  }
}

TEST_F(Program, choices_are_read_where_they_are_written) {
  const std::pair<Words, const char*> cases[] = {
      {{"train", "--strategy", "zero4"}, "--strategy: no strategy \"zero4\""},
      {{"train", "--strategy", "pipeline:0"}, "--strategy: no strategy"},
      {{"train", "--strategy="}, "--strategy"},
      {{"train", "--mesh", "dp"}, "--mesh: no mesh \"dp\""},
      {{"train", "--order", "sorted"}, "--order: must be one of rank-ordered"},
      {{"train", "--optimizer", "rmsprop"}, "--optimizer: must be one of sgd, adam, adamw"},
      {{"train", "--loss", "hinge"}, "--loss: must be one of cross-entropy"},
      {{"train", "--backend", "systolic", "--simulate", "vhdl"}, "--simulate: must be one of twin"},
      {{"train", "--choice", "best"}, "--choice: must be one of measured, table, auto"},
      {{"train", "--contract", "f8"}, "--contract: "},
      {{"bench", "--mode", "sleep"}, "--mode: must be one of train, infer"},
      {{"bench", "strategies", "--optimizer", "rmsprop"}, "--optimizer: must be one of"},
      {{"bench", "conv", "--pass", "up"}, "--pass: must be one of forward, data, weights"}};
  for (const auto& [words, says] : cases)
    EXPECT_THAT(problem(words), HasSubstr(says)) << testing::PrintToString(words);
}

TEST_F(Program, options_that_mean_something_are_taken) {
  const Words cases[] = {
      {"train", "--list", "l", "--data", "d", "--train-split", "a"},
      {"train", "--synthetic-images", "9", "--margin", "-1"},
      {"train", "--optimizer", "sgd", "--momentum", "0.5", "--lr", "0.1"},
      {"train", "--transport", "simulated", "--link-latency", "0"},
      {"train", "--strategy", "local-sgd-async:4,2", "--ranks", "2", "--replay", "x"},
      {"train", "--resume", "x", "--link-latency", "1e-6", "--shards", "4"},
      {"compare", "--backends", "cpu,systolic:rtl", "--machine", "mmu16"},
      {"bench", "attention", "--lengths", "1,4..64", "--threads", "0"},
      {"bench", "all-reduce", "--bytes", "4KiB..1MiB,64", "--ranks", "2,4"},
      {"run", "w", "--input", "a.png", "--input", "b.png", "--out", "m"},
      {"run", "r", "--out", "m", "--save", "mask,instances", "--objects", "watershed", "--values",
       "classes"},
      {"run", "r", "--out", "m", "--save", "probabilities,overlay", "--threshold", "0.4"},
      {"run", "r", "--out", "m", "--format", "tiff", "--stream-above", "100"},
      {"train", "--resume", "x", "--overwrite"},
      {"compare", "--overwrite"},
      {"page", "x", "--overwrite"},
      {"train", "--help"}};
  for (const auto& words : cases) {
    EXPECT_THAT(problem(words), IsEmpty()) << testing::PrintToString(words);
  }
}

/// Words of an example without "triptych".
Words words_of(std::string_view example) {
  std::istringstream text{std::string(example)};
  Words words{std::istream_iterator<std::string>(text), {}};
  words.erase(words.begin());
  return words;
}

TEST_F(Program, every_command_has_two_examples_that_are_right) {
  for (const auto& [path, options] : commands_) {
    const auto name = fmt::format("{}", fmt::join(path, " "));
    const auto* guide = find_guide(name);
    ASSERT_NE(guide, nullptr) << name;
    EXPECT_GE(guide->examples.size(), 2U) << name;
    EXPECT_EQ(guide->heading.empty(), path.size() > 1) << name;
    for (const auto example : guide->examples) {
      const bool of_shell = !example.starts_with("triptych ") || example.find('|') != example.npos;
      if (of_shell) continue;
      EXPECT_THAT(problem(words_of(example)), IsEmpty()) << example;
    }
  }
}

TEST(CommandLine, describes_the_commands_that_arguments_name) {
  CommandLine program("triptych");
  Words described;
  for (const std::string name : {"one", "two"}) {
    program.add_subcommand(name, "", [&described, name](Command& command) {
      described.push_back(name);
      command.add_flag("--of-" + name);
    });
  }
  EXPECT_EQ(program.problem_of({"one", "--of-one", "--quiet"}), "");
  EXPECT_THAT(described, ElementsAre("one"));
  EXPECT_THAT(program.problem_of({"one", "--of-two"}), HasSubstr("it is an option of two"));
  EXPECT_THAT(described, ElementsAre("one", "two"));
}

TEST_F(Program, a_missing_command_is_named_before_its_options) {
  EXPECT_THAT(problem({"trian", "--model", "unet-s"}),
              AllOf(HasSubstr("unknown command \"trian\""), HasSubstr("mean \"train\"?")));
  EXPECT_THAT(problem({"train", "--tiling", "x"}), HasSubstr("it is an option of bench"));
  EXPECT_THAT(problem({"lab", "start"}), HasSubstr("NUMBER is missing: number of the lab"));
}

/// No command line is answered by anything but a message or the command itself.
TEST_F(Program, random_command_lines_are_taken_or_refused_with_a_message) {
  RandomStream random(5, 0);
  const Words values = {"",    "0",  "-1",  "1",    "7",    "nan",       "1e300",
                        "x,y", "..", "a=b", "--",   "-",    "synthetic", "sgd",
                        "1..", "=",  "1,2", "\xff", "--lr", "--resume"};
  const auto pick = [&](const auto& list) {
    return list[static_cast<std::size_t>(random.below(std::ssize(list)))];
  };
  int refused = 0;
  constexpr int kLines = 3000;
  for (int line = 0; line < kLines; ++line) {
    const auto& target = pick(commands_);
    auto words = target.path;
    for (auto count = random.below(5); count > 0; --count) {
      if (!target.options.empty()) words.push_back(pick(target.options).name);
      if (random.below(4) > 0) words.push_back(pick(values));
      if (random.below(8) == 0) std::swap(words.front(), words.back());
    }
    const auto said = problem(words);
    if (said.empty()) continue;
    ++refused;
    EXPECT_THAT(said, AllOf(HasSubstr("triptych"), HasSubstr("--help"))) << said;
  }
  EXPECT_GT(refused, kLines / 3);
}

}  // namespace
}  // namespace triptych::app
