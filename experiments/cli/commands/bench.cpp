// `triptych bench`: medians of whole models, or of single matrix products and convolutions.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/ops/conv.h"
#include "core/ops/matmul.h"
#include "experiments/cli/commands.h"
#include "experiments/cli/model_plan.h"
#include "experiments/cli/output.h"
#include "experiments/cli/simulated.h"
#include "experiments/cli/statistics.h"

namespace triptych::cli {
namespace {

struct BenchOptions {
  ModelOptions model;
  MachineOptions machine;
  std::string mode = "infer";
  std::string batches = "1";
  std::string threads = "0";
  std::string sizes = "256..1024";
  std::vector<std::int64_t> shape = {64, 64, 128, 128};  ///< conv: in, out, height, width
  std::int64_t kernel = 3;
  int repeats = 0;
  std::size_t memory_limit = 0;
  bool layers = false;
};

/// One row of the result.
struct Row {
  std::string name;
  std::int64_t batch = 1;
  std::int64_t threads = 0;
  Statistics time;
  TimeKind kind = TimeKind::Measured;
  double flops = 0;
  double plan_bytes = 0;
  std::vector<StepProfile> layers;
  std::vector<std::pair<std::string, Cost>> layer_work;
  std::optional<training::HostShare> host;
  std::vector<ArrayUse> array;
};

/// One run of a simulated machine tells all: its times never vary.
Statistics time_once(Executor& executor, Device& device) {
  const double start = device.elapsed().seconds;
  executor.run();
  return statistics_of({device.elapsed().seconds - start});
}

/// The time of every node; of those on a simulated machine's host, the modelled one.
void add_layers(Row& row, Executor& executor, const Machine& machine) {
  row.layers = executor.run_profiled();
  const auto& plan = executor.plan();
  for (std::size_t i = 0; i < row.layers.size(); ++i) {
    const auto& node = plan.graph.node(row.layers[i].node);
    row.layer_work.emplace_back(node.name, node_cost(plan.graph, node));
    if (row.host && row.layers[i].device == 1) {
      row.layers[i].time = machine.host_time(plan, plan.steps[i]);
    }
  }
}

Row time_plan(Plan plan, const Machine& machine, const BenchOptions& options) {
  Row row;
  Device& device = machine.device();
  row.flops = total_cost(plan.graph).flops;
  row.plan_bytes = static_cast<double>(plan.total_bytes(0));
  row.kind = device.info().time_kind;
  row.host = machine.host_share(plan);
  StateStore states(device);
  Executor executor(std::move(plan), states);
  fill_inputs(executor);
  row.time = row.kind == TimeKind::Simulated && options.repeats == 0
                 ? time_once(executor, device)
                 : time_repeatedly([&] { executor.run(); },
                                   [&] { return device.elapsed().seconds; }, options.repeats);
  if (options.layers) {
    row.array = array_use(executor.plan());
    add_layers(row, executor, machine);
  }
  return row;
}

/// Runs `measure` for every combination of threads and batches.
template <class Measure>
std::vector<Row> sweep(const BenchOptions& options, const Measure& measure) {
  std::vector<Row> rows;
  const auto threads =
      options.threads == "0" ? std::vector<std::int64_t>{0} : parse_numbers(options.threads);
  if (std::ranges::max(threads) > kMaxThreads) {
    throw InvalidArgument(fmt::format("--threads must be at most {}", kMaxThreads));
  }
  for (const auto count : threads) {
    MachineOptions machine_options = options.machine;
    machine_options.threads = static_cast<int>(count);
    const Machine machine(machine_options.config());
    for (const auto batch : parse_numbers(options.batches)) {
      for (auto& row : measure(machine, batch)) {
        row.batch = batch;
        row.threads = machine.threads();
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

std::vector<Row> bench_model(const BenchOptions& options) {
  return sweep(options, [&](const Machine& machine, std::int64_t batch) {
    const PlanRequest request = {.model = options.model.config(),
                                 .mode = mode_from_string(options.mode),
                                 .training = {.batch = batch},
                                 .memory_limit_mib = options.memory_limit};
    std::vector<Row> rows;
    rows.push_back(time_plan(plan_model(request, machine).plan, machine, options));
    rows.back().name = fmt::format("{}/{}", options.model.model, options.mode);
    return rows;
  });
}

std::vector<Row> bench_matmul(const BenchOptions& options) {
  return sweep(options, [&](const Machine& machine, std::int64_t batch) {
    std::vector<Row> rows;
    for (const auto n : parse_numbers(options.sizes)) {
      Graph graph;
      const std::vector<ValueId> inputs = {graph.add_input("a", {DType::F32, Shape{batch, n, n}}),
                                           graph.add_input("b", {DType::F32, Shape{batch, n, n}})};
      graph.mark_output("y", graph.add_node(make_op(MatMul{}), inputs).front());
      rows.push_back(
          time_plan(make_plan(std::move(graph), machine.devices(), machine.plan_options()), machine,
                    options));
      rows.back().name = fmt::format("matmul/{0}x{0}x{0}", n);
    }
    return rows;
  });
}

std::vector<Row> bench_conv(const BenchOptions& options) {
  return sweep(options, [&](const Machine& machine, std::int64_t batch) {
    const auto& s = options.shape;
    Graph graph;
    Conv conv;
    conv.pads = Dims(4, options.kernel / 2);
    Tensor weight(TensorSpec{DType::F32, Shape{s[1], s[0], options.kernel, options.kernel}});
    std::ranges::fill(weight.as<float>(), 0.01F);
    const std::vector<ValueId> inputs = {
        graph.add_input("x", {DType::F32, Shape{batch, s[0], s[2], s[3]}}),
        graph.add_constant("w", std::make_shared<const Tensor>(std::move(weight)))};
    graph.mark_output("y", graph.add_node(make_op(conv), inputs).front());
    std::vector<Row> rows;
    rows.push_back(time_plan(make_plan(std::move(graph), machine.devices(), machine.plan_options()),
                             machine, options));
    rows.back().name = fmt::format("conv/{}>{}@{}x{}k{}", s[0], s[1], s[2], s[3], options.kernel);
    return rows;
  });
}

Json row_json(const Row& row, const BenchOptions& options) {
  const auto time = [&](double seconds) { return time_json({seconds, row.kind}); };
  Json result = {{"name", row.name},
                 {"backend", options.machine.backend},
                 {"contract", options.machine.contract},
                 {"threads", row.threads},
                 {"batch", row.batch},
                 {"samples", row.time.samples},
                 {"median", time(row.time.median)},
                 {"min", time(row.time.min)},
                 {"max", time(row.time.max)},
                 {"gflops", row.flops / row.time.median * 1e-9},
                 {"images_per_second", static_cast<double>(row.batch) / row.time.median},
                 {"host", to_json(row.host)},
                 {"plan_memory_mib", row.plan_bytes / 1048576},
                 {"peak_memory_mib", peak_memory_mib()}};
  for (std::size_t i = 0; i < row.layers.size(); ++i) {
    result["layers"].push_back({{"node", row.layer_work[i].first},
                                {"kernel", row.layers[i].kernel},
                                {"time", time_json(row.layers[i].time)},
                                {"flops", row.layer_work[i].second.flops},
                                {"bytes", row.layer_work[i].second.bytes}});
  }
  for (const auto& use : row.array) result["array"].push_back(to_json(use));
  return result;
}

void print_layers(const Row& row) {
  Table table({"node", "kernel", "time", "share %", "GFLOP/s", "GB/s"});
  double total = 0;
  for (const auto& step : row.layers) total += step.time.kind == row.kind ? step.time.seconds : 0;
  for (std::size_t i = 0; i < row.layers.size(); ++i) {
    const auto& step = row.layers[i];
    if (step.kernel.empty() || step.time.kind != row.kind) continue;
    const auto& [name, cost] = row.layer_work[i];
    table.add({name, std::string(step.kernel), format_seconds(step.time.seconds),
               fmt::format("{:.1f}", 100 * step.time.seconds / total),
               fmt::format("{:.1f}", cost.flops / step.time.seconds * 1e-9),
               fmt::format("{:.1f}", cost.bytes / step.time.seconds * 1e-9)});
  }
  fmt::print("\n{}, batch {}, {} threads, one profiled run ({}):\n", row.name, row.batch,
             row.threads, to_string(row.kind));
  table.print();
  print_array_use(row.array);
}

void report(const std::vector<Row>& rows, const BenchOptions& options, const Context& context) {
  if (context.json) {
    Json results = Json::array();
    for (const auto& row : rows) results.push_back(row_json(row, options));
    print_document("bench", std::move(results));
    return;
  }
  Table table(
      {"name", "batch", "threads", "median", "min", "max", "runs", "images/s", "GFLOP/s", "plan"});
  for (const auto& row : rows) {
    table.add({row.name, fmt::format("{}", row.batch), fmt::format("{}", row.threads),
               format_seconds(row.time.median), format_seconds(row.time.min),
               format_seconds(row.time.max), fmt::format("{}", row.time.samples),
               fmt::format("{:.1f}", static_cast<double>(row.batch) / row.time.median),
               fmt::format("{:.1f}", row.flops / row.time.median * 1e-9),
               format_bytes(row.plan_bytes)});
  }
  fmt::print(
      "{} on {}; times are {}; FLOP by direct counting; peak memory of the process {:.0f} MiB\n",
      options.machine.contract, options.machine.backend,
      rows.empty() ? "" : to_string(rows.front().kind), peak_memory_mib());
  table.print();
  for (const auto& row : rows) {
    if (row.host) fmt::print("{}: {} per run, beside it\n", row.name, to_string(*row.host));
    if (!row.layers.empty()) print_layers(row);
  }
}

void add_sweep_options(CLI::App& command, BenchOptions& options, Context& context) {
  command.add_option("--backend", options.machine.backend, "the machine")->capture_default_str();
  command.add_option("--contract", options.machine.contract, "f32, bf16 or bf16-exact")
      ->capture_default_str();
  options.machine.add_simulation_to(command);
  command.add_option("--threads", options.threads, "thread counts: 1,2; 0: as many as there are")
      ->capture_default_str();
  command.add_option("--batch", options.batches, "batch sizes: 1,4 or 1..64")
      ->capture_default_str();
  command.add_option("--repeats", options.repeats, "timed runs; 0: about a second, at least 5")
      ->check(whole_from(0, 100000))
      ->capture_default_str();
  command.add_flag("--layers", options.layers, "add the time of every node");
  command.add_flag("--json", context.json, "print JSON");
}

}  // namespace

void add_bench_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<BenchOptions>();
  auto* command = app.add_subcommand("bench", "Time a model, a matrix product or a convolution");
  options->model.add_to(*command);
  command->add_option("--mode", options->mode, "infer or train")->capture_default_str();
  command
      ->add_option("--memory-limit", options->memory_limit,
                   "MiB of activations, 0: none; recompute cheap ones to stay below")
      ->check(whole_from(0, kMaxMemoryMib))
      ->capture_default_str();
  add_sweep_options(*command, *options, context);
  auto* matmul = command->add_subcommand("matmul", "Square matrix products");
  matmul->add_option("--sizes", options->sizes, "sizes: 512,1000 or 256..4096")
      ->capture_default_str();
  add_sweep_options(*matmul, *options, context);
  auto* conv = command->add_subcommand("conv", "One convolution, 'same' padding");
  conv->add_option("--shape", options->shape, "in,out,height,width")
      ->delimiter(',')
      ->expected(4)
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
      ->capture_default_str();
  conv->add_option("--kernel", options->kernel, "kernel size")
      ->check(whole_from(1, 31))
      ->capture_default_str();
  add_sweep_options(*conv, *options, context);
  const auto* all_reduce = add_all_reduce_bench(*command, context);
  command->callback([options, &context, matmul, conv, all_reduce] {
    if (all_reduce->parsed()) return;
    const auto rows = matmul->parsed() ? bench_matmul(*options)
                      : conv->parsed() ? bench_conv(*options)
                                       : bench_model(*options);
    report(rows, *options, context);
  });
}

}  // namespace triptych::cli
