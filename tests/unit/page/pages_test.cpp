// Pages: their statements about a report, whole, broken or hostile. tests/report opens them in a
// browser.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "experiments/compare/compare_page.h"
#include "experiments/page/page.h"
#include "experiments/studies/reproduce_page.h"

namespace triptych::page {
namespace {

using compare::compare_page;
using studies::reproduce_page;
using ::testing::HasSubstr;
using ::testing::Not;

Json machine(const std::string& name) {
  return {{"name", name},
          {"backend", name},
          {"available", true},
          {"checks_bits_only", false},
          {"losses", {0.5, 0.25}},
          {"weights_sha256", "0123456789abcdef"},
          {"times", {{"epoch", {{"value", 2.0}, {"unit", "s"}, {"kind", "measured"}}}}}};
}

Json report(Json machines, Json verdict) {
  Json results = {{"experiment", {{"model_name", "unet-s"}, {"contract", "bf16-exact"}}},
                  {"machines", std::move(machines)},
                  {"verdict", std::move(verdict)},
                  {"notes", {"no GPU here: no driver"}}};
  return {{"schema", 1},
          {"command", "compare"},
          {"environment", {{"cpu", "A processor"}}},
          {"results", std::move(results)}};
}

Json verdict(bool identical) {
  return {{"identical", identical}, {"losses", identical},      {"weights", identical},
          {"masks", identical},     {"machines", {"cpu", "b"}}, {"first_difference", nullptr}};
}

Json pair() { return Json::array({machine("cpu"), machine("b")}); }

TEST(ComparePage, says_identical_in_words) {
  const auto page = compare_page(report(pair(), verdict(true)));
  EXPECT_THAT(page, HasSubstr("Identical to the bit"));
  EXPECT_THAT(page, HasSubstr("under bf16-exact, cpu and b end with the same losses"));
  EXPECT_THAT(page, HasSubstr("no GPU here: no driver"));
}

TEST(ComparePage, states_a_fact_of_two_members_once) {
  auto input = report(pair(), verdict(true));
  input["results"]["experiment"]["model"] = {{"name", "unet-s"}, {"depth", 3}};
  const auto page = compare_page(input);
  const std::string fact = "<dt>model name</dt>";
  EXPECT_NE(page.find(fact), page.npos);
  EXPECT_EQ(page.find(fact), page.rfind(fact));
  EXPECT_THAT(page, HasSubstr("<dt>model depth</dt>"));
}

TEST(ComparePage, says_where_machines_part_and_why) {
  auto parted = verdict(false);
  parted["first_difference"] = {{"machines", {"cpu", "b"}},
                                {"step", 3},
                                {"node", "down1.conv1"},
                                {"output", 0},
                                {"element", 17},
                                {"values", {0.5, 0.75}},
                                {"different_elements", 12},
                                {"of", 4096},
                                {"why", "contracts differ: f32 and bf16-exact"}};
  const auto page = compare_page(report(pair(), parted));
  EXPECT_THAT(page, HasSubstr("Not identical"));
  EXPECT_THAT(page, Not(HasSubstr("Identical to the bit")));
  EXPECT_THAT(page, HasSubstr("in node <code>down1.conv1</code>"));
  EXPECT_THAT(page, HasSubstr("/first_difference/values/1\">0.750000000</data>"));
  EXPECT_THAT(page, HasSubstr("contracts differ: f32 and bf16-exact"));
}

TEST(ComparePage, draws_equal_losses_once_and_unequal_ones_apart) {
  EXPECT_THAT(compare_page(report(pair(), verdict(true))),
              HasSubstr("all machines, the same bits"));
  auto machines = pair();
  machines[1]["losses"][1] = 0.26;
  EXPECT_THAT(compare_page(report(machines, verdict(false))),
              Not(HasSubstr("all machines, the same bits")));
}

TEST(ComparePage, shows_no_time_of_a_machine_that_checks_bits_only) {
  auto machines = pair();
  machines[1]["checks_bits_only"] = true;
  machines[1]["times"]["epoch"]["value"] = 777.0;
  const auto page = compare_page(report(machines, verdict(true)));
  const auto shown = page.substr(0, page.find("<script type=\"application/json\""));
  EXPECT_THAT(shown, HasSubstr("bits only"));
  EXPECT_THAT(shown, Not(HasSubstr("777")));
}

TEST(ComparePage, shows_a_median_with_its_spread) {
  auto machines = pair();
  machines[0]["times"]["epoch"]["samples"] = {1.5, 2.0, 3.0};
  const auto page = compare_page(report(machines, verdict(true)));
  EXPECT_THAT(page, HasSubstr("title=\"median of 3 samples\">2\u00a0s (1.50 s to 3.00 s)</data>"));
}

TEST(ComparePage, says_why_a_machine_is_missing) {
  auto machines = pair();
  machines.push_back({{"name", "cuda"},
                      {"backend", "cuda"},
                      {"available", false},
                      {"reason", "no driver is loaded"},
                      {"remedy", "use a machine with a GPU"}});
  const auto page = compare_page(report(machines, verdict(true)));
  EXPECT_THAT(page, HasSubstr("no driver is loaded"));
  EXPECT_THAT(page, HasSubstr("use a machine with a GPU"));
}

TEST(ComparePage, of_nothing_says_so) {
  for (const auto& empty : {Json::object(), report(Json::array(), nullptr), Json(nullptr)}) {
    const auto page = compare_page(empty);
    EXPECT_THAT(page, HasSubstr("Nothing to compare"));
    EXPECT_THAT(page, HasSubstr("The report holds no losses."));
    EXPECT_THAT(page, HasSubstr("The repository holds no run on a real GPU yet."));
  }
}

TEST(ComparePage, hostile_names_stay_text) {
  auto json = report(pair(), verdict(true));
  const std::string evil = "</script><script>alert(1)</script><!--";
  json["results"]["machines"][0]["name"] = evil;
  json["results"]["notes"].push_back(evil);
  json["results"]["experiment"]["data"] = evil + "\xff\xfe";
  const auto page = compare_page(json);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("<!--")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
}

TEST(Page, holds_the_report_as_it_is) {
  Page page("Title", "");
  const Json report = {{"text", "</script><!-- \" ü"}, {"number", 0.1}};
  page.embed(report);
  const auto html = page.str();
  const std::string open = "id=\"report\">";
  const auto begin = html.find(open) + open.size();
  EXPECT_EQ(Json::parse(html.substr(begin, html.find("</script>", begin) - begin)), report);
}

TEST(Page, leaves_out_of_a_picture_what_has_no_place_and_says_so) {
  Chart chart{.id = "c", .title = "Chart", .form = ChartForm::Scatter};
  chart.x = chart.y = {.label = "a", .unit = "s", .scale = Scale::Log};
  chart.series.resize(1);
  for (const double x : {0.0, 1.0, 2.0}) {
    ChartPoint point;
    point.x = x;
    point.y = 1;
    chart.series[0].points.push_back(point);
  }
  Page page("Title", "");
  page.chart(chart, Table{});
  EXPECT_THAT(page.str(), HasSubstr("1 of its values have no place on these axes."));
}

TEST(ReproducePage, stamps_each_claim) {
  const Json claim = {{"id", "sram-against-hbm"}, {"claim", "SRAM is ten times HBM"},
                      {"source", "figure 1"},     {"verdict", "out of date"},
                      {"why", "seven times"},     {"commands", {"triptych bench bandwidth"}},
                      {"tables", Json::array()},  {"charts", Json::array()}};
  Json json = report(Json::array(), nullptr);
  json["results"] = {{"claims", Json::array({claim})}};
  const auto page = reproduce_page(json);
  EXPECT_THAT(page, HasSubstr("<span class=\"stamp old\">out of date</span>"));
  EXPECT_THAT(page, HasSubstr("Sram against hbm"));
  EXPECT_THAT(page, HasSubstr("SRAM is ten times HBM"));
  EXPECT_THAT(page, HasSubstr("triptych bench bandwidth"));
  EXPECT_THAT(reproduce_page(Json::object()), HasSubstr("The report holds no claim."));
}

}  // namespace
}  // namespace triptych::page
