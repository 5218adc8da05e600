// `triptych reproduce`: every claim of the source documents tried again, on one page.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduction/command.h"

#include <fmt/core.h>

#include <chrono>

#include "core/io/own_files.h"
#include "experiments/cli/output_files.h"
#include "experiments/report/reproduce_page.h"
#include "experiments/reproduction/claim.h"
#include "experiments/reproduction/laboratory.h"

namespace triptych::reproduction {
namespace {

struct ReproduceOptions {
  std::string claims;
  std::string out = "reproduce.html";
  bool quick = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// How many claims got each verdict.
Json summary_of(const Json& claims) {
  Json summary = Json::object();
  for (const auto verdict :
       {Verdict::HoldsHere, Verdict::HoldsUnderConditions, Verdict::OutOfDate, Verdict::Wrong})
    summary[std::string(to_string(verdict))] = 0;
  for (const auto& claim : claims) {
    auto& count = summary[claim.at("verdict").get<std::string>()];
    count = count.get<int>() + 1;
  }
  return summary;
}

Json examine(const std::vector<const Claim*>& wanted, bool quick) {
  Laboratory laboratory(quick);
  Json claims = Json::array();
  for (const auto* claim : wanted) {
    const auto start = std::chrono::steady_clock::now();
    fmt::print(stderr, "{} …\n", claim->id);
    claims.push_back(to_json(*claim, claim->examine(laboratory)));
    claims.back()["seconds"] = cli::time_json({seconds_since(start), TimeKind::Measured});
  }
  auto summary = summary_of(claims);
  return {{"claims", std::move(claims)}, {"summary", std::move(summary)}, {"quick", quick}};
}

void print_findings(const Json& results) {
  for (const auto& claim : results.at("claims")) {
    fmt::print("{}: {}\n  \"{}\" ({})\n  {}\n", claim.at("id").get<std::string>(),
               claim.at("verdict").get<std::string>(), claim.at("claim").get<std::string>(),
               claim.at("source").get<std::string>(), claim.at("why").get<std::string>());
    for (const auto& command : claim.at("commands"))
      fmt::print("  $ {}\n", command.get<std::string>());
    fmt::print("\n");
  }
}

void run(const ReproduceOptions& options, const cli::Context& context) {
  const auto ids = cli::split_list(options.claims);
  const auto claims = options.claims.empty() ? find_claims({}) : find_claims(ids);
  cli::PageFiles files;
  if (!options.out.empty()) files = cli::page_files(options.out);
  const auto results = examine(claims, options.quick);
  const auto document = cli::document("reproduce", results);
  if (!options.out.empty()) {
    write_own_file(files.page, report::reproduce_page(document));
    write_own_file(files.numbers, document.dump(2) + "\n");
  }
  if (context.json) {
    cli::print_document("reproduce", results);
    return;
  }
  print_findings(results);
  if (!options.out.empty()) fmt::print("{}\n", options.out);
}

}  // namespace

void add_reproduce_command(cli::Command& app, cli::Context& context) {
  auto options = std::make_shared<ReproduceOptions>();
  auto command = app.add_subcommand(
      "reproduce", "Try every claim of the source documents again, with a verdict for each");
  command.add_option("--claims", options->claims, "only these: bandwidth,ring");
  command.add_option("--out", options->out, "the page; its numbers stand beside it as .json")
      .output_file()
      .capture_default_str();
  command.add_flag("--quick", options->quick, "smaller problems");
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] { run(*options, context); });
}

}  // namespace triptych::reproduction
