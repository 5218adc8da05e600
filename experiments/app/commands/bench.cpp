// `triptych bench`: medians of whole models, or of single matrix products, attention and
// convolutions.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "core/base/console.h"
#include "core/base/list_text.h"
#include "experiments/app/bench_report.h"
#include "experiments/app/commands.h"
#include "experiments/app/commands/bench_conv.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/parts.h"
#include "experiments/machines/array_machine.h"
#include "experiments/machines/node_time.h"
#include "experiments/measure/bench_problems.h"
#include "experiments/measure/calibrate.h"
#include "experiments/measure/processor_load.h"
#include "experiments/measure/statistics.h"

namespace triptych::app {
namespace {

/// The command's options as they are written, and as they are read.
struct BenchArguments {
  ModelOptions model;
  measure::BenchOptions bench;

  /// Throws InvalidArgument for a model or an energy table that there is not.
  measure::BenchOptions& read() {
    const auto batch = model.set_model(bench.mode, bench.model, bench.inference);
    if (batch) bench.batches = std::to_string(*batch);
    static_cast<void>(machines::find_energy_table(bench.energy));  // before any work
    return bench;
  }
};

/// One run of a simulated machine tells all: its times never vary.
measure::Statistics time_once(Executor& executor, Device& device) {
  const double start = device.elapsed().seconds;
  executor.run();
  return measure::statistics_of({device.elapsed().seconds - start});
}

/// The time of a step that ranks share, by one of them.
void time_ranks(BenchRow& row, Executor& executor, const DeviceSet& machine) {
  row.ranks = measure::time_array_ranks(executor, machine);
  row.batch *= row.ranks->ranks;
  row.flops *= row.ranks->ranks;
  row.time = measure::statistics_of({row.ranks->seconds()});
}

/// Adds the host time of a simulated machine in each run.
void add_host(BenchRow& row) {
  if (!row.host || row.host->nodes == 0) return;
  for (auto* seconds : {&row.time.median, &row.time.min, &row.time.max})
    *seconds += row.host->time.seconds;
  row.kind = TimeKind::Modelled;
}

/// The time of every node, modelled for nodes on the host of a simulated machine.
void add_layers(BenchRow& row, Executor& executor, const DeviceSet& machine) {
  row.layers = executor.run_profiled();
  const auto& plan = executor.plan();
  for (std::size_t i = 0; i < row.layers.size(); ++i) {
    const auto& node = plan.graph.node(row.layers[i].node);
    row.layer_work.emplace_back(node.name, measure::node_cost(plan.graph, node));
    if (row.host && row.layers[i].device == 1) {
      row.layers[i].time = machine.host_time(plan, plan.steps[i]);
    }
  }
}

/// The roofline at this work, by the peaks that the device tells of itself (modelled).
std::optional<double> roof_of(const DeviceSet& machine, const Cost& cost) {
  // The exact contract's chains run on the CUDA cores, too.
  const bool tensor_cores = machine.config().contract == Contract::Bf16;
  const auto& facts = machine.device().info().facts;
  const auto peak = facts.peak_flops(tensor_cores ? "bf16" : "f32");
  const auto bandwidth = facts.peak_memory_bytes_per_second;
  if (!peak || !bandwidth || cost.bytes == 0) return std::nullopt;
  return std::min(*peak, cost.flops / cost.bytes * *bandwidth);
}

/// Bytes that the kernel of a plan's only step moves at each level of the memory (modelled).
std::vector<LevelTraffic> traffic_of(const Plan& plan, const DeviceSet& machine) {
  const auto& steps = plan.steps;
  if (steps.size() != 1 || steps[0].entry == nullptr || steps[0].entry->traffic == nullptr) {
    return {};
  }
  const auto options = machine.plan_options();
  const NodeQuery query(plan.graph, plan.graph.node(steps[0].node), options.placement);
  return steps[0].entry->traffic(query, machine.device());
}

/// Members that every row takes from its plan.
BenchRow describe_plan(const measure::Problem& problem, const Plan& plan,
                       const DeviceSet& machine) {
  const auto& steps = plan.steps;
  const auto cost = measure::total_cost(plan.graph);
  return {.name = problem.name,
          .kernel = steps.size() == 1 && steps[0].entry != nullptr
                        ? std::string(steps[0].entry->name)
                        : problem.kernel,
          .batch = problem.batch,
          .threads = machine.threads(),
          .kind = machine.device().info().time_kind,
          .flops = cost.flops,
          .plan_bytes = static_cast<double>(plan.total_bytes(0)),
          .roof = roof_of(machine, cost),
          .traffic = traffic_of(plan, machine)};
}

/// Models that the table compares with the times.
struct Models {
  std::optional<machines::NodeTimes> other;     ///< --device
  std::optional<machines::NodeTimes> ceilings;  ///< of the device that runs, measured just now
};

machines::Assumptions assumptions_of(const DeviceSet& machine) {
  machines::Assumptions assumptions;
  assumptions.format = machines::format_of(machine.config().contract);
  return assumptions;
}

Models open_models(const DeviceSet& machine, const measure::BenchOptions& options) {
  Models models;
  const auto assumptions = assumptions_of(machine);
  if (!options.device.empty())
    models.other.emplace(machines::find_figures(options.device), assumptions);
  auto& device = machine.device();
  const bool measures = options.layers && device.measure_peak(machine.config().contract) > 0;
  if (!measures || machine.config().contract == Contract::Int8) return models;
  machines::MachineFigures figures;
  figures.name = device.info().name;
  figures.peaks = measure::peaks_of(device);
  figures.levels = measure::levels_of(device);
  models.ceilings.emplace(std::move(figures), assumptions);
  return models;
}

/// The row's plan on the machine of --device, if there is one.
std::optional<ModelledTime> modelled_time(const Plan& plan, const Models& models) {
  if (!models.other) return std::nullopt;
  ModelledTime modelled = {models.other->figures().name, models.other->time(plan)};
  for (const auto& step : plan.steps) {
    if (step.entry == nullptr) continue;
    modelled.bound_s +=
        models.other->bound(machines::cost_of(plan.graph, plan.graph.node(step.node)));
  }
  return modelled;
}

BenchRow time_problem(const measure::Problem& problem, const DeviceSet& machine,
                      const measure::BenchOptions& options, const Models& models) {
  Plan plan = problem.plan(machine);
  BenchRow row = describe_plan(problem, plan, machine);
  row.modelled = modelled_time(plan, models);
  Device& device = machine.device();
  row.host = machine.host_share(plan);
  StateStore states(device);
  Executor executor(std::move(plan), states);
  measure::fill_inputs(executor);
  if (machine.config().parallel.ranks > 1)
    time_ranks(row, executor, machine);
  else if (row.kind == TimeKind::Simulated && options.repeats == 0)
    row.time = time_once(executor, device);
  else
    row.time = measure::time_repeatedly([&] { executor.run(); },
                                        [&] { return device.elapsed().seconds; }, options.repeats);
  add_host(row);
  if (options.layers) {
    row.array = measure::array_use(executor.plan(), machine.config(),
                                   machines::find_energy_table(options.energy));
    row.dataflows = measure::compare_dataflows(machine.config(), problem.plan);
    add_layers(row, executor, machine);
    if (!models.ceilings) return row;
    for (const auto& work : row.layer_work)
      row.layer_bounds.push_back(models.ceilings->bound(work.second));
  }
  return row;
}

/// One run on a new device, so that its counters belong to this problem only.
BenchRow count_problem(const measure::Problem& problem, const training::ExecutionConfig& config) {
  const DeviceSet machine(config);
  Plan plan = problem.plan(machine);
  BenchRow row = describe_plan(problem, plan, machine);
  StateStore states(machine.device());
  Executor executor(std::move(plan), states);
  measure::fill_inputs(executor);
  executor.run();
  row.counters = machine.device().kernel_counters();
  return row;
}

/// Adds the rows of a problem unless it is skipped.
void add_row(std::vector<BenchRow>& rows, const measure::Problem& problem, const DeviceSet& machine,
             const measure::BenchOptions& options, const Models& models) {
  try {
    rows.push_back(options.counts() ? count_problem(problem, machine.config())
                                    : time_problem(problem, machine, options, models));
    rows.back().peak_memory_mib = measure::peak_memory_mib();
  } catch (const UnsupportedError&) {
    if (!problem.optional) throw;
  }
}

/// The peak of the multiply-adds of the contract's kernels, if the device measures it.
std::optional<double> peak_of(const DeviceSet& machine, const measure::BenchOptions& options) {
  if (options.counts() || machine.config().contract == Contract::Int8) return std::nullopt;
  const double peak = machine.device().measure_peak(machine.config().contract);
  return peak > 0 ? std::optional(peak) : std::nullopt;
}

/// Prints the conditions of the times: busy processors, a target clock.
void say_conditions(const std::vector<BenchRow>& rows, const measure::BenchOptions& options,
                    const measure::ProcessorWatch& watch) {
  const auto is_measured = [](const BenchRow& row) {
    return row.kind == TimeKind::Measured && row.time.samples > 0;
  };
  if (std::ranges::any_of(rows, is_measured)) say_note(watch.busy_note());
  say_note(machines::clock_note(options.machine));
}

/// Calls `problems` for every combination of threads and batches, and runs the results.
template <class Problems>
std::vector<BenchRow> sweep(const measure::BenchOptions& options, const Problems& problems) {
  std::vector<BenchRow> rows;
  const measure::ProcessorWatch watch;
  const auto threads =
      options.threads == "0" ? std::vector<std::int64_t>{0} : parse_numbers(options.threads);
  for (const auto count : threads) {
    auto config = options.machine;
    config.threads = static_cast<int>(count);
    if (options.counts()) config.emulation = "counted";
    const DeviceSet machine(config);
    const auto first = static_cast<std::ptrdiff_t>(rows.size());
    const auto before = peak_of(machine, options);
    const auto models = options.counts() ? Models{} : open_models(machine, options);
    for (const auto batch : parse_numbers(options.batches)) {
      for (const auto& problem : problems(machine.device(), batch)) {
        add_row(rows, problem, machine, options, models);
      }
    }
    if (!before) continue;
    // Other programs here may have been in the way of one of the two.
    const auto peak = std::max(before, peak_of(machine, options));
    std::for_each(rows.begin() + first, rows.end(), [&](BenchRow& row) { row.peak = peak; });
  }
  say_conditions(rows, options, watch);
  return rows;
}

void add_sweep_options(Command& command, BenchArguments& arguments, Context& context) {
  auto& options = arguments.bench;
  add_run_option(command, "--backend", options.machine.backend, "backend to measure");
  add_contract_option(command, options.machine.contract,
                      "numeric contract: f32, bf16, bf16-exact or int8");
  using enum training::OptionGroup;
  add_options(command, {Choice, Simulation, Tiling}, {.machine = &options.machine});
  command.add_option("--threads", options.threads, "thread counts, such as 1,2 (0: all threads)")
      .check(numbers_to(training::most_of("--threads"), true));
  command.add_option("--batch", options.batches, "batch sizes, such as 1,4 or 1..64 (doubling)")
      .check(numbers_to(training::most_of("--batch")));
  command.add_option("--repeats", options.repeats, "timed runs (0: about a second, at least 5)")
      .check(whole_from(0, 100000))
      .not_with("--backend", {"cuda-emulated"});
  command
      .add_flag("--layers", options.layers,
                "add the time of every node, on the CPU with the time of its roofline")
      .not_with("--backend", {"cuda-emulated"});
  add_energy_option(command, options.energy).only_with("--layers");
  command
      .add_option("--device", options.device,
                  "add the modelled time on another device: a published one (h200) or a file of "
                  "triptych calibrate")
      .not_with("--backend", {"cuda-emulated"});
  command
      .add_flag("--source", options.source,
                "cuda-emulated: counters by line of the kernels' source")
      .only_with("--backend", {"cuda-emulated"});
  command.add_flag("--json", context.json, "print JSON");
}

Command add_attention_options(Command& bench, BenchArguments& arguments, Context& context) {
  auto& options = arguments.bench;
  auto attention = bench.add_subcommand("attention", "Time self-attention");
  attention
      .add_option("--lengths", options.lengths,
                  "numbers of queries and keys, such as 512,1000 or 256..4096")
      .check(numbers_to(kMaxSide));
  attention.add_option("--heads", options.heads, "number of heads").check(whole_from(1, 65535));
  attention.add_option("--head-size", options.head_size, "columns of a head")
      .check(whole_from(1, 65535));
  attention.add_flag("--causal", options.causal, "query i sees keys 0 to i only");
  attention.add_flag("--gradient", options.gradient, "time attention and its gradient together");
  attention.add_option("--kernel", options.kernels,
                       "kernels to compare: flash and others of the backend, materialised (the "
                       "expanded operator) or all (default: the best)");
  add_sweep_options(attention, arguments, context);
  return attention;
}

Command add_conv_options(Command& bench, BenchArguments& arguments, Context& context) {
  auto& options = arguments.bench;
  auto conv = bench.add_subcommand("conv", "Time one convolution with 'same' padding");
  conv.add_option("--shape", options.shape, "input channels, output channels, height and width")
      .list_of(4)
      .check(whole_from(1, kMaxSide));
  conv.add_option("--window", options.window, "side of the kernel").check(whole_from(1, 31));
  conv.add_option("--pass", options.pass,
                  "the convolution, or its gradient for the data or the weights");
  add_scales_option(conv, options.scales);
  conv.add_option("--kernel", options.kernels,
                  "kernels to compare, such as gemm,winograd-4x4, or all (default: the best)");
  add_sweep_options(conv, arguments, context);
  return conv;
}

/// The images that one device computes.
std::int64_t batch_of_a_rank(const measure::BenchOptions& options, std::int64_t batch) {
  return options.machine.parallel.ranks == 1 ? batch
                                             : measure::batch_of_a_rank(options.machine, batch);
}

}  // namespace

void describe_bench(Command& command, Context& context) {
  auto arguments = std::make_shared<BenchArguments>();
  auto* options = &arguments->bench;
  arguments->model.add_to(command);
  arguments->model.add_bind_to(command);
  add_mode_options(command, options->mode, options->memory_limit);
  add_run_option(command, "--optimizer", options->optimizer,
                 "rule that updates the weights, with --mode train")
      .only_with("--mode", {"train"});
  add_run_option(command, "--momentum", options->momentum)
      .only_with("--mode", {"train"})
      .only_with("--optimizer", {"sgd"});
  add_sweep_options(command, *arguments, context);
  add_run_option(command, "--ranks", options->machine.parallel.ranks,
                 "ranks that share a training step, with an array of the machine each")
      .only_with("--mode", {"train"})
      .only_with("--machine")
      .not_with("--device");
  auto matmul = command.add_subcommand("matmul", "Time square matrix products");
  matmul
      .add_option("--sizes", options->sizes, "sides of the matrices, such as 512,1000 or 256..4096")
      .check(numbers_to(kMaxSide));
  matmul.add_option("--kernel", options->kernels,
                    "kernels to compare, such as naive,best, or all (default: the best)");
  add_scales_option(matmul, options->scales);
  matmul.add_flag("--constant-b", options->constant_b,
                  "treat B as a constant, like weights, and pack it before the time starts");
  add_sweep_options(matmul, *arguments, context);
  auto attention = add_attention_options(command, *arguments, context);
  auto conv = add_conv_options(command, *arguments, context);
  const auto conv_sweep = add_conv_sweep_options(conv);
  const auto all_reduce = add_all_reduce_bench(command, context);
  const auto strategies = add_strategies_bench(command, context);
  const auto bandwidth = add_bandwidth_bench(command, context);
  command.callback([arguments, &context, matmul, attention, conv, conv_sweep, all_reduce,
                    strategies, bandwidth] {
    if (all_reduce.parsed() || strategies.parsed() || bandwidth.parsed()) return;
    auto& bench = arguments->read();
    if (conv.parsed() && run_conv_sweep(conv, bench, *conv_sweep, context)) return;
    const auto rows = sweep(bench, [&](const Device& device, std::int64_t batch) {
      return matmul.parsed()      ? measure::matmul_problems(bench, device, batch)
             : attention.parsed() ? measure::attention_problems(bench, device, batch)
             : conv.parsed()      ? measure::conv_problems(bench, device, batch)
                                  : measure::model_problems(bench, batch_of_a_rank(bench, batch));
    });
    const BenchHeader header = {
        .backend = arguments->bench.machine.backend,
        .contract = std::string(to_string(arguments->bench.machine.contract)),
        .ladder = !bench.kernels.empty(),
        .source = bench.source,
        .energy = machines::find_energy_table(bench.energy)};
    if (context.json) {
      print_document("bench", to_json(rows, header));
    } else {
      print_rows(rows, header);
    }
  });
}

}  // namespace triptych::app
