// Every option of `train` in a resumed run: it has a row in the table of policies, options that
// would change the run are refused, and all others are accepted.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/train_options.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "core/base/console.h"
#include "core/base/memory_budget.h"
#include "core/io/output_ledger.h"
#include "experiments/training/run_options.h"

namespace triptych::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using Words = std::vector<std::string>;

/// A value of each option that has one, and not its default.
const std::map<std::string, std::string> kValues = {{"--data", "other"},
                                                    {"--input", "x.npy"},
                                                    {"--target", "y.npy"},
                                                    {"--images", "there"},
                                                    {"--masks", "there"},
                                                    {"--mask-pattern", "{name}_mask.tif"},
                                                    {"--list", "list.csv"},
                                                    {"--train-split", "a"},
                                                    {"--validation-split", "b"},
                                                    {"--validation", "0.5"},
                                                    {"--labels", "0,128"},
                                                    {"--ignore-label", "7"},
                                                    {"--class-names", "ground,cell"},
                                                    {"--normalize", "image"},
                                                    {"--cache", "100"},
                                                    {"--synthetic-images", "9"},
                                                    {"--model", "unet-m"},
                                                    {"--freeze", "a*"},
                                                    {"--base", "4"},
                                                    {"--depth", "1"},
                                                    {"--size", "32"},
                                                    {"--in-channels", "3"},
                                                    {"--classes", "3"},
                                                    {"--optimizer", "sgd"},
                                                    {"--lr", "0.5"},
                                                    {"--schedule", "cosine"},
                                                    {"--schedule-steps", "5"},
                                                    {"--warmup", "2"},
                                                    {"--momentum", "0.5"},
                                                    {"--weight-decay", "0.1"},
                                                    {"--loss", "dice"},
                                                    {"--class-weights", "1,2"},
                                                    {"--border-weight", "3"},
                                                    {"--border-sigma", "4"},
                                                    {"--augmentation", "all"},
                                                    {"--drawing", "replacement"},
                                                    {"--epochs", "3"},
                                                    {"--steps-per-epoch", "7"},
                                                    {"--batch", "2"},
                                                    {"--seed", "5"},
                                                    {"--memory-limit", "100"},
                                                    {"--steps", "9"},
                                                    {"--accumulate", "2"},
                                                    {"--tile", "64"},
                                                    {"--margin", "8"},
                                                    {"--statistics-batches", "2"},
                                                    {"--mask-pictures", "1"},
                                                    {"--out", "elsewhere"},
                                                    {"--resume", "run"},
                                                    {"--checkpoint-every", "3"},
                                                    {"--init", "other"},
                                                    {"--init-names", "names.json"},
                                                    {"--init-skip", "head*"},
                                                    {"--keep", "dice"},
                                                    {"--patience", "2"},
                                                    {"--backend", "systolic"},
                                                    {"--backends", "systolic"},
                                                    {"--fallback", "cpu"},
                                                    {"--threads", "1"},
                                                    {"--contract", "f32"},
                                                    {"--kernel", "own"},
                                                    {"--choice", "table"},
                                                    {"--machine", "mmu4"},
                                                    {"--simulate", "twin"},
                                                    {"--ranks", "2"},
                                                    {"--transport", "simulated"},
                                                    {"--interconnect", "switch"},
                                                    {"--link-latency", "1"},
                                                    {"--link-bandwidth", "9"},
                                                    {"--strategy", "zero1"},
                                                    {"--shards", "4"},
                                                    {"--mesh", "dp=2,pp=2"},
                                                    {"--order", "ring"},
                                                    {"--comm-timeout", "9"},
                                                    {"--replay", "other"},
                                                    {"--color", "never"},
                                                    {"--max-memory", "1000000"}};

/// Other options that an option of a new run needs.
const std::map<std::string, Words> kBeside = {
    {"--list", {"--data", "d"}},
    {"--train-split", {"--data", "d", "--list", "list.csv"}},
    {"--validation-split", {"--data", "d", "--list", "list.csv"}},
    {"--mask-pattern", {"--data", "d"}},
    {"--labels", {"--data", "d"}},
    {"--ignore-label", {"--data", "d"}},
    {"--invert", {"--data", "d"}},
    {"--images", {"--data", "d"}},
    {"--masks", {"--data", "d"}},
    {"--synthetic-images", {"--data", "synthetic"}},
    {"--schedule-steps", {"--schedule", "cosine"}},
    {"--momentum", {"--optimizer", "sgd"}},
    {"--border-sigma", {"--border-weight", "3"}},
    {"--init-names", {"--init", "other"}},
    {"--init-skip", {"--init", "other"}},
    {"--patience", {"--keep", "dice"}},
    {"--target", {"--input", "x.npy"}},
    {"--interconnect", {"--transport", "simulated"}},
    {"--link-latency", {"--transport", "simulated"}},
    {"--link-bandwidth", {"--transport", "simulated"}},
    {"--shards", {"--order", "shard-tree"}},
    {"--replay", {"--strategy", "ps-async"}}};

/// `train` as the command line makes it.
struct Train {
  Train() {
    program.add_subcommand("train", "", [this](Command& command) {
      options.add_to(command);
      command.add_flag("--json");
    });
  }
  void parse(Words words) {
    words.insert(words.begin(), "train");
    program.parse(words);
  }
  std::vector<KnownOption> known() const { return program.subcommands().front().options(); }

  CommandLine program{"triptych"};
  TrainOptions options;
};

/// The configuration of a new run. Empty where there is no such run.
std::string configuration(const Words& words) {
  Train train;
  train.parse(words);
  try {
    return training::to_json(train.options.config());
  } catch (const Error&) {
    return {};
  }
}

/// The answer of a resumed run to an option. Empty: it takes it.
std::string said_of(const std::string& word) {
  Train train;
  train.parse(word.starts_with("--resume") ? Words{word} : Words{"--resume=run", word});
  training::SavedRun saved;
  Train usual;
  usual.parse({});
  saved.config = usual.options.config();
  try {
    train.options.apply_to(saved);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

class GoingOn : public ::testing::Test {
 protected:
  ~GoingOn() override {
    allow_overwriting({});
    set_loudness(Loudness::Usual);
    set_colours(Colours::Auto);
    memory_budget().set_limit(limit_);
  }

 private:
  std::size_t limit_ = memory_budget().limit();
};

TEST_F(GoingOn, has_a_policy_for_each_option) {
  std::set<std::string_view> names;
  for (const auto& option : Train().known()) {
    const auto* row = training::find_run_option(option.name);
    ASSERT_NE(row, nullptr) << option.name << " needs a row in run_options.cpp";
    names.insert(row->name);
  }
  using enum training::OptionGroup;
  for (const auto& option : training::run_options()) {
    if (option.group == None || option.group == Tiling || option.group == Folds) continue;
    EXPECT_TRUE(names.contains(option.name)) << "train has no option " << option.name;
  }
}

TEST_F(GoingOn, takes_all_options_but_those_that_would_make_another_run) {
  using enum training::ResumePolicy;
  int refused = 0, taken = 0;
  for (const auto& option : Train().known()) {
    SCOPED_TRACE(option.name);
    if (option.name == "--previous") continue;  // of --resume alone
    if (option.name == "--plugin") continue;    // a library that must exist
    ASSERT_TRUE(!option.takes_value || kValues.contains(option.name)) << "give it a value here";
    const auto word =
        option.takes_value ? option.name + "=" + kValues.at(option.name) : option.name;
    const auto beside = kBeside.find(option.name);
    auto without = beside == kBeside.end() ? Words{} : beside->second;
    auto with = without;
    with.push_back(word);
    const bool of_files = option.name == "--target";  // a configuration reads them
    ASSERT_TRUE(of_files || !configuration(without).empty());
    const auto policy = training::run_option(option.name).resume;
    // The parser asks for these flags' --resume or --out, and a configuration has neither.
    const bool of_program = option.of_program || option.name == "--json";
    const bool changes =
        !of_program && option.name != "--resume" && configuration(with) != configuration(without);
    EXPECT_TRUE(!changes || policy != Free) << "part of the run, which must store it";
    const bool another = policy == Stored || policy == Refused;
    const bool same_value = option.name == "--contract";
    const auto refusal = HasSubstr("the option " + option.name.substr(2) + " cannot change");
    if (another && !same_value) {
      EXPECT_THAT(said_of(word), refusal);
    } else {
      EXPECT_THAT(said_of(word), Not(HasSubstr("cannot change")));
    }
    ++(another ? refused : taken);
  }
  EXPECT_GT(refused, 35);
  EXPECT_GT(taken, 30);
}

TEST_F(GoingOn, keeps_the_options_of_the_program) {
  Train train;
  train.parse({"--out=run", "--quiet", "--batch=2", "--max-memory=1000000", "--color=never"});
  EXPECT_THAT(
      train.options.resumption("run"),
      UnorderedElementsAre("--resume", "run", "--quiet", "--max-memory=1000000", "--color=never"));
}

}  // namespace
}  // namespace triptych::app
