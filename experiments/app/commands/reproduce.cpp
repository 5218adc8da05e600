// `triptych reproduce`: every claim of the source documents tried again, on one page.
// SPDX-License-Identifier: Apache-2.0
#include "core/base/console.h"
#include "experiments/app/parts.h"

#include <fmt/core.h>

#include <chrono>

#include "core/base/list_text.h"
#include "core/io/output_ledger.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/page/json.h"
#include "experiments/studies/claim.h"
#include "experiments/studies/laboratory.h"
#include "experiments/studies/reproduce_page.h"

namespace triptych::app {
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
page::Json summary_of(const page::Json& claims) {
  page::Json summary = page::Json::object();
  for (const auto verdict :
       {studies::ClaimVerdict::HoldsHere, studies::ClaimVerdict::HoldsUnderConditions,
        studies::ClaimVerdict::OutOfDate, studies::ClaimVerdict::Wrong})
    summary[std::string(to_string(verdict))] = 0;
  for (const auto& claim : claims) {
    auto& count = summary[claim.at("verdict").get<std::string>()];
    count = count.get<int>() + 1;
  }
  return summary;
}

page::Json examine(const std::vector<const studies::Claim*>& wanted, bool quick) {
  studies::Laboratory laboratory(quick);
  page::Json claims = page::Json::array();
  for (const auto* claim : wanted) {
    const auto start = std::chrono::steady_clock::now();
    say(fmt::format("{} …", claim->id));
    claims.push_back(to_json(*claim, claim->examine(laboratory)));
    claims.back()["seconds"] = page::time_json({seconds_since(start), TimeKind::Measured});
  }
  auto summary = summary_of(claims);
  return {{"claims", std::move(claims)}, {"summary", std::move(summary)}, {"quick", quick}};
}

void print_findings(const page::Json& results) {
  for (const auto& claim : results.at("claims")) {
    print_text("{}: {}\n  \"{}\" ({})\n  {}\n", claim.at("id").get<std::string>(),
               claim.at("verdict").get<std::string>(), claim.at("claim").get<std::string>(),
               claim.at("source").get<std::string>(), claim.at("why").get<std::string>());
    for (const auto& command : claim.at("commands"))
      print_text("  $ {}\n", command.get<std::string>());
    print_text("\n");
  }
}

void run(const ReproduceOptions& options, const Context& context) {
  const auto ids = split_list(options.claims);
  const auto claims = options.claims.empty() ? studies::find_claims({}) : studies::find_claims(ids);
  PageFiles files;
  if (!options.out.empty()) files = page_files(options.out);
  const auto results = examine(claims, options.quick);
  const auto document = app::document("reproduce", results);
  if (!options.out.empty()) {
    write_own_file(files.page, studies::reproduce_page(document));
    write_own_file(files.numbers, document.dump(2) + "\n");
  }
  if (context.json) {
    print_document("reproduce", results);
    return;
  }
  print_findings(results);
  if (!options.out.empty()) print_text("{}\n", options.out);
}

}  // namespace

void add_reproduce_command(Command& app, Context& context) {
  auto options = std::make_shared<ReproduceOptions>();
  auto command = app.add_subcommand(kReproduceCommand.name, kReproduceCommand.help);
  command.add_option("--claims", options->claims,
                     "claims to test, such as bandwidth,ring (default: all)");
  command
      .add_option("--out", options->out,
                  "HTML page. Its numbers go to a file of the same name with .json")
      .output_file()
      .capture_default_str();
  command.add_flag("--quick", options->quick, "use smaller problems");
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] { run(*options, context); });
}

}  // namespace triptych::app
