// `triptych mmu test`: runs programs that contain their inputs and expected outputs, on a machine
// or on variants of its RTL.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/mmu_test.h"

#include <fmt/core.h>

#include "experiments/app/array_errors.h"
#include "experiments/app/array_program.h"
#include "experiments/app/commands.h"
#include "experiments/app/output.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

constexpr std::int64_t kMaxTestText = std::int64_t{1} << 24;

struct TestOptions {
  std::vector<std::string> programs, variants;
  std::string machine = "mmu4";
  mmu::Simulation simulate = mmu::Simulation::Twin;
  std::optional<std::int64_t> max_cycles;
};

measure::ProgramTest test(const TestOptions& options, const mmu::MachineConfig& machine,
                          const std::string& program) {
  measure::ProgramRequest request;
  request.source = program;
  request.machine = machine;
  request.simulation = options.simulate;
  if (options.max_cycles) request.max_cycles = static_cast<std::uint64_t>(*options.max_cycles);
  try {
    request.listing = read_program(program, mmu::read_listing, kMaxTestText);
  } catch (const InvalidArgument& error) {
    return {.passed = false, .cycles = 0, .said = error.what()};
  }
  return measure::test_program(request);
}

void run_tests(const TestOptions& options, Context& context) {
  auto machine = mmu::find_machine(options.machine);
  mmu::open_machine(machine, options.simulate);  // else no test could run
  auto variants = options.variants;
  if (variants.empty()) variants.emplace_back();
  Json results = Json::array();
  page::TextTable table({"test", "variant", "cycles", "result"});
  for (const auto& variant : variants) {
    machine.plusargs.clear();
    if (!variant.empty()) machine.plusargs.push_back(variant);
    for (const auto& program : options.programs) {
      const auto tested = test(options, machine, program);
      if (!tested.passed) context.exit_code = kCheckFailed;
      results.push_back({{"program", program},
                         {"machine", machine.name},
                         {"simulate", name_of(options.simulate)},
                         {"variant", variant.empty() ? Json() : Json(variant)},
                         {"passed", tested.passed},
                         {"cycles", tested.cycles == 0 ? Json() : Json(tested.cycles)},
                         {"said", tested.said.empty() ? Json() : Json(tested.said)}});
      table.add({program, variant, tested.cycles == 0 ? "-" : fmt::format("{}", tested.cycles),
                 tested.passed ? "passed" : tested.said});
    }
  }
  if (context.json) return print_document("mmu test", std::move(results));
  table.print();
}

}  // namespace

Command add_mmu_test(Command& mmu, Context& context) {
  auto options = std::make_shared<TestOptions>();
  auto command =
      mmu.add_subcommand("test", "Run programs that contain their inputs and expected outputs");
  command.add_option("programs", options->programs, "files of programs").required();
  command.add_flag("--json", context.json, "print JSON");
  command.add_option("--machine", options->machine, "machine of triptych machine list, or a file");
  command.add_option("--simulate", options->simulate,
                     "simulate by the C++ model, the RTL, or both with a comparison");
  command
      .add_option("--variant", options->variants,
                  "value for $value$plusargs of your own modules. The tests run once with each")
      .only_with("--simulate", {"rtl", "both"});
  command
      .add_option("--max-cycles", options->max_cycles,
                  "watchdog of the RTL (default: a multiple of the cycles of the C++ model)")
      .check(whole_from(1, std::int64_t{1} << 40))
      .only_with("--simulate", {"rtl", "both"});
  command.callback(
      [options, &context] { with_array_errors([&] { run_tests(*options, context); }); });
  return command;
}

}  // namespace triptych::app
