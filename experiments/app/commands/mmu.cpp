// `triptych mmu`: programs of the systolic array as text: to binary, back, and run.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/io/npy.h"
#include "core/io/output_ledger.h"
#include "experiments/app/array_errors.h"
#include "experiments/app/array_program.h"
#include "experiments/app/commands.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/measure/mmu_program.h"
#include "experiments/measure/mmu_test.h"
#include "experiments/page/text_table.h"
#include "systolic/driver/machines.h"

namespace triptych::app {
namespace {

struct MmuOptions {
  std::string program;
  std::string out;  ///< of asm and disasm
  std::string machine = "mmu4";
  mmu::Simulation simulate = mmu::Simulation::Twin;
  std::vector<std::string> inputs, outputs, plusargs;
  std::optional<std::int64_t> max_cycles;
  std::string waves, per_pe;
};

/// Writes the text to the file `out`, if there is one, else to standard output, unless JSON goes
/// there.
void write_text(const MmuOptions& options, const std::string& text, bool json) {
  if (!options.out.empty()) {
    require_writable(options.out);
    write_own_file(options.out, text);
  }
  if (json) return;
  print_text("{}", options.out.empty() ? text : fmt::format("written: {}\n", options.out));
}

/// `lines`: of the instructions. Empty: they have none.
Json program_json(const std::string& path, const mmu::Program& program,
                  const std::vector<std::size_t>& lines) {
  Json instructions = Json::array();
  for (std::size_t i = 0; i < program.size(); ++i) {
    Json entry = {{"text", mmu::disassemble(program[i])}, {"hex", mmu::to_hex(program[i])}};
    if (!lines.empty()) entry["line"] = lines[i];
    instructions.push_back(std::move(entry));
  }
  return {{"program", path}, {"instructions", std::move(instructions)}};
}

void assemble(const MmuOptions& options, Context& context) {
  const auto listing = read_program(options.program, mmu::read_listing);
  std::string text;
  for (const auto& instruction : listing.program)
    text += fmt::format("{} // {}\n", mmu::to_hex(instruction), mmu::disassemble(instruction));
  write_text(options, text, context.json);
  if (context.json)
    print_document("mmu asm",
                   Json::array({program_json(options.program, listing.program, listing.lines)}));
}

void disassemble(const MmuOptions& options, Context& context) {
  const auto program = read_program(options.program, mmu::read_hex);
  std::string text;
  for (const auto& instruction : program) text += mmu::disassemble(instruction) + "\n";
  write_text(options, text, context.json);
  if (context.json)
    print_document("mmu disasm", Json::array({program_json(options.program, program, {})}));
}

Duration time_of(const measure::ProgramRun& run, const mmu::MachineConfig& machine) {
  return {static_cast<double>(run.node.cycles()) / (machine.clock_mhz * 1e6), TimeKind::Simulated};
}

Json run_json(const measure::ProgramRequest& request, const measure::ProgramRun& run,
              const std::vector<std::filesystem::path>& files) {
  Json result = program_json(request.source, run.node.program, request.listing.lines);
  for (std::size_t i = 0; i < run.node.program.size(); ++i) {
    auto& entry = result["instructions"][i];
    const auto& instruction = run.node.program[i];
    entry["unit"] =
        measure::halts(instruction) ? "dispatch" : to_string(measure::unit_of(instruction));
    entry["start"] = run.node.report.times[i].start;
    entry["end"] = run.node.report.times[i].end;
  }
  Json outputs = Json::array();
  for (std::size_t i = 0; const auto& array : measure::arrays_of(request.listing, false)) {
    outputs.push_back({{"name", array.name},
                       {"type", to_string(array.type)},
                       {"shape", array.shape},
                       {"file", files[i].empty() ? Json() : Json(files[i].string())}});
    ++i;
  }
  Json timeline = to_json(run.node);
  for (const auto* moved : {"node", "begin", "instructions"}) timeline.erase(moved);
  if (!run.stalls_known) timeline["issue"] = timeline["stalls"] = nullptr;
  result.update({{"machine", request.machine.name},
                 {"simulate", name_of(request.simulation)},
                 {"time", page::time_json(time_of(run, request.machine))},
                 {"outputs", std::move(outputs)}});
  result.update(timeline);
  return result;
}

void print_run(const measure::ProgramRequest& request, const measure::ProgramRun& run) {
  print_text("{} on {} ({}): {} cycles, {} (simulated) at {}\n\n", request.source,
             request.machine.name, name_of(request.simulation), run.node.cycles(),
             page::format_seconds(time_of(run, request.machine).seconds),
             mmu::clock_text(request.machine));
  page::TextTable table({"line", "unit", "start", "end", "instruction"});
  for (std::size_t i = 0; i < run.node.program.size(); ++i) {
    const auto& instruction = run.node.program[i];
    const auto& times = run.node.report.times[i];
    table.add({fmt::format("{}", request.listing.lines[i]),
               measure::halts(instruction) ? "dispatch"
                                           : std::string(to_string(measure::unit_of(instruction))),
               fmt::format("{}", times.start), fmt::format("{}", times.end),
               mmu::disassemble(instruction)});
  }
  table.print();
  print_text("\n{}\n", measure::timeline_text(run));
  page::TextTable counters({"counter", "value"});
  for (const auto& [name, value] : named_counts(run.node.report.counters))
    counters.add({name, fmt::format("{}", value)});
  counters.print();
}

/// Reports conflicts of the outputs before the run.
void require_files(const MmuOptions& options, const std::vector<std::filesystem::path>& files) {
  for (const auto& file : files)
    if (!file.empty()) require_writable(file);
  if (!options.per_pe.empty()) require_writable(options.per_pe);
}

void run(const MmuOptions& options, Context& context) {
  measure::ProgramRequest request;
  request.source = options.program;
  request.listing = read_program(options.program, mmu::read_listing);
  request.machine = mmu::find_machine(options.machine);
  request.machine.plusargs = options.plusargs;
  request.simulation = options.simulate;
  if (options.max_cycles) request.max_cycles = static_cast<std::uint64_t>(*options.max_cycles);
  const auto inputs = measure::files_of(request, true, measure::parse_array_files(options.inputs));
  const auto outputs =
      measure::files_of(request, false, measure::parse_array_files(options.outputs));
  require_files(options, outputs);
  std::optional<WaveFiles> waves;
  if (!options.waves.empty()) {
    waves.emplace(options.waves);
    request.waves = waves->draft();
    request.waves_name = options.waves;
  }
  measure::PeRecorder pes({0, ~std::uint64_t{0}});
  if (!options.per_pe.empty()) request.pes = &pes;
  measure::ProgramRun result;
  run_with_waves(waves, [&] { result = measure::run_program(request, inputs); });
  if (!options.per_pe.empty())
    write_own_file(options.per_pe, pes.json(result.node, request.machine).dump() + "\n");
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].empty()) write_own_file(outputs[i], encode_npy(result.outputs[i]));
  const auto& unexpected = result.unexpected;
  if (!unexpected.empty()) context.exit_code = kCheckFailed;
  if (context.json) {
    auto document = run_json(request, result, outputs);
    document["unexpected"] = unexpected.empty() ? Json() : Json(unexpected);
    return print_document("mmu run", Json::array({std::move(document)}));
  }
  print_run(request, result);
  if (!unexpected.empty()) print_text("not as the text expects: {}\n", unexpected);
  for (const auto& file : outputs)
    if (!file.empty()) print_text("written: {}\n", file.string());
  for (const auto& file : {options.waves, options.per_pe})
    if (!file.empty()) print_text("written: {}\n", file);
}

using Action = void (*)(const MmuOptions&, Context&);

Command add_action(Command& mmu, Context& context, const std::string& name, const std::string& help,
                   std::shared_ptr<MmuOptions> options, Action action) {
  auto command = mmu.add_subcommand(name, help);
  command.add_option("program", options->program, "file of the program").required();
  command.add_flag("--json", context.json, "print JSON");
  command.callback(
      [options, &context, action] { with_array_errors([&] { action(*options, context); }); });
  return command;
}

}  // namespace

void describe_mmu(Command& command, Context& context) {
  auto options = std::make_shared<MmuOptions>();
  command.require_subcommand();
  for (const auto& [name, help, action] :
       {std::tuple{"asm", "Translate the text of a program into 256 bits per instruction",
                   &assemble},
        std::tuple{"disasm", "Translate instructions back into text", &disassemble}}) {
    add_action(command, context, name, help, options, action)
        .add_option("--out", options->out, "file instead of standard output")
        .output_file();
  }
  auto running =
      add_action(command, context, "run", "Run a program on arrays cycle by cycle", options, &run);
  running.add_option("--machine", options->machine, "machine of triptych machine list, or a file");
  running.add_option("--simulate", options->simulate,
                     "simulate by the C++ model, the RTL, or both with a comparison");
  running.add_option("--dram", options->inputs,
                     "NPY file for the input of the program, or NAME=FILE for one of several");
  running
      .add_option("--out", options->outputs,
                  "NPY file for the output of the program, or NAME=FILE for one of several")
      .output_file();
  running
      .add_option("--plusarg", options->plusargs, "value for $value$plusargs of your own modules")
      .only_with("--simulate", {"rtl", "both"});
  running
      .add_option("--max-cycles", options->max_cycles,
                  "watchdog of the RTL (default: a multiple of the cycles of the C++ model)")
      .check(whole_from(1, std::int64_t{1} << 40))
      .only_with("--simulate", {"rtl", "both"});
  running
      .add_option("--per-pe", options->per_pe,
                  "JSON file with activation, weight and sums of every PE by cycle")
      .output_file()
      .not_with("--simulate", {"rtl", "both"});
  running
      .add_option("--waves", options->waves,
                  "waveforms of the RTL (.fst or .vcd), with a save file for GTKWave (.gtkw)")
      .output_file()
      .only_with("--simulate", {"rtl", "both"});
  add_mmu_test(command, context);
}

}  // namespace triptych::app
