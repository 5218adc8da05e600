// `triptych check`: faults of kernels, as text and as JSON.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "core/base/console.h"
#include "core/base/list_text.h"
#include "experiments/app/kernel_counters.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/parts.h"
#include "experiments/check/kernel_check.h"

namespace triptych::app {
namespace {

page::Json checks_json(const std::vector<check::Checked>& results,
                       const check::CheckRequest& options) {
  page::Json list = page::Json::array();
  for (const auto& checked : results) {
    page::Json findings = page::Json::array();
    for (const auto& finding : checked.findings) {
      page::Json json = {{"kind", finding.kind},
                         {"case", finding.case_name},
                         {"cases", finding.cases},
                         {"message", finding.message}};
      if (finding.place) {
        json["launch"] = finding.place->kernel;
        json.update(place_json(*finding.place));
      }
      findings.push_back(std::move(json));
    }
    list.push_back({{"backend", options.backend},
                    {"contract", to_string(options.contract)},
                    {"op", checked.op},
                    {"kernel", checked.kernel},
                    {"cases", checked.cases},
                    {"refused", checked.refused},
                    {"findings", std::move(findings)}});
  }
  return list;
}

void print_finding(const check::KernelFinding& finding) {
  if (finding.place) {
    const auto& place = *finding.place;
    print_text("  {} at {}:{}, block {}, thread {} of {}\n", finding.kind, place.file, place.line,
               to_string(place.block), to_string(place.thread), place.kernel);
  } else {
    print_text("  {}\n", finding.kind);
  }
  print_text("    {}\n    in case {}{}\n", finding.message, finding.case_name,
             finding.cases > 1 ? fmt::format(" and {} more", finding.cases - 1) : "");
}

void print(const std::vector<check::Checked>& results) {
  for (const auto& checked : results) {
    print_text("{} {}: {}{}: {}\n", checked.op, checked.kernel, counted(checked.cases, "case"),
               checked.refused > 0 ? fmt::format(" ({} are not for it)", checked.refused) : "",
               checked.findings.empty() ? "nothing wrong"
                                        : fmt::format("{} wrong", checked.findings.size()));
    for (const auto& finding : checked.findings) print_finding(finding);
  }
}

}  // namespace

void describe_check(Command& command, Context& context) {
  auto options = std::make_shared<check::CheckRequest>();
  command.add_option("--kernel", options->kernels,
                     "kernels to check, such as naive,tiled (default: all)");
  command.add_option("--op", options->op, "check only kernels of this operator, such as MatMul");
  command.add_option("--backend", options->backend, "backend whose kernels are checked");
  add_contract_option(command, options->contract,
                      "numeric contract: f32, bf16, bf16-exact or int8");
  add_run_option(command, "--threads", options->threads);
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] {
    const auto results = check::check_kernels(*options);
    const bool wrong = std::ranges::any_of(
        results, [](const check::Checked& checked) { return !checked.findings.empty(); });
    if (wrong) context.exit_code = kCheckFailed;
    if (context.json) {
      print_document("check", checks_json(results, *options));
    } else {
      print(results);
    }
  });
}

}  // namespace triptych::app
