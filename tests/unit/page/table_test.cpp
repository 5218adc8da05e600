// Numbers as text, tables as HTML and as CSV.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/table.h"

#include <gmock/gmock.h>

#include <cmath>

#include "experiments/page/format.h"

namespace triptych::page {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Format, takes_the_prefix_that_reads_well) {
  EXPECT_EQ(format_quantity(0.0123, "s"), "12.3\u00A0ms");
  EXPECT_EQ(format_quantity(0.00099999, "s"), "1.00\u00A0ms");
  EXPECT_EQ(format_quantity(1234.5, "s"), "1,234\u00A0s");
  EXPECT_EQ(format_quantity(1.53e11, "FLOP/s"), "153\u00A0GFLOP/s");
  EXPECT_EQ(format_quantity(2.2e10, "byte/s"), "22.0\u00A0GB/s");
  EXPECT_EQ(format_quantity(0.873, "%"), "87.3\u00A0%");
  EXPECT_EQ(format_quantity(0.333333, "x"), "0.333×");
  EXPECT_EQ(format_quantity(131072, "1"), "131,072");
  EXPECT_EQ(format_quantity(0, "s"), "0\u00A0s");
  EXPECT_EQ(format_quantity(NAN, "s"), "–");
}

TEST(Format, options_of_commands_do_not_break_after_their_dashes) {
  EXPECT_EQ(escape_prose("run --out A & -DX=<1>"),
            "run <span class=\"option\"><span>--o</span>ut</span> A &amp; "
            "<span class=\"option\"><span>-D</span>X=&lt;1&gt;</span>");
  EXPECT_EQ(escape_prose("a - b -- -1 -\u00e9\nc "), "a - b -- -1 -\u00e9\nc ");
}

TEST(Format, escapes_for_text_and_attributes) {
  EXPECT_EQ(escape("<a b=\"c\" d='e'>&\x01"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\uFFFD");
}

const Json& report() {
  static const Json json = Json::parse(R"({"rows": [
    {"name": "cpu", "flops": 1000,
     "time": {"value": 0.5, "unit": "s", "kind": "measured", "source": "a clock"}},
    {"name": "=array, \"RTL\"", "flops": 2000,
     "time": {"value": null, "unit": "s", "kind": "simulated"}}],
    "a/b~": 4, "ratio": {"value": 2.5, "kinds": ["measured", "simulated"], "of": "epoch"}})");
  return json;
}

Table table() {
  Table result{.id = "t", .caption = "Times & more", .columns = {"machine", "time", "rate"}};
  for (const auto& row : JsonView(report())["rows"].items()) {
    result.rows.push_back(
        {text_cell(row["name"].text()), figure_cell(row["time"]),
         quotient_cell(row["flops"], row["time"]["value"], "FLOP/s", "measured")});
  }
  return result;
}

TEST(JsonView, knows_its_pointer_and_reads_what_is_missing_as_null) {
  const JsonView root(report());
  EXPECT_EQ(root["rows"][1]["name"].path(), "/rows/1/name");
  EXPECT_EQ(root["a/b~"].path(), "/a~1b~0");
  const Json::json_pointer pointer(root["a/b~"].path());
  EXPECT_EQ(report().at(pointer), 4);
  EXPECT_TRUE(root["no"]["such"][7]["thing"].null());
  EXPECT_TRUE(std::isnan(root["no"].number()));
  EXPECT_EQ(root["rows"][9].path(), "");
}

TEST(Table, a_number_shows_its_kind_its_source_and_its_place) {
  const auto html = table_html(table());
  EXPECT_THAT(html, HasSubstr("<data value=\"0.5\" data-value=\"0.5\" "
                              "data-path=\"/rows/0/time/value\" title=\"a clock\">500\u00A0ms"));
  EXPECT_THAT(html, HasSubstr("class=\"kind measured\""));
  EXPECT_THAT(html, HasSubstr("data-over=\"/rows/0/time/value\">2.00\u00A0kFLOP/s"));
  EXPECT_THAT(html, HasSubstr("<span class=\"none\">–</span>"));
  EXPECT_THAT(html, HasSubstr("<caption>Times &amp; more</caption>"));
  EXPECT_THAT(html, Not(HasSubstr("simulated</span></span>"))) << "nothing of that kind is shown";
}

TEST(Table, numbers_are_right_aligned_and_words_are_not) {
  EXPECT_FALSE(is_number_column(table(), 0));
  EXPECT_TRUE(is_number_column(table(), 1));
  EXPECT_THAT(table_html(table()), HasSubstr("<th scope=\"col\" class=\"n\">time</th>"));
}

TEST(Table, its_csv_has_all_digits_units_and_kinds) {
  EXPECT_EQ(table_csv(table()),
            "machine,time [s],time kind,rate [FLOP/s],rate kind\n"
            "cpu,0.5,measured,2000,measured\n"
            "\"'=array, \"\"RTL\"\"\",,simulated,,measured\n");
}

TEST(Table, a_ratio_shows_both_kinds) {
  const auto cell = ratio_cell(JsonView(report())["ratio"]);
  EXPECT_EQ(cell.kind, "measured/simulated");
  const auto html = cell_html(cell);
  EXPECT_THAT(html, HasSubstr("2.50×"));
  EXPECT_LT(html.find("kind measured"), html.find("kind simulated"));
}

}  // namespace
}  // namespace triptych::page
