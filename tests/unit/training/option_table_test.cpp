// Each row of the table of options in JSON, limits, facts of ranks and resumed runs.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "experiments/training/rank_consistency.h"
#include "experiments/training/run_options.h"
#include "experiments/training/saved_fields.h"

namespace triptych::training {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

/// Gives the member another value of its type.
void change(const Value& value, const std::string& name) {
  const auto set = [&]<class T>(const T& member) {
    if constexpr (std::is_same_v<T, TextValue>) {
      auto texts =
          member.type->names == nullptr ? std::vector<std::string>{} : member.type->names();
      // The texts of values that have no list of names.
      texts.insert(texts.end(), {"none", "int8", "pipeline:4", "dp=2,pp=2"});
      const auto before = member.text();
      for (const auto& text : texts) {
        try {
          member.take(text);
        } catch (const InvalidArgument&) {
          continue;
        }
        if (member.text() != before) return;
      }
      FAIL() << name << " needs a text here";
    } else if constexpr (std::is_same_v<T, bool*>) {
      *member = !*member;
    } else if constexpr (std::is_same_v<T, std::string*>) {
      *member += "x";
    } else if constexpr (requires { member->emplace_back(); }) {
      member->emplace_back();
    } else {
      *member += 1;
    }
  };
  std::visit(set, value);
}

TEST(OptionTable, stores_and_restores_each_value_of_a_machine) {
  int count = 0;
  for (const auto& option : run_options()) {
    ExecutionConfig machine;
    const auto value = value_in(option, machine);
    if (!value) continue;
    const std::string field(option.field);
    SCOPED_TRACE(field);
    change(*value, field);
    machine.parallel.strategy.kind = field == "mesh"
                                         ? parallel::strategy_from_string("pipeline:2").kind
                                         : machine.parallel.strategy.kind;
    Json json;
    write_machine(json, machine);
    const bool stored = option.stored;
    EXPECT_EQ(json.contains(field), stored);
    auto read = read_machine(json);
    EXPECT_EQ(same_value(*value, *value_in(option, read)), stored);
    ++count;
  }
  EXPECT_GT(count, 20);
}

TEST(OptionTable, stores_and_restores_each_value_of_a_run) {
  int count = 0;
  for (const auto& option : run_options()) {
    RunConfig config;
    const auto value = value_in(option, config);
    if (!value) continue;
    const std::string field(option.field);
    SCOPED_TRACE(field);
    change(*value, field);
    Json holder;
    const auto point = field.find('.');
    auto& json = point == field.npos ? holder : holder[field.substr(0, point)];
    json[std::string(last_part(field))] = json_of(*value);
    RunConfig other;
    const auto read = *value_in(option, other);
    EXPECT_FALSE(same_value(*value, read));
    read_option(holder, option, read);
    EXPECT_TRUE(same_value(*value, read));
    ++count;
  }
  EXPECT_GT(count, 50);
}

/// The configuration that a run of this version stores. A later version must read it.
TEST(OptionTable, keeps_the_json_of_a_run) {
  const auto golden = nlohmann::json::parse(R"({
    "accumulate": 1, "augmentation": "flips", "batch": 4, "beta1": 0.8999999761581421,
    "beta2": 0.9990000128746033, "checkpoint_every": 0,
    "data": {"cache_mib": 0, "class_names": "", "ignore_label": -1, "images": "",
             "invert": false, "list": "", "mask_pattern": "", "masks": "",
             "normalize": "dataset", "normalize_channels": "each", "sections": "together",
             "source": "synthetic", "synthetic_images": 40, "train_split": "train",
             "validation_fraction": 0.2, "validation_split": "validation"},
    "drawing": "epochs", "epochs": 10, "epsilon": 9.99999993922529e-09, "keep": "none",
    "learning_rate": 0.0010000000474974513, "loss": "cross-entropy", "margin": -1,
    "memory_limit_mib": 0,
    "model": {"base": 8, "classes": 1, "depth": 3, "in_channels": 1, "name": "unet-s",
              "size": 64},
    "momentum": 0.8999999761581421, "nesterov": false, "optimizer": "adam", "patience": 0,
    "schedule": "constant", "schedule_steps": 0, "seed": 0, "statistics_batches": 8, "steps": 0,
    "steps_per_epoch": 0, "tile": 0, "warmup": 0, "weight_decay": 0.0,
    "weights": {"border": 0.0, "border_sigma": 5.0, "classes": ""}})");
  const RunConfig config;
  EXPECT_EQ(nlohmann::json::parse(to_json(config)).dump(1), golden.dump(1));
  EXPECT_EQ(to_json(run_config_from_json(golden.dump())), to_json(config));
  auto given = config;
  given.init = "weights";
  given.init_skip = {"head*"};
  given.data.folds = 5;
  given.data.labels = "0,255";
  given.cut = {3, 4};
  const auto json = nlohmann::json::parse(to_json(given));
  EXPECT_EQ(json["init_skip"].dump(), R"(["head*"])");
  EXPECT_EQ(json["init_sha256"], "");
  EXPECT_FALSE(json.contains("init_names"));
  EXPECT_EQ(json["data"]["fold"], 0);
  EXPECT_EQ(json["data"]["labels"], "0,255");
  EXPECT_EQ(json["cut"].dump(), "[3,4]");
}

TEST(OptionTable, refuses_each_number_of_a_run_beyond_its_limits) {
  int count = 0;
  for (const auto& option : run_options()) {
    const auto* limits = std::get_if<WholeLimits>(&option.limits);
    const auto* member = std::get_if<RunMember>(&option.member);
    if (limits == nullptr || member == nullptr) continue;
    RunConfig config;
    const auto value = (*member)(config);
    const auto set = [&]<class T>(const T& number) {
      if constexpr (std::is_integral_v<std::remove_pointer_t<T>> && !std::is_same_v<T, bool*>)
        *number =
            static_cast<std::remove_pointer_t<T>>(static_cast<std::uint64_t>(limits->high)) + 1;
    };
    std::visit(set, value);
    try {
      require_within_limits(config);
      ADD_FAILURE() << option.field;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr("\"" + std::string(last_part(option.field)) + "\""));
    }
    ++count;
  }
  EXPECT_GT(count, 15);
}

TEST(OptionTable, compares_each_value_between_ranks_by_its_policy) {
  for (const auto& option : run_options()) {
    ExecutionConfig machine, exact;
    if (!value_in(option, machine) || option.field == "contract") continue;
    const std::string field(option.field);
    SCOPED_TRACE(field);
    exact.contract = Contract::Int8;
    const auto before = facts_of({}, machine), exact_before = facts_of({}, exact);
    change(*value_in(option, machine), field);
    change(*value_in(option, exact), field);
    EXPECT_EQ(facts_of({}, machine) != before, option.ranks != RankPolicy::Own);
    EXPECT_EQ(facts_of({}, exact) != exact_before, option.ranks == RankPolicy::Same);
  }
}

TEST(OptionTable, tells_a_run_of_other_options_from_one_that_was_completed) {
  RunConfig asked;
  auto saved = asked;
  saved.schedule_steps = 40;
  saved.cut = {3, 4};
  saved.data.palette = "0 0 0";
  saved.data.shares = {0.5, 0.5};
  saved.data.labels = "0,255";
  EXPECT_TRUE(is_run_of(saved, asked));
  asked.schedule_steps = 9;
  EXPECT_FALSE(is_run_of(saved, asked)) << "a value that was given counts";
  asked.schedule_steps = 40;
  EXPECT_TRUE(is_run_of(saved, asked));
  asked.data.labels = "0,128";
  EXPECT_FALSE(is_run_of(saved, asked));
  asked.data.labels.clear();
  asked.training.seed = 1;
  EXPECT_FALSE(is_run_of(saved, asked));
}

}  // namespace
}  // namespace triptych::training
