// Requested sizes of tiles are preserved. Texts that are no sizes are refused.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/systolic/lowering/tiling_choice.h"
#include "core/base/error.h"

namespace triptych::systolic {
namespace {

using testing::HasSubstr;

std::string problem_of(const std::string& text) {
  try {
    tiling_choice(text);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

/// 16 channels at 24 x 20, 3 x 3, to 40 columns.
StreamProblem convolution(bool transpose) {
  return {.transpose = transpose,
          .images = 3,
          .y = {.in = 24, .out = 24, .taps = 3, .first = -1},
          .x = {.in = 20, .out = 20, .taps = 3, .first = -1},
          .channels = 16,
          .group = 4,
          .columns = 40};
}

TEST(TilingChoice, sizes_are_read_from_text) {
  const auto choice = tiling_choice("pass=64,columns=all,taps=1,buffer=8");
  EXPECT_EQ(choice.pass, 64);
  EXPECT_EQ(choice.columns, TilingChoice::kAll);
  EXPECT_EQ(choice.taps, 1);
  EXPECT_EQ(choice.buffer, 8);
  EXPECT_FALSE(choice.x || choice.y || choice.images || choice.accumulators || choice.group);
  EXPECT_EQ(tiling_choice("").text, "");
}

TEST(TilingChoice, what_is_no_size_is_refused_by_name) {
  EXPECT_THAT(problem_of("rows=3"), HasSubstr("there is no size \"rows\"; there are images, y, x"));
  EXPECT_THAT(problem_of("pass"), HasSubstr("write NAME=NUMBER"));
  EXPECT_THAT(problem_of("pass=0"), HasSubstr("\"0\" is no size"));
  EXPECT_THAT(problem_of("pass=-1"), HasSubstr("give a number from 1"));
  EXPECT_THAT(problem_of("pass=4x"), HasSubstr("\"4x\" is no size"));
  EXPECT_THAT(problem_of("pass=99999999999999999999"), HasSubstr("is no size"));
  EXPECT_THAT(problem_of("pass=1,pass=2"), HasSubstr("pass is given twice"));
  EXPECT_THAT(problem_of("buffer=3"), HasSubstr("a power of two from 2 on"));
  EXPECT_THAT(problem_of("accumulators=1"), HasSubstr("a power of two from 2 on"));
  EXPECT_THAT(problem_of("taps=3"), HasSubstr("taps is 1"));
  EXPECT_THAT(problem_of(",pass=1"), HasSubstr("\"\" is no size"));
  EXPECT_THAT(problem_of("dataflow=3"),
              HasSubstr("\"3\" is no dataflow; give weight-stationary or output-stationary"));
  EXPECT_THAT(problem_of("dataflow=output-stationary,dataflow=output-stationary"),
              HasSubstr("dataflow is given twice"));
}

TEST(TilingChoice, the_planner_keeps_what_is_given_and_chooses_the_rest) {
  const auto machine = mmu::find_machine("mmu4");
  for (const bool transpose : {false, true}) {
    const auto problem = convolution(transpose);
    for (const auto* text : {"y=5,x=20", "pass=33", "columns=3", "x=7,y=1", "images=2,channels=8",
                             "images=1,pass=12,columns=1"}) {
      SCOPED_TRACE(std::string(text) + (transpose ? ", transposed" : ""));
      const auto choice = tiling_choice(text);
      if (!transpose && choice.channels) continue;
      for (const auto& tiling : choose_tilings(problem, machine, {}, choice).fastest) {
        EXPECT_EQ(tiling.box_y, choice.images == 2 ? 24 : choice.y.value_or(tiling.box_y));
        EXPECT_EQ(tiling.box_x, choice.images == 2 ? 20 : choice.x.value_or(tiling.box_x));
        EXPECT_EQ(tiling.box_images, choice.images.value_or(tiling.box_images));
        EXPECT_EQ(tiling.column_tiles, choice.columns.value_or(tiling.column_tiles));
        EXPECT_EQ(tiling.slicing.channels, choice.channels.value_or(tiling.slicing.channels));
        if (!choice.pass) continue;
        const auto box = tiling.box_images * tiling.box_y * tiling.box_x;
        const auto whole_rows = (*choice.pass + 3) / 4 * 4;
        EXPECT_EQ(tiling.pass, transpose ? whole_rows : std::min(*choice.pass, box));
      }
    }
  }
}

TEST(TilingChoice, a_tiling_as_text_gives_itself_again) {
  auto machine = mmu::find_machine("mmu4");
  for (const bool transpose : {false, true}) {
    machine.dataflows = transpose ? mmu::Dataflows::Both : mmu::Dataflows::OutputStationary;
    const auto problem = convolution(transpose);
    const Parts parts = {4, 2};
    const auto best = choose_tilings(problem, machine, parts).fastest.front();
    const auto text = to_string(best, parts, problem);
    const auto again = choose_tilings(problem, machine, parts, tiling_choice(text));
    EXPECT_EQ(again.fastest.at(0), best) << text;
  }
}

}  // namespace
}  // namespace triptych::systolic
