// `triptych reproduce`: every claim of the source documents tried again, on one page.
// SPDX-License-Identifier: Apache-2.0
#include "core/base/console.h"
#include "experiments/app/parts.h"

#include <fmt/core.h>

#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/base/list_text.h"
#include "core/base/memory_budget.h"
#include "core/io/output_ledger.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/scripts/python_process.h"
#include "experiments/studies/reproduce_page.h"

namespace triptych::app {
namespace {

struct ReproduceOptions {
  std::string claims;
  std::string out = "reproduce.html";
  bool quick = false;
};

/// The files of experiments/studies/claims, each after those that it imports.
constexpr std::pair<std::string_view, std::string_view> kClaims[] = {
#include "claims.inc"
};

scripts::Script script_of(const ReproduceOptions& options) {
  std::vector<std::string> claims, common;
  if (!options.claims.empty()) claims = split_list(options.claims);
  if (const auto limit = memory_budget().limit(); limit < physical_memory())
    common = {"--max-memory", std::to_string(limit >> 20)};
  scripts::Script script = {
      .user = "reproduce",
      .name = "the script of the claims",
      .modules = {},
      .entry = "reproduce",
      .arguments = {{"program", std::filesystem::read_symlink("/proc/self/exe").string()},
                    {"claims", claims},
                    {"quick", options.quick},
                    {"options", common}},
      .inherits_environment = true};
  for (const auto& [file, text] : kClaims) {
    const auto name = std::string(file.substr(0, file.find('.')));
    script.modules.push_back({name, fmt::format("claims/{}", file), std::string(text)});
  }
  return script;
}

/// Throws the exception whose exit code a command had.
[[noreturn]] void fail(const std::string& why, int exit_code) {
  switch (exit_code) {
    case kUsage:
      throw InvalidArgument(why);
    case kNoDevice:
      throw DeviceError(why);
    case kUnsupported:
      throw UnsupportedError(why);
    case kNumeric:
      throw NumericError(why);
    default:
      throw Error(why);
  }
}

/// Runs the script of the claims, which runs other commands of this program.
Json examine(const ReproduceOptions& options) {
  scripts::PythonProcess script(script_of(options));
  for (;;) {
    auto message = script.receive();
    if (message.contains("results")) return std::move(message["results"]);
    if (message.contains("failed"))
      fail(message.at("failed").get<std::string>(), message.at("code").get<int>());
    say(message.at("say").get<std::string>());
  }
}

void print_findings(const Json& results) {
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
  PageFiles files;
  if (!options.out.empty()) files = page_files(options.out);
  const auto results = examine(options);
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

void describe_reproduce(Command& command, Context& context) {
  auto options = std::make_shared<ReproduceOptions>();
  command.add_option("--claims", options->claims,
                     "claims to test, such as bandwidth,ring (default: all)");
  command
      .add_option("--out", options->out,
                  "HTML page. Its numbers go to a file of the same name with .json")
      .output_file();
  command.add_flag("--quick", options->quick, "use smaller problems");
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] { run(*options, context); });
}

}  // namespace triptych::app
