// `triptych trace`: one run of a model in full detail: a timeline of its nodes, and of a systolic
// array the programs with their cycles and the waveforms of its RTL.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/mapped.h"
#include "core/io/output_ledger.h"
#include "experiments/app/commands.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/train_options.h"
#include "experiments/machines/array_machine.h"
#include "experiments/measure/array_timeline.h"
#include "experiments/measure/array_trace.h"
#include "experiments/measure/array_use.h"
#include "experiments/measure/bench_problems.h"
#include "experiments/measure/dataflows.h"
#include "experiments/measure/energy_json.h"
#include "experiments/measure/model_plan.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"
#include "experiments/training/trainer.h"

namespace triptych::app {
namespace {

struct TraceOptions {
  ModelOptions model;
  training::ExecutionConfig machine;
  measure::Mode mode = measure::Mode::Infer;
  std::int64_t batch = 1;
  std::size_t memory_limit = 0;
  std::string node;
  std::string cycles;
  std::string out, program, waves, per_pe;
  std::string energy{machines::kDefaultEnergyTable};
  measure::ProductShape product = {.m = 8, .k = 8, .n = 8};
  measure::BenchOptions conv;         ///< its shape, window and pass
  std::vector<double> scales;         ///< of one operator
  std::vector<std::string> operands;  ///< of one operator: two files, or none

  bool int8() const { return machine.contract == Contract::Int8; }
  DType operand_type() const { return int8() ? DType::I8 : DType::F32; }
};

/// Subject of a trace: a plan, and its name.
struct Traced {
  std::string name;
  std::function<Plan(const DeviceSet&)> plan;
  std::vector<measure::GivenInput> given = {};
};

/// "100..250".
measure::CycleWindow parse_window(const std::string& text) {
  measure::CycleWindow window;
  const auto* last = text.data() + text.size();
  const auto begin = std::from_chars(text.data(), last, window.begin);
  const bool dots = begin.ec == std::errc{} && std::string_view(begin.ptr, last).starts_with("..");
  const auto end = dots ? std::from_chars(begin.ptr + 2, last, window.end) : begin;
  if (!dots || end.ec != std::errc{} || end.ptr != last || window.begin >= window.end) {
    throw InvalidArgument(fmt::format(
        "--cycles \"{}\": give first cycle and the one after the last, as 100..250", text));
  }
  return window;
}

/// The node whose waves or PEs are wanted by `option`, and the window of its program.
std::pair<const measure::ArrayNode*, measure::CycleWindow> find_window(
    const std::vector<measure::ArrayNode>& nodes, const measure::ArrayNode* chosen,
    const std::string& cycles, std::string_view option) {
  if (nodes.empty()) throw InvalidArgument(fmt::format("{}: no node runs on the array", option));
  if (chosen == nullptr && nodes.size() == 1) chosen = nodes.data();
  if (cycles.empty() && chosen != nullptr) return {chosen, {0, chosen->cycles() + 1}};
  if (cycles.empty()) {
    throw InvalidArgument(
        fmt::format("{} needs a window: add --node NAME, or --cycles A..B, or both", option));
  }
  auto window = parse_window(cycles);
  const std::uint64_t all =
      chosen != nullptr ? chosen->cycles() : nodes.back().begin + nodes.back().cycles();
  if (window.end > all) {
    throw InvalidArgument(fmt::format("--cycles {}: there are only {} cycles in {}", cycles, all,
                                      chosen != nullptr ? chosen->name : "the run"));
  }
  if (chosen != nullptr) return {chosen, window};
  const auto after = std::ranges::find_if(
      nodes, [&](const measure::ArrayNode& node) { return node.begin > window.begin; });
  const measure::ArrayNode& node = *(after - 1);
  window.begin -= node.begin;
  window.end -= node.begin;
  if (window.end > node.cycles()) {
    throw InvalidArgument(
        fmt::format("--cycles {}: more than one node runs there; {} runs in cycles {}..{}", cycles,
                    node.name, node.begin, node.begin + node.cycles()));
  }
  return {&node, window};
}

/// Fails before any work when a file could not be written.
void require_files(const TraceOptions& options) {
  for (const auto& path : {options.out, options.program, options.per_pe}) {
    if (!path.empty()) require_writable(path);
  }
}

page::Json steps_json(const Plan& plan, const std::vector<StepProfile>& profile) {
  page::Json steps = page::Json::array();
  for (const auto& step : profile) {
    steps.push_back({{"node", plan.graph.node(step.node).name},
                     {"device", plan.devices[step.device]->info().name},
                     {"kernel", step.kernel},
                     {"start", page::time_json(step.start)},
                     {"time", page::time_json(step.time)}});
  }
  return steps;
}

/// A systolic array's part of a run.
struct ArrayRun {
  const mmu::Watched* array;  ///< null: the run had none
  const std::vector<measure::ArrayNode>& nodes;
  const measure::ArrayNode* chosen;  ///< null: all
  const machines::EnergyTable& energy;
  std::vector<measure::DataflowCounts> dataflows;

  bool shows(const measure::ArrayNode& node) const { return chosen == nullptr || chosen == &node; }
  std::vector<machines::EnergyPart> energy_of(const measure::ArrayNode& node) const {
    return machines::array_energy(node.report.counters, array->machine(), energy);
  }
};

page::Json array_json(const ArrayRun& run) {
  page::Json list = page::Json::array();
  for (const auto& node : run.nodes) {
    if (!run.shows(node)) continue;
    list.push_back(to_json(node));
    list.back()["energy"] = measure::energy_json(run.energy_of(node), run.energy, "total");
    list.back()["dataflows"] = measure::dataflows_json(run.dataflows, node.name);
  }
  const auto& machine = run.array->machine();
  return {{"machine", machine.name},
          {"rows", machine.rows},
          {"columns", machine.columns},
          {"clock_mhz", machine.clock_mhz},
          {"nodes", std::move(list)}};
}

void print_nodes(const ArrayRun& run) {
  page::TextTable table(
      {"node", "begin", "cycles", "instructions", "issue %", "energy (modelled)"});
  for (const auto& node : run.nodes) {
    if (!run.shows(node)) continue;
    const auto& counters = node.report.counters;
    table.add({node.name, fmt::format("{}", node.begin), fmt::format("{}", node.cycles()),
               fmt::format("{}", node.program.size()),
               fmt::format("{:.1f}", 100 * static_cast<double>(counters.issue_cycles) /
                                         static_cast<double>(counters.cycles)),
               page::format_joule(machines::total_joule(run.energy_of(node)))});
  }
  table.print();
  measure::print_dataflows(run.dataflows);
}

void print_steps(const Plan& plan, const std::vector<StepProfile>& profile) {
  page::TextTable table({"node", "device", "kernel", "start", "time"});
  for (const auto& step : profile) {
    if (step.kernel.empty()) continue;
    table.add({plan.graph.node(step.node).name, plan.devices[step.device]->info().name,
               std::string(step.kernel), page::format_seconds(step.start.seconds),
               page::format_seconds(step.time.seconds)});
  }
  table.print();
}

bool rests_on_target_clock(const TraceOptions& options) {
  return !machines::clock_note(options.machine).empty();
}

void report(const TraceOptions& options, const std::string& name, const Plan& plan,
            const std::vector<StepProfile>& profile, const ArrayRun& run, bool json) {
  if (json) {
    page::Json result = {{"model", name},
                         {"mode", name_of(options.mode)},
                         {"batch", options.batch},
                         {"backend", options.machine.backend},
                         {"contract", to_string(options.machine.contract)},
                         {"target_clock", rests_on_target_clock(options)},
                         {"steps", steps_json(plan, profile)},
                         {"array", nullptr}};
    if (run.array != nullptr) result["array"] = array_json(run);
    print_document("trace", page::Json::array({std::move(result)}));
    return;
  }
  if (run.array != nullptr) {
    print_nodes(run);
  } else {
    print_steps(plan, profile);
  }
  for (const auto& path : {options.out, options.program, options.waves, options.per_pe}) {
    if (!path.empty()) print_text("written: {}\n", path);
  }
}

page::Json lane_json(const std::vector<TraceLane>& lanes, TimeKind kind) {
  page::Json list = page::Json::array();
  for (const auto& lane : lanes) {
    for (const auto& event : lane.events) {
      list.push_back({{"label", event.name},
                      {"start", page::time_json({event.start, kind})},
                      {"time", page::time_json({event.time, kind})}});
    }
  }
  return list;
}

void report_ranks(const TraceOptions& options, const std::vector<training::RankTrace>& traces,
                  bool json) {
  if (json) {
    page::Json results = page::Json::array();
    for (std::size_t rank = 0; rank < traces.size(); ++rank) {
      const auto& trace = traces[rank];
      results.push_back({{"model", options.model.name()},
                         {"mode", name_of(options.mode)},
                         {"batch", options.batch},
                         {"backend", options.machine.backend},
                         {"contract", to_string(options.machine.contract)},
                         {"target_clock", rests_on_target_clock(options)},
                         {"rank", rank},
                         {"time", page::time_json(trace.time)},
                         {"exposed", page::time_json(trace.exposed)},
                         {"steps", steps_json(*trace.run.plan, trace.run.profile)},
                         {"collectives", lane_json(trace.run.lanes, trace.time.kind)},
                         {"array", nullptr}});
    }
    return print_document("trace", results);
  }
  page::TextTable table({"rank", "step", "collectives", "exposed communication", "%", "kind"});
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    const auto& [run, time, exposed, computations] = traces[rank];
    table.add({fmt::format("{}", rank), page::format_seconds(time.seconds),
               fmt::format("{}", run.lanes.front().events.size()),
               page::format_seconds(exposed.seconds),
               fmt::format("{:.1f}", 100 * exposed.seconds / time.seconds),
               std::string(to_string(time.kind))});
  }
  table.print();
  if (!options.out.empty()) print_text("written: {}\n", options.out);
}

/// A training step of several ranks: the computation and communication of each on a common time
/// axis.
void trace_ranks(const TraceOptions& options, const Context& context) {
  if (options.mode != measure::Mode::Train ||
      options.machine.parallel.transport == training::Transport::Mpi) {
    throw InvalidArgument(
        "ranks are traced in a training step of this process; add --mode train, and leave "
        "--transport at threads or simulated");
  }
  auto config = options.machine;
  say_note(machines::clock_note(config));
  config.threads = threads_per_rank(config);
  const DeviceSet machine(config);
  training::Trainer trainer(machine, {.model = options.model.config(),
                                      .options = {.batch = options.batch},
                                      .memory_limit_mib = options.memory_limit});
  if (trainer.asynchronous()) {
    throw InvalidArgument(
        fmt::format("a step of \"{}\" is none of all ranks together; trace "
                    "another strategy",
                    to_string(options.machine.parallel.strategy)));
  }
  require_files(options);
  const auto whole = build_training_graph(options.model.config(), {.batch = options.batch}).graph;
  const auto noise = [&](const char* input) { return measure::noise_of(whole, whole.find(input)); };
  const Tensor x = noise("x"), target = noise("target");
  trainer.step(x, target, 1e-3F);  // warms up
  const auto traces = trainer.trace_step(x, target, 1e-3F);
  if (!options.out.empty()) {
    auto runs = mapped<TracedRun>(traces, [](const auto& trace) { return trace.run; });
    write_own_file(options.out, to_chrome_trace(runs));
  }
  report_ranks(options, traces, context.json);
}

/// Runs a plan once with observers and writes the requested files.
void trace_plan(const TraceOptions& options, const Traced& traced, const Context& context) {
  const auto energy = machines::find_energy_table(options.energy);
  const DeviceSet machine(options.machine);
  say_note(machines::clock_note(machine.config()));
  auto* array = dynamic_cast<mmu::Watched*>(&machine.device());
  auto plan = traced.plan(machine);
  auto nodes = array == nullptr ? std::vector<measure::ArrayNode>{}
                                : measure::array_nodes(plan, array->machine());
  const measure::ArrayNode* chosen =
      options.node.empty() ? nullptr : &measure::find_node(nodes, plan, options.node);
  measure::ArrayWatcher watcher(nodes);
  std::optional<WaveFiles> waves;
  if (!options.waves.empty()) {
    const auto [node, window] = find_window(nodes, chosen, options.cycles, "--waves");
    waves.emplace(options.waves);
    watcher.want_waves(*node, waves->draft(), options.waves, window);
  }
  std::optional<measure::PeRecorder> pes;
  const measure::ArrayNode* shown = nullptr;
  if (!options.per_pe.empty()) {
    const auto [node, window] = find_window(nodes, chosen, options.cycles, "--per-pe");
    shown = node;
    watcher.want_pes(*node, pes.emplace(window));
  }
  require_files(options);

  StateStore states(machine.device());
  Executor executor(std::move(plan), states);
  measure::fill_inputs(executor);
  for (const auto& [name, value] : traced.given) executor.set_input(name, *value);
  if (array != nullptr) array->watch(&watcher);
  std::vector<StepProfile> profile;
  run_with_waves(waves, [&] { profile = executor.run_profiled(); });
  if (array != nullptr) array->watch(nullptr);

  if (!options.program.empty())
    write_own_file(options.program, measure::programs_text(nodes, chosen));
  if (pes) write_own_file(options.per_pe, pes->json(*shown, array->machine()).dump() + "\n");
  if (!options.out.empty()) {
    write_own_file(options.out, array == nullptr
                                    ? to_chrome_trace(executor.plan(), profile)
                                    : measure::array_timeline(executor.plan(), profile, nodes,
                                                              chosen, array->machine()));
  }
  report(options, traced.name, executor.plan(), profile,
         {array, nodes, chosen, energy, measure::compare_dataflows(options.machine, traced.plan)},
         context.json);
}

void trace_model(TraceOptions options, const Context& context) {
  if (options.machine.parallel.ranks > 1) return trace_ranks(options, context);
  measure::PlanRequest request = {.mode = options.mode, .memory_limit_mib = options.memory_limit};
  const auto batch = options.model.set_model(options.mode, request.model, request.inference);
  request.training.batch = options.batch = batch.value_or(options.batch);
  const auto plan = [&](const DeviceSet& machine) {
    return measure::plan_model(request, machine).plan;
  };
  trace_plan(options, {options.model.name(), plan}, context);
}

void trace_product(const TraceOptions& options, const Context& context) {
  const auto& [m, k, n] = options.product;
  const auto operands =
      measure::load_operands(options.operands, {options.operand_type(), {options.batch, m, k}},
                             {options.operand_type(), {options.batch, k, n}});
  const auto problem = measure::product_problem({.shape = options.product,
                                                 .batch = options.batch,
                                                 .int8 = options.int8(),
                                                 .scales = options.scales,
                                                 .operands = operands});
  trace_plan(options, {problem.name, problem.plan, problem.given}, context);
}

void trace_conv(const TraceOptions& options, const Context& context) {
  auto conv = options.conv;
  conv.machine = options.machine;
  conv.scales = options.scales;
  const auto [first, second] = measure::conv_operand_shapes(conv, options.batch);
  conv.operands = measure::load_operands(options.operands, {options.operand_type(), first},
                                         {options.operand_type(), second});
  const auto problem = measure::conv_problem(conv, "", options.batch);
  trace_plan(options, {problem.name, problem.plan, problem.given}, context);
}

/// Options of the machine, and the tiles of its array.
void add_array_options(Command& command, training::ExecutionConfig& machine) {
  add_machine_options(command, machine);
  add_options(command, {training::OptionGroup::Tiling}, {.machine = &machine});
}

/// Options of the outputs. `only_array` has no other machine and no ranks.
void add_output_options(Command& command, TraceOptions& options, Context& context,
                        bool only_array) {
  add_run_option(command, "--batch", options.batch, "images or products per step");
  command.add_option("--out", options.out, "timeline for Perfetto (JSON)").output_file();
  const auto of_array = [only_array](Option option) {
    option.only_with("--backend", {"systolic"});
    if (!only_array) option.not_with("--ranks");
    return option;
  };
  of_array(command
               .add_option("--program", options.program,
                           "programs of the array with the cycles of each instruction")
               .output_file());
  of_array(
      command
          .add_option("--waves", options.waves,
                      "waveforms of the RTL (.fst or .vcd), with a save file for GTKWave (.gtkw)")
          .output_file())
      .only_with("--simulate", {"rtl", "both"});
  of_array(command
               .add_option("--per-pe", options.per_pe,
                           "JSON file with activation, weight and sums of every PE by cycle")
               .output_file())
      .not_with("--simulate", {"rtl", "both"});
  of_array(command.add_option("--node", options.node, "record only this node of the array"));
  of_array(command.add_option("--cycles", options.cycles,
                              "window of --waves and --per-pe, such as 100..250"))
      .only_with_any({"--waves", "--per-pe"});
  add_energy_option(command, options.energy);
  command.add_flag("--json", context.json, "print JSON");
}

/// The options of an operator's values.
void add_value_options(Command& command, TraceOptions& options) {
  add_scales_option(command, options.scales);
  command
      .add_option("--operands", options.operands,
                  "arrays of both operands, int8 or float32 as .npy (default: noise)")
      .list_of(2);
}

/// The options of one operator. Uses a small array by default.
std::shared_ptr<TraceOptions> operator_options() {
  auto options = std::make_shared<TraceOptions>();
  options->machine.backend = "systolic";
  options->machine.contract = Contract::Bf16Exact;
  options->machine.machine = "mmu4";
  options->conv.shape = {4, 4, 8, 8};
  return options;
}

Command add_product_trace(Command& trace, Context& context) {
  auto options = operator_options();
  auto command = trace.add_subcommand("matmul", "Record one matrix product, m x k times k x n");
  for (const auto& [name, side] :
       {std::pair{"--m", &options->product.m}, std::pair{"--k", &options->product.k},
        std::pair{"--n", &options->product.n}})
    command.add_option(name, *side, "side of the product").check(whole_from(1, kMaxSide));
  add_value_options(command, *options);
  add_array_options(command, options->machine);
  add_output_options(command, *options, context, true);
  command.callback([options, &context] { trace_product(*options, context); });
  return command;
}

Command add_conv_trace(Command& trace, Context& context) {
  auto options = operator_options();
  auto command = trace.add_subcommand("conv", "Record one convolution with 'same' padding");
  command
      .add_option("--shape", options->conv.shape,
                  "input channels, output channels, height and width")
      .list_of(4)
      .check(whole_from(1, kMaxSide));
  command.add_option("--window", options->conv.window, "side of the kernel")
      .check(whole_from(1, 31));
  command.add_option("--pass", options->conv.pass,
                     "the convolution, or its gradient for the data or the weights");
  add_value_options(command, *options);
  add_array_options(command, options->machine);
  add_output_options(command, *options, context, true);
  command.callback([options, &context] { trace_conv(*options, context); });
  return command;
}

}  // namespace

void describe_trace(Command& command, Context& context) {
  auto options = std::make_shared<TraceOptions>();
  options->model.add_to(command);
  options->model.add_bind_to(command);
  add_array_options(command, options->machine);
  add_options(command, {training::OptionGroup::Ranks}, {.machine = &options->machine});
  add_mode_options(command, options->mode, options->memory_limit);
  add_output_options(command, *options, context, false);
  const auto product = add_product_trace(command, context);
  const auto conv = add_conv_trace(command, context);
  command.callback([options, &context, product, conv] {
    if (!product.parsed() && !conv.parsed()) trace_model(*options, context);
  });
}

}  // namespace triptych::app
