// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/initial_weights.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/unit/io/test_files.h"

namespace triptych::training {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TensorMap states_of(float value, std::int64_t classes) {
  TensorMap states;
  for (const auto* name : {"down.weight", "down.mean", "down.weight.m"})
    states.emplace(name, Tensor(Shape{2}, std::vector<float>(2, value)));
  states.emplace(
      "head.weight",
      Tensor(Shape{classes}, std::vector<float>(static_cast<std::size_t>(classes), value)));
  return states;
}

TakenWeights take(TensorMap& states, const TensorMap& from, const std::vector<std::string>& skip) {
  return take_weights(states, from, {.skip = skip, .is_optimizers = [](const std::string& name) {
                                       return name.ends_with(".m");
                                     }});
}

std::string problem_of(const TensorMap& from, const std::vector<std::string>& skip) {
  auto states = states_of(0, 1);
  try {
    return take(states, from, skip).text;
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST(InitialWeights, replace_parameters_and_statistics_and_leave_the_optimiser) {
  auto states = states_of(0, 1);
  const auto taken = take(states, states_of(1, 1), {});
  EXPECT_EQ(states.at("down.mean").as<float>()[1], 1);
  EXPECT_EQ(states.at("head.weight").as<float>()[0], 1);
  EXPECT_EQ(states.at("down.weight.m").as<float>()[0], 0);
  EXPECT_THAT(taken.text, AllOf(HasSubstr("3 parameters"), Not(HasSubstr("anew"))));
  auto others = states_of(0, 1);
  EXPECT_NE(take(others, states_of(2, 1), {}).sha256, taken.sha256);
}

TEST(InitialWeights, of_another_head_are_refused_unless_it_begins_anew) {
  EXPECT_THAT(problem_of(states_of(1, 3), {}), AllOf(HasSubstr("head.weight"), HasSubstr("[3]"),
                                                     HasSubstr("[1]"), HasSubstr("init-skip")));
  EXPECT_THAT(problem_of(states_of(1, 3), {"head*"}), HasSubstr("begun anew: head.weight"));
}

TEST(InitialWeights, that_are_not_finite_are_refused_by_name) {
  EXPECT_THAT(problem_of(states_of(NAN, 1), {}), AllOf(HasSubstr("down.mean"), HasSubstr("NaN")));
  auto from = states_of(1, 1);
  from.insert_or_assign("head.weight", Tensor(Shape{1}, std::vector<float>{INFINITY}));
  EXPECT_THAT(problem_of(from, {}), AllOf(HasSubstr("head.weight"), HasSubstr("inf")));
  EXPECT_THAT(problem_of(from, {"head*"}), HasSubstr("begun anew"));
}

NameMap names(const std::string& json) {
  const test::TemporaryFolder folder;
  test::put_file(folder / "names.json", json);
  return NameMap(folder / "names.json");
}

TEST(InitialWeights, have_other_names_elsewhere) {
  TensorMap from;
  from.emplace("encoder.0.weight", Tensor(Shape{2}, std::vector<float>{1, 2}));
  from.emplace("encoder.0.running_mean", Tensor(Shape{2}, std::vector<float>{3, 4}));
  from.emplace("head.weight", Tensor(Shape{1}, std::vector<float>{5}));
  from.emplace("unused", Tensor(Shape{1}, std::vector<float>{6}));
  auto states = states_of(0, 1);
  const auto is_optimizers = [](const std::string& name) { return name.ends_with(".m"); };
  const auto map = names(R"({"down.mean": "encoder.0.running_mean", "down.*": "encoder.0.*"})");
  take_weights(states, from, {.names = map, .is_optimizers = is_optimizers});
  EXPECT_EQ(states.at("down.weight").as<float>()[1], 2);
  EXPECT_EQ(states.at("down.mean").as<float>()[1], 4);
  EXPECT_EQ(states.at("head.weight").as<float>()[0], 5);
  EXPECT_THAT(
      [&] {
        take_weights(
            states, from,
            {.names = names(R"({"down.*": "decoder.*"})"), .is_optimizers = is_optimizers});
      },
      ::testing::ThrowsMessage<InvalidArgument>(
          HasSubstr("no \"decoder.mean\" for \"down.mean\"")));
  EXPECT_THAT(
      [&] {
        take_weights(states, states_of(1, 1),
                     {.names = names(R"({"up.*": "decoder.*"})"), .is_optimizers = is_optimizers});
      },
      ::testing::ThrowsMessage<InvalidArgument>(HasSubstr("\"up.*\" fits no")));
}

TEST(InitialWeights, names_that_are_no_pairs_are_refused) {
  for (const auto* json : {"[]", "{\"a\": 1}", "{\"a*\": \"b\"}", "{\"a*b*\": \"c*d*\"}",
                           "{\"a\": \"b\", \"a\": \"c\"}", "{\"a\": \"\"}", "{"}) {
    EXPECT_THROW(names(json), IoError) << json;
  }
  EXPECT_THROW(NameMap("missing.json"), IoError);
}

TEST(InitialWeights, that_lack_one_or_patterns_that_fit_none_are_refused) {
  auto from = states_of(1, 1);
  from.erase("down.mean");
  EXPECT_THAT(problem_of(from, {}), HasSubstr("have no \"down.mean\""));
  EXPECT_THAT(problem_of(states_of(1, 1), {"tail*"}), HasSubstr("\"tail*\" fits no"));
}

}  // namespace
}  // namespace triptych::training
