// `triptych explain`: placement, the kernel of each node with the reason, memory, work, and the
// changes of each pass.
// SPDX-License-Identifier: Apache-2.0

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/list_text.h"
#include "core/io/output_ledger.h"
#include "experiments/app/commands.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/measure/array_tilings.h"
#include "experiments/measure/array_use.h"
#include "experiments/measure/model_plan.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

struct ExplainOptions {
  ModelOptions model;
  training::ExecutionConfig machine;
  measure::Mode mode = measure::Mode::Train;
  std::int64_t batch = 1;
  std::size_t memory_limit = 0;
  std::string dot;
  bool passes = false;
};

page::Json memory_json(const Plan& plan) {
  page::Json memory = page::Json::array();
  for (std::size_t d = 0; d < plan.devices.size(); ++d) {
    memory.push_back({{"device", plan.devices[d]->info().name},
                      {"arena_bytes", plan.arena_bytes[d]},
                      {"scratch_bytes", plan.scratch_bytes[d]},
                      {"state_bytes", plan.state_bytes[d]},
                      {"constant_bytes", plan.constant_bytes[d]},
                      {"kernel_bytes", plan.kernel_bytes[d]},
                      {"total_bytes", plan.total_bytes(d)}});
  }
  return memory;
}

/// The copies before and after a step.
std::vector<Crossing> all_crossings(const Step& step) {
  auto crossings = step.crossings;
  crossings.insert(crossings.end(), step.write_backs.begin(), step.write_backs.end());
  return crossings;
}

/// The values that a kernel reads or writes, as they are stored.
page::Json operands_json(const Plan& plan, Values values, const std::vector<Operand>& operands) {
  page::Json list = page::Json::array();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto& [spec, outer_stride, format] = operands[i];
    list.push_back({{"value", plan.graph.value(values[i]).name},
                    {"shape", spec.shape.dims()},
                    {"stored", to_string(format ? format->dtype : spec.dtype)},
                    {"channels_last", format.has_value()}});
  }
  return list;
}

page::Json node_json(const Plan& plan, const Step& step) {
  const auto& node = plan.graph.node(step.node);
  const auto cost = measure::node_cost(plan.graph, node);
  page::Json crossings = page::Json::array();
  for (const auto& crossing : all_crossings(step)) {
    crossings.push_back({{"value", plan.graph.value(crossing.value).name},
                         {"from", plan.devices[crossing.from]->info().name},
                         {"to", plan.devices[crossing.to]->info().name},
                         {"bytes", crossing.bytes}});
  }
  std::vector<Operand> reads, writes;
  if (step.entry != nullptr) {
    reads = plan.input_operands(step);
    writes = plan.output_operands(step);
  }
  return {{"node", node.name},
          {"stands_for", node.stands_for()},
          {"op", to_string(*node.op)},
          {"device", plan.devices[step.device]->info().name},
          {"kernel", step.entry == nullptr ? "" : step.entry->name},
          {"why", reason_of(plan, step)},
          {"output", node.outputs.empty() ? "" : to_string(plan.graph.spec(node.outputs[0]))},
          {"reads", operands_json(plan, node.inputs, reads)},
          {"writes", operands_json(plan, node.outputs, writes)},
          {"flops", cost.flops},
          {"bytes", cost.bytes},
          {"crossings", std::move(crossings)}};
}

/// Tiles of the plan, and of the planner's own plan if tiles were requested.
struct Tilings {
  std::vector<measure::ArrayTiling> chosen, planned;
};

Tilings tilings_of(const measure::ModelPlan& result, const measure::PlanRequest& request,
                   training::ExecutionConfig config) {
  const bool compares = !config.tiling.empty();
  Tilings tilings = {measure::array_tilings(result.plan, compares), {}};
  if (!compares) return tilings;
  config.tiling.clear();
  const DeviceSet machine(config);
  tilings.planned = measure::array_tilings(measure::plan_model(request, machine).plan, true);
  return tilings;
}

page::Json explain_json(const measure::ModelPlan& result, const ExplainOptions& options,
                        const DeviceSet& machine, const Tilings& tilings) {
  const auto cost = measure::total_cost(result.plan.graph);
  page::Json nodes = page::Json::array();
  for (const auto& step : result.plan.steps) nodes.push_back(node_json(result.plan, step));
  page::Json passes = page::Json::array();
  for (const auto& pass : result.passes) {
    page::Json entry = {{"name", pass.name},
                        {"nodes_before", pass.nodes_before},
                        {"nodes_after", pass.nodes_after}};
    if (options.passes) entry.update({{"before", pass.text_before}, {"after", pass.text_after}});
    passes.push_back(std::move(entry));
  }
  return page::Json::array({{{"model", options.model.name()},
                             {"mode", name_of(options.mode)},
                             {"batch", options.batch},
                             {"backend", options.machine.backend},
                             {"contract", to_string(options.machine.contract)},
                             {"flops", cost.flops},
                             {"bytes", cost.bytes},
                             {"memory", memory_json(result.plan)},
                             {"array", measure::tilings_json(tilings.chosen, tilings.planned)},
                             {"host", measure::host_json(machine.host_share(result.plan))},
                             {"passes", std::move(passes)},
                             {"nodes", std::move(nodes)}}});
}

void print_passes(const measure::ModelPlan& result, bool with_text) {
  print_text("passes:\n");
  for (const auto& pass : result.passes) {
    print_text("  {}: {} -> {}\n", pass.name, pass.nodes_before,
               counted(static_cast<std::int64_t>(pass.nodes_after), "node"));
    if (with_text && pass.text_before != pass.text_after) {
      print_text("--- before {0}\n{1}--- after {0}\n{2}\n", pass.name, pass.text_before,
                 pass.text_after);
    }
  }
}

/// "host" for the host of a simulated machine.
std::string device_name(const Plan& plan, std::size_t device, bool has_host) {
  return has_host && device == 1 ? "host" : plan.devices[device]->info().name;
}

void print_nodes(const Plan& plan, bool has_host) {
  page::TextTable table({"node", "op", "device", "kernel", "output", "FLOP", "bytes", "why"});
  for (const auto& step : plan.steps) {
    const auto& node = plan.graph.node(step.node);
    const auto cost = measure::node_cost(plan.graph, node);
    table.add({node.name, std::string(node.op->name()), device_name(plan, step.device, has_host),
               step.entry == nullptr ? "-" : std::string(step.entry->name),
               node.outputs.empty() ? "" : to_string(plan.graph.spec(node.outputs[0])),
               page::format_count(cost.flops), page::format_bytes(cost.bytes),
               reason_of(plan, step)});
  }
  table.print();
}

void print_summary(const Plan& plan, bool has_host) {
  std::size_t crossings = 0;
  std::size_t crossing_bytes = 0;
  for (const auto& step : plan.steps) {
    for (const auto& crossing : all_crossings(step)) {
      ++crossings;
      crossing_bytes += crossing.bytes;
    }
  }
  const auto cost = measure::total_cost(plan.graph);
  print_text("\nwork: {}FLOP, at least {} moved\n", page::format_count(cost.flops),
             page::format_bytes(cost.bytes));
  for (std::size_t d = 0; d < plan.devices.size(); ++d) {
    std::size_t nodes = 0;
    for (const auto& step : plan.steps) nodes += step.device == d ? 1 : 0;
    const auto memory = fmt::format(
        "{}: {} of {}; planned memory {}: arena {} (scratch up to {}), states {}, constants {}, "
        "kernels {}",
        device_name(plan, d, has_host), nodes, counted(std::ssize(plan.steps), "node"),
        page::format_bytes(static_cast<double>(plan.total_bytes(d))),
        page::format_bytes(static_cast<double>(plan.arena_bytes[d])),
        page::format_bytes(static_cast<double>(plan.scratch_bytes[d])),
        page::format_bytes(static_cast<double>(plan.state_bytes[d])),
        page::format_bytes(static_cast<double>(plan.constant_bytes[d])),
        page::format_bytes(static_cast<double>(plan.kernel_bytes[d])));
    print_text("{}", page::fitted(memory, 2));
  }
  if (plan.devices.size() > 1) {
    print_text("crossings between devices: {} per run, {}\n", crossings,
               page::format_bytes(static_cast<double>(crossing_bytes)));
  }
}

void explain(ExplainOptions options, const Context& context) {
  if (!options.dot.empty()) require_writable(options.dot);
  const DeviceSet machine(options.machine);
  measure::PlanRequest request = {
      .mode = options.mode, .memory_limit_mib = options.memory_limit, .keep_text = options.passes};
  const auto batch = options.model.set_model(options.mode, request.model, request.inference);
  request.training.batch = options.batch = batch.value_or(options.batch);
  const auto result = measure::plan_model(request, machine);
  if (!options.dot.empty()) write_own_file(options.dot, to_dot(result.plan.graph));
  const auto tilings = tilings_of(result, request, machine.config());
  if (context.json) {
    print_document("explain", explain_json(result, options, machine, tilings));
    return;
  }
  print_text("{}, {} step of batch {}, {} on {}\n\n", options.model.name(), name_of(options.mode),
             options.batch, to_string(options.machine.contract), machine.device().info().name);
  print_passes(result, options.passes);
  print_text("\n");
  const bool has_host = machine.host_share(result.plan).has_value();
  print_nodes(result.plan, has_host);
  measure::print_tilings(tilings.chosen, tilings.planned);
  print_summary(result.plan, has_host);
  measure::print_host(machine, result.plan);
  if (!options.dot.empty()) print_text("graph: {}\n", options.dot);
}

}  // namespace

void describe_explain(Command& command, Context& context) {
  auto options = std::make_shared<ExplainOptions>();
  options->model.add_to(command);
  options->model.add_bind_to(command);
  add_machine_options(command, options->machine);
  add_options(command, {training::OptionGroup::Tiling}, {.machine = &options->machine});
  add_mode_options(command, options->mode, options->memory_limit);
  add_run_option(command, "--batch", options->batch);
  command.add_flag("--passes", options->passes, "print the graph before and after each pass");
  command.add_option("--dot", options->dot, "Graphviz file of the final graph").output_file();
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] { explain(*options, context); });
}

}  // namespace triptych::app
