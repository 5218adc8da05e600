// The texts of strategies.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/strategy.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/ops/collectives.h"

namespace triptych::parallel {
namespace {

TEST(Strategy, is_read_from_its_text_and_written_as_it) {
  for (const char* text :
       {"dp", "zero1", "zero2", "zero3", "layers", "pipeline:8", "pipeline:8,gpipe",
        "pipeline:1,gpipe", "tp", "ps-sync", "central", "local-sgd:16", "ps-async", "ps-async:8",
        "local-sgd-async", "local-sgd-async:4", "local-sgd-async:16,8"}) {
    EXPECT_EQ(to_string(strategy_from_string(text)), text);
  }
  for (const auto& [longer, text] : {std::pair{"pipeline:1", "layers"},
                                     {"pipeline:2,1f1b", "pipeline:2"},
                                     {"ps-async:3", "ps-async"},
                                     {"local-sgd-async:16,3", "local-sgd-async"}}) {
    EXPECT_EQ(strategy_from_string(longer), strategy_from_string(text));
    EXPECT_EQ(to_string(strategy_from_string(longer)), text);
  }
}

TEST(Strategy, keeps_its_mesh) {
  const auto strategy = strategy_from_string("pipeline:2", "dp=2,pp=3");
  EXPECT_EQ(to_string(strategy.mesh), "dp=2,pp=3");
  EXPECT_NE(strategy, strategy_from_string("pipeline:2"));
  EXPECT_EQ(to_string(Mesh()), "");
  EXPECT_NO_THROW(strategy_without_mesh("ddp2d"));
  EXPECT_THROW(validate(strategy_without_mesh("ddp2d")), InvalidArgument);
}

TEST(ReductionOrder, is_a_name_in_the_attributes_of_an_operator) {
  AllReduce op;
  const auto with = [&](const char* order) {
    return op.with_attributes(std::vector<Attribute>{{"order", order}});
  };
  for (const auto& [order, name] : kNamesOf<ReductionOrder>) {
    const auto read = with(std::string(name).c_str());
    EXPECT_EQ(dynamic_cast<const AllReduce&>(*read).order, order);
    EXPECT_EQ(read->attributes()[1], (Attribute{"order", std::string(name)}));
  }
  EXPECT_THROW(with("sorted"), InvalidArgument);
}

}  // namespace
}  // namespace triptych::parallel
