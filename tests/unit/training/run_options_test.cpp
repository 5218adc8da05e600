// The policies of options when a run is resumed, without a command line.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_options.h"

#include <gmock/gmock.h>

#include <set>

#include "core/base/error.h"
#include "experiments/training/device_set.h"

namespace triptych::training {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

/// The message of a resumed run to an option of the machine. Empty: it takes it.
std::string answer(const std::string& name, const ExecutionConfig& asked,
                   ExecutionConfig run = {}) {
  const RunConfig usual;
  RunConfig config;
  const Names names = {name};
  try {
    apply_on_resume({.given = names, .config = usual, .machine = asked}, config, run);
    return {};
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST(RunOptions, have_one_row_each) {
  std::set<std::string_view> names, fields;
  std::set<std::string_view> keywords;
  for (const auto& option : run_options()) {
    EXPECT_TRUE(!option.name.empty() || !option.field.empty());
    EXPECT_TRUE(option.field.empty() || fields.insert(option.field).second) << option.field;
    EXPECT_TRUE(option.python.empty() || keywords.insert(option.python).second) << option.python;
    if (option.name.empty()) continue;
    EXPECT_TRUE(option.name.starts_with("--")) << option.name;
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_EQ(find_run_option(option.name), &option);
    EXPECT_EQ(find_run_option(option.name.substr(2)), &option);
  }
  EXPECT_EQ(find_run_option("--no-such-option"), nullptr);
}

TEST(RunOptions, that_choose_kernels_are_stored) {
  const ExecutionConfig usual;
  ExecutionConfig other = {.kernel = "nonsense"};
  EXPECT_THAT(answer("--kernel", other),
              AllOf(HasSubstr("the option kernel cannot change from unset to nonsense"),
                    HasSubstr("leave it out")));
  EXPECT_EQ(answer("--kernel", other, other), "");
  EXPECT_EQ(answer("--kernel", usual), "");
  other = {.choice = Selection::Table};
  EXPECT_THAT(answer("--choice", other), HasSubstr("from auto to table"));
  other = {.winograd = false};
  EXPECT_THAT(answer("--no-winograd", other), HasSubstr("from off to on"));
  EXPECT_THROW(require_same_numerics(usual, other), InvalidArgument);
  EXPECT_NO_THROW(require_same_numerics(other, other));
}

TEST(RunOptions, of_another_backend_leave_the_array_of_the_first) {
  ExecutionConfig run = {.backend = "systolic", .machine = "mmu4"};
  const ExecutionConfig asked = {.backend = "cpu", .threads = 3};
  const RunConfig usual;
  const Names names = {"--backend"};
  apply_on_resume({.given = names, .config = usual, .machine = asked}, run);
  EXPECT_EQ(run.backend, "cpu");
  EXPECT_EQ(run.machine, "");
  EXPECT_EQ(run.threads, 3) << "each command gives its own";
}

TEST(RunOptions, name_fields_that_may_differ_between_ranks) {
  EXPECT_TRUE(is_per_process("data.source"));
  EXPECT_TRUE(is_per_process("data.inputs.0"));
  EXPECT_FALSE(is_per_process("data.inputs_of_another"));
  EXPECT_FALSE(is_per_process("steps"));
}

}  // namespace
}  // namespace triptych::training
