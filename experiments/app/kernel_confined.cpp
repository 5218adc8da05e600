// `triptych kernel run --confine`: the same command in a confined process, on copies of its files.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/console.h"
#include "core/io/output_ledger.h"
#include "core/io/strict_json.h"
#include "experiments/app/confinement.h"
#include "experiments/app/kernel_command.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/confine/layers.h"

namespace triptych::app {
namespace {

/// "3=a.npy" with the copy's name.
std::string copy_named(ConfinedCommand& child, const std::string& text) {
  return with_file(text, child.copy_of(argument_and_file(text).second));
}

/// The words of a run on copies of its inputs.
void add_words(const KernelCommand& options, ConfinedCommand& child) {
  const auto& request = options.run;
  child.add({child.copy_of(options.file)});
  for (const auto& argument : request.arguments) child.add({child.copy_of(argument)});
  child.add({"--threads", std::to_string(request.threads), "--max-steps",
             std::to_string(request.most_steps), "--gpu", options.gpu});
  if (is_program(options)) {
    child.add({"--gpus", std::to_string(options.gpus)});
    for (const auto& each : options.sources) child.add({"--source", child.copy_of(each)});
  } else {
    child.add({"--grid", fmt::format("{}", fmt::join(request.grid, ",")), "--block",
               fmt::format("{}", fmt::join(request.block, ",")), "--shared",
               std::to_string(request.shared_bytes), "--seed", std::to_string(request.seed)});
  }
  if (!request.kernel.empty()) child.add({"--kernel", request.kernel});
  for (const auto& each : request.constants) child.add({"--constant", copy_named(child, each)});
  for (const auto& each : options.defines) child.add({"--define", each});
  for (const auto& each : options.includes) child.add({"--include", child.copy_of_folder(each)});
  for (const auto& each : options.pre_includes) {
    child.add({"--pre-include", child.copy_of(each)});
  }
  for (const auto& each : options.expected) child.add({"--expect", copy_named(child, each)});
  if (!options.expected.empty()) child.add({"--tolerance", fmt::format("{}", options.tolerance)});
  if (options.no_contraction) child.add({"--no-contraction"});
  if (options.brief) child.add({"--brief"});
  if (request.skip_ended) child.add({"--skip-ended"});
  if (options.strict) child.add({"--strict"});
  if (request.keeps_going) child.add({"--keep-going"});
  if (request.last_first) child.add({"--last-first"});
  if (request.sample != 1) child.add({"--sample", std::to_string(request.sample)});
}

/// The document of the child, with the names that the user gave.
void print_confined_document(const KernelCommand& options, const std::string& text) {
  const auto document = parse_strict<page::Json>(text);
  if (document.contains("error")) throw Error(document.at("error").at("message"));
  auto result = document.at("results").at(0);
  result["file"] = options.file;
  result["arguments"] = options.run.arguments;
  const bool compares = result.contains("comparisons");
  for (std::size_t i = 0;
       compares && i < result.at("comparisons").size() && i < options.expected.size(); ++i) {
    result["comparisons"][i]["expected"] = argument_and_file(options.expected[i]).second;
  }
  result["confinement"] = confinement_json();
  print_document("kernel run", page::Json::array({std::move(result)}));
}

}  // namespace

std::pair<std::string, std::string> argument_and_file(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == text.npos) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::string with_file(const std::string& text, const std::string& file) {
  const auto [argument, old] = argument_and_file(text);
  return argument.empty() ? file : argument + "=" + file;
}

void require_writable_outputs(const KernelCommand& options) {
  for (const auto& output : options.outputs) {
    require_writable(argument_and_file(output).second);
  }
}

void run_confined(const KernelCommand& options, Context& context) {
  require_writable_outputs(options);
  require_confinement(options.confine);
  ConfinedCommand child({"kernel", "run"});
  add_words(options, child);
  std::vector<std::pair<std::string, std::string>> outputs;  // the user's file, and the child's
  for (const auto& each : options.outputs) {
    const auto name = fmt::format("written-{}.npy", outputs.size());
    outputs.emplace_back(argument_and_file(each).second, name);
    child.add({"--out", with_file(each, name)});
  }
  if (context.json) child.add({"--json"});
  const auto text = child.run(kNumeric);
  context.exit_code = child.status();
  if (child.status() != kCheckFailed)
    for (const auto& [file, name] : outputs)
      write_own_file(file, child.bench().text(name, std::int64_t{1} << 30));
  if (context.json) return print_confined_document(options, text);
  print_text("{}", text);
  print_text("confined: {}\n", confine::active_layers());
}

}  // namespace triptych::app
