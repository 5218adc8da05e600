// `triptych machine`: lists systolic machines, shows one, and builds the RTL of a new one.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <chrono>
#include <filesystem>

#include "core/base/console.h"
#include "core/io/output_ledger.h"
#include "core/io/strict_json.h"
#include "core/io/temporary_folder.h"
#include "experiments/app/array_errors.h"
#include "experiments/app/commands.h"
#include "experiments/app/confinement.h"
#include "experiments/app/output.h"
#include "experiments/confine/layers.h"
#include "experiments/labs/kept_runtime.h"
#include "experiments/machines/array_area.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"
#include "systolic/driver/machines.h"
#include "systolic/isa/machine.h"
#include "systolic/sim/machine_builder.h"
#include "systolic/sim/own_modules.h"
#include "systolic/sim/rtl_machine.h"

namespace triptych::app {
namespace {

using mmu::MachineConfig;

struct MachineCommand {
  std::vector<std::string> files;  ///< of list
  std::string machine;             ///< of show and build
  std::string array;
  std::string rtl;                   ///< folder of modules over ours
  std::vector<std::string> modules;  ///< of rtl
  bool force = false, quick = false;
  Confinement confine = Confinement::None;
};

/// A multiply-add in every cell and cycle, as two operations: the upper bound of every program.
double peak(const MachineConfig& machine) {
  return 2.0 * machine.rows * machine.columns * machine.clock_mhz * 1e6;
}

double buffer_bytes(const MachineConfig& machine) {
  return static_cast<double>(machine.buffer_rows) * machine.rows * machine.element_bytes();
}

double accumulator_bytes(const MachineConfig& machine) {
  return static_cast<double>(machine.accumulator_rows) * machine.columns * 4;
}

std::string bandwidth(const MachineConfig& machine) {
  const double bytes = machine.dram.bytes_per_cycle;
  if (bytes == 0) return "unlimited";
  return fmt::format("{}B/s", page::format_count(bytes * machine.clock_mhz * 1e6));
}

/// The units from synthesis.
page::Json area_json(const MachineConfig& machine) {
  page::Json units = page::Json::array();
  for (const auto& [unit, number, each] : machines::unit_areas(machine)) {
    units.push_back({{"unit", unit},
                     {"number", number},
                     {"gates", each.gates},
                     {"flip_flops", each.flip_flops},
                     {"ram_bits", each.ram_bits}});
  }
  return units;
}

std::string area_line(const MachineConfig& machine) {
  const auto area = machines::total_area(machine);
  return fmt::format("area     {} gates, {} flip-flops and {} of RAM (modelled)\n",
                     page::format_count(area.gates), page::format_count(area.flip_flops),
                     page::format_bytes(area.ram_bits / 8));
}

page::Json machine_json(const MachineConfig& machine) {
  return {{"name", machine.name},
          {"source", machine.source},
          {"machine", page::Json::parse(mmu::to_json(machine))},
          {"peak", page::figure_json(peak(machine), "op/s", TimeKind::Modelled)},
          {"area", area_json(machine)},
          {"rtl", to_string(rtl_state(machine))},
          {"modules", machine.rtl.empty() ? Json() : Json(own_module_names(machine))}};
}

void list(const MachineCommand& options, bool json) {
  std::vector<std::string> names = mmu::machine_names();
  names.insert(names.end(), options.files.begin(), options.files.end());
  page::Json results = page::Json::array();
  page::TextTable table({"machine", "array", "cells", "clock", "buffer", "accumulators", "DRAM",
                         "latency", "peak (modelled)", "RTL"});
  for (const auto& name : names) {
    const MachineConfig machine = mmu::find_machine(name);
    results.push_back(machine_json(machine));
    table.add(
        {name, fmt::format("{} x {}", machine.rows, machine.columns),
         std::string(mmu::to_string(machine.pe)), mmu::clock_text(machine),
         page::format_bytes(buffer_bytes(machine)), page::format_bytes(accumulator_bytes(machine)),
         fmt::format("{}, {}", machine.dram.preset, bandwidth(machine)),
         fmt::format("{} cycles", machine.dram.latency), page::format_count(peak(machine)) + "op/s",
         std::string(to_string(rtl_state(machine)))});
  }
  if (json) {
    print_document("machine", std::move(results));
  } else {
    table.print();
  }
}

/// Where the clock comes from, and whether the array could run at it.
std::string clock_line(const MachineConfig& machine) {
  return fmt::format(
      "clock    {}; {}\n",
      machine.clock_source.empty() ? "no source is given" : machine.clock_source,
      mmu::is_target_clock(machine)
          ? "a target: no timing analysis closes it (docs/results/timing.md)"
          : fmt::format("it closes in {} (docs/results/timing.md)", machine.clock_closed_in));
}

/// The keys of a machine's file in words.
std::string explanation(const MachineConfig& machine) {
  const auto& dram = machine.dram;
  const double ns_per_cycle = 1e3 / machine.clock_mhz;
  std::string text = fmt::format(
      "array    {} rows x {} columns of {} cells at {} MHz: at most {}op/s (modelled)\n",
      machine.rows, machine.columns, mmu::to_string(machine.pe), machine.clock_mhz,
      page::format_count(peak(machine)));
  text += clock_line(machine);
  text += fmt::format("cells    a sum takes {} cycle{} through one\n", machine.pe_latency,
                      machine.pe_latency == 1 ? "" : "s");
  text += fmt::format("dataflow {}{}\n", mmu::to_string(machine.dataflows),
                      machine.dataflows == mmu::Dataflows::Both ? ": the planner chooses" : "");
  text +=
      fmt::format("buffer   {} rows of {} elements of {} B: {}\n", machine.buffer_rows,
                  machine.rows, machine.element_bytes(), page::format_bytes(buffer_bytes(machine)));
  text += fmt::format("sums     {} rows of {} accumulators of 4 B: {}\n", machine.accumulator_rows,
                      machine.columns, page::format_bytes(accumulator_bytes(machine)));
  text += fmt::format("weights  {} tiles of {} x {} wait; they enter the array {}\n",
                      machine.weight_tiles, machine.rows, machine.columns,
                      mmu::to_string(machine.weight_scheme));
  if (machine.has_vector_unit())
    text += fmt::format("vectors  {} rows of {} numbers of 4 B, a lane for each column\n",
                        machine.vector_rows, machine.columns);
  text += fmt::format("queues   {} instructions for each of the four units\n", machine.queue_depth);
  text += fmt::format(
      "DRAM     {}, {}: {} B per cycle, {} after {} cycles ({:.0f} ns); bursts of {} B; {} banks "
      "with rows of {} B, another row costs {} cycles\n",
      page::format_bytes(static_cast<double>(machine.dram_bytes)), dram.preset,
      dram.bytes_per_cycle == 0 ? "unlimited" : fmt::format("{:.4g}", dram.bytes_per_cycle),
      bandwidth(machine), dram.latency, dram.latency * ns_per_cycle, dram.burst_bytes, dram.banks,
      dram.row_bytes, dram.row_miss);
  text += fmt::format("host     {} vector lanes (its times are modelled)\n", machine.vector_lanes);
  text += area_line(machine);
  if (!machine.rtl.empty())
    text += fmt::format("modules  {} of {}, in the place of ours\n", own_module_names(machine),
                        machine.rtl);
  const mmu::RtlState state = rtl_state(machine);
  text += fmt::format("RTL      {}", to_string(state));
  if (state == mmu::RtlState::NotBuilt)
    text += fmt::format("; to build it: triptych machine build {}", machine.source);
  return text + "\n";
}

/// The file is the only content of standard output, so that users can redirect and edit it.
void show(const MachineCommand& options, bool json) {
  const MachineConfig machine = mmu::find_machine(options.machine);
  if (json) return print_document("machine", page::Json::array({machine_json(machine)}));
  print_text("{}", mmu::to_json(machine));
  say_always("\n" + explanation(machine));
}

/// Prints the steps of a build with their times.
class Steps {
 public:
  explicit Steps(bool quiet) : quiet_(quiet) {}
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;
  ~Steps() {
    try {
      end("failed");
    } catch (const IoError&) {  // another exception is on its way
    }
  }
  void begin(std::string_view name) {
    end();
    if (!quiet_) print_text("  {:8} ", name);
    std::fflush(stdout);
    running_ = true;
    step_ = Clock::now();
  }
  void end() { end(page::format_seconds(since(step_))); }
  double seconds() const { return since(all_); }

 private:
  void end(const std::string& result) {
    if (running_ && !quiet_) print_text("{:>8}\n", result);
    running_ = false;
    std::fflush(stdout);
  }
  using Clock = std::chrono::steady_clock;
  static double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  bool quiet_;
  bool running_ = false;
  Clock::time_point all_ = Clock::now(), step_ = all_;
};

/// Options with which to simulate the array that was built.
std::string use(const MachineConfig& asked, mmu::ArrayKind built) {
  std::string plain =
      fmt::format("--backend systolic --machine {} --simulate rtl (or both)", asked.source);
  if (!asked.rtl.empty()) return plain;  // its modules say which array it has
  MachineConfig other = asked;
  other.array = built == mmu::ArrayKind::Grid ? mmu::ArrayKind::Fast : mmu::ArrayKind::Grid;
  const bool other_first = asked.array ? *asked.array != built
                                       : built == mmu::ArrayKind::Grid &&
                                             mmu::rtl_state(other) != mmu::RtlState::NotBuilt;
  if (!other_first) return plain;
  return fmt::format(
      "a copy of the file (triptych machine show {} > FILE) with the key \"array\": \"{}\"; {} "
      "itself "
      "takes the {} array",
      asked.source, mmu::to_string(built), asked.source, mmu::to_string(*other.array));
}

/// Builds the user's modules in a confined process, and keeps the library that came out where
/// build_machine() would have put it.
mmu::BuiltLibrary build_confined(const MachineCommand& options, const MachineConfig& machine) {
  require_confinement(options.confine);
  const auto effort = options.quick ? mmu::Effort::Quick : mmu::Effort::Full;
  const auto file = mmu::library_file(machine, *machine.array, effort);
  if (!options.force && mmu::is_sealed(file)) return {file, false};
  ConfinedCommand child({"machine", "build"});
  const labs::KeptRuntime runtime(child.bench());
  child.add({child.copy_of(options.machine), "--rtl", child.copy_of_folder(options.rtl), "--array",
             std::string(mmu::to_string(*machine.array)), "--force", "--json"});
  if (options.quick) child.add({"--quick"});
  const auto name = file.filename().string();
  const auto document = parse_strict<page::Json>(child.run(
      kDone, [&](const std::string& message) { return runtime.keep_log(message, name); }));
  const std::filesystem::path built = document.at("results").at(0).at("library").get<std::string>();
  // The middle part stands for the folder's place, which the copy does not have.
  const auto kind = [](const std::string& text) {
    return text.substr(0, text.find("-own-")) + text.substr(text.rfind('-'));
  };
  if (kind(built.filename().string()) != kind(name))
    throw Error(fmt::format("the confined build made \"{}\", and \"{}\" was asked for",
                            built.filename().string(), name));
  runtime.keep(built.filename().string(), name,
               [&](const std::filesystem::path& made) { mmu::seal_library(made, name); });
  return {file, true};
}

void build(const MachineCommand& options, bool json) {
  const MachineConfig asked = mmu::find_machine(
      options.rtl.empty() ? options.machine : options.machine + "+" + options.rtl);
  MachineConfig machine = asked;
  if (!options.array.empty()) machine.array = mmu::array_kind(options.array);
  const auto array =
      machine.array.value_or(array_of_own_modules(machine).value_or(mmu::ArrayKind::Fast));
  machine.array = array;
  const std::string title =
      fmt::format("{}: {} x {} {}, {} array", machine.name, machine.rows, machine.columns,
                  mmu::to_string(machine.pe), mmu::to_string(array));
  Steps steps(json);
  mmu::BuiltLibrary library;
  const bool built_in = rtl_state(machine) == mmu::RtlState::BuiltIn;
  if (!json) print_text("{}\n", title);
  if (!json && !machine.rtl.empty())
    print_text("modules of {}: {}\n", machine.rtl, own_module_names(machine));
  if (!built_in) {
    const auto step = [&](std::string_view name) { steps.begin(name); };
    const auto effort = options.quick ? mmu::Effort::Quick : mmu::Effort::Full;
    if (options.confine == Confinement::None) {
      const TemporaryFolder folder("machine");
      library = mmu::build_machine(
          machine, array, {.folder = folder.path(), .force = options.force, .effort = effort},
          step);
    } else {
      library = build_confined(options, machine);
    }
  }
  steps.end();
  const Duration time = {steps.seconds(), TimeKind::Measured};
  if (json) {
    page::Json result = machine_json(machine);
    result["library"] = built_in ? page::Json() : page::Json(library.file.string());
    result["made"] = library.made;
    result["time"] = page::time_json(time);
    if (options.confine != Confinement::None) result["confinement"] = confinement_json();
    return print_document("machine", page::Json::array({std::move(result)}));
  }
  if (built_in)
    print_text("its RTL is built in: nothing to do\n");
  else if (library.made)
    print_text("built in {} (measured): {}\n", page::format_seconds(time.seconds),
               library.file.string());
  else
    print_text("already built (--force builds it anew): {}\n", library.file.string());
  if (options.confine != Confinement::None) print_text("confined: {}\n", confine::active_layers());
  print_text("use it: {}\n", use(asked, array));
}

/// Copies of our modules to start from. A file that its user has changed stays.
void write_modules(const MachineCommand& options, bool json) {
  Json results = Json::array();
  for (const auto& name : options.modules) {
    const auto file = std::filesystem::path(options.rtl) / (name + ".sv");
    const auto text = mmu::module_text(name + ".sv");
    write_own_file(file, text);
    results.push_back({{"module", name}, {"file", file.string()}});
    if (!json) print_text("written: {}\n", file.string());
  }
  if (json) print_document("machine rtl", std::move(results));
}

}  // namespace

void describe_machine(Command& command, Context& context) {
  auto options = std::make_shared<MachineCommand>();
  command.require_subcommand();
  auto listing = command.add_subcommand("list", "List the shipped machines and those of files");
  listing.add_option("files", options->files, "JSON files of more machines");
  listing.callback(
      [options, &context] { with_array_errors([&] { list(*options, context.json); }); });
  auto showing =
      command.add_subcommand("show", "Show the complete JSON file of a machine with explanations");
  showing.add_option("machine", options->machine, "name of a shipped machine, or a JSON file")
      .required();
  showing.callback(
      [options, &context] { with_array_errors([&] { show(*options, context.json); }); });
  auto building =
      command.add_subcommand("build", "Compile the RTL of a machine for --simulate rtl");
  building.add_option("machine", options->machine, "name of a shipped machine, or a JSON file")
      .required();
  building
      .add_option(
          "--array", options->array,
          "form of the array: fast (one block) or grid (slow, a module per cell for waveforms)")
      .check(one_of({"fast", "grid"}));
  building.add_option("--rtl", options->rtl,
                      "folder of modules that replace the shipped ones file by file");
  building.add_flag("--quick", options->quick, "compile faster (-O1) and simulate slower");
  building.add_flag("--force", options->force, "build it even if it exists");
  add_confine_option(building, options->confine,
                     "build it without access to anything except the modules")
      .only_with("--rtl");
  building.callback(
      [options, &context] { with_array_errors([&] { build(*options, context.json); }); });
  auto writing = command.add_subcommand("rtl", "Copy modules of the RTL for your own changes");
  writing.add_option("--out", options->rtl, "folder for the copies").output_folder().required();
  writing.add_option("modules", options->modules, "names of modules, such as mmu_pe mmu_array_grid")
      .required();
  writing.callback(
      [options, &context] { with_array_errors([&] { write_modules(*options, context.json); }); });
  for (auto each : {listing, showing, building, writing}) {
    each.add_flag("--json", context.json, "print JSON");
  }
}

}  // namespace triptych::app
