// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/commands/bench_conv.h"

#include <fmt/core.h>

#include "core/base/console.h"
#include "core/base/mapped.h"
#include "experiments/app/output.h"
#include "experiments/machines/array_machine.h"
#include "experiments/measure/batch_sweep.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

// A sweep over batch sizes as tables and as JSON.

std::vector<std::int64_t> batches_of(const measure::SweptMachine& machine) {
  return mapped<std::int64_t>(machine.points, [](const auto& point) { return point.batch; });
}

page::Json transfers_json(const std::optional<measure::Transfers>& transfers) {
  if (!transfers) return nullptr;
  return {{"bytes_in", transfers->bytes_in},
          {"bytes_out", transfers->bytes_out},
          {"in", page::time_json(transfers->in)},
          {"out", page::time_json(transfers->out)}};
}

/// time(first) / time(backend). Null for the first backend.
page::Json speedup_json(const measure::SweptMachine& machine, const measure::SweptMachine& first,
                        std::size_t i, bool with_transfers) {
  if (&machine == &first) return nullptr;
  const auto time = [&](const measure::SweptMachine& of) {
    return with_transfers ? of.points[i].with_transfers() : of.points[i].compute();
  };
  return {{"value", measure::speedups(machine, first, with_transfers)[i]},
          {"kinds", {to_string(time(first).kind), to_string(time(machine).kind)}},
          {"of", with_transfers ? "with_transfers" : "time"}};
}

page::Json point_json(const measure::SweptMachine& machine, const measure::SweptMachine& first,
                      std::size_t i) {
  const auto& point = machine.points[i];
  const auto time = [&](double seconds) { return page::time_json({seconds, point.kind}); };
  page::Json json = {{"batch", point.batch},
                     {"kernel", point.kernel},
                     {"samples", point.time.samples},
                     {"time", time(point.time.median)},
                     {"min", time(point.time.min)},
                     {"max", time(point.time.max)},
                     {"transfers", transfers_json(point.transfers)},
                     {"with_transfers", page::time_json(point.with_transfers())},
                     {"speedup", speedup_json(machine, first, i, false)},
                     {"speedup_with_transfers", speedup_json(machine, first, i, true)}};
  if (!point.simulated_by.empty()) json["simulated_by"] = point.simulated_by;
  return json;
}

page::Json break_even_json(const measure::SweptMachine& machine,
                           const measure::SweptMachine& first) {
  if (&machine == &first) return nullptr;
  const auto batches = batches_of(machine);
  const auto batch = [&](bool with_transfers) -> page::Json {
    const auto found =
        measure::break_even(batches, measure::speedups(machine, first, with_transfers));
    return found ? page::Json(*found) : page::Json(nullptr);
  };
  return {{"without_transfers", batch(false)},
          {"with_transfers", batch(true)},
          {"largest_batch", batches.back()}};
}

std::string speedup_text(double value) { return fmt::format("{:.3g}", value); }

void add_rows(page::TextTable& table, const measure::SweptMachine& machine,
              const measure::SweptMachine& first) {
  const bool is_first = &machine == &first;
  const auto compute = measure::speedups(machine, first, false),
             all = measure::speedups(machine, first, true);
  for (std::size_t i = 0; i < machine.points.size(); ++i) {
    const auto& point = machine.points[i];
    const auto copies =
        point.transfers ? point.transfers->in.seconds + point.transfers->out.seconds : 0;
    table.add({machine.backend, fmt::format("{}", point.batch),
               page::format_seconds(point.time.median), std::string(to_string(point.kind)),
               is_first ? "" : speedup_text(compute[i]),
               point.transfers ? page::format_seconds(copies) : "none",
               point.transfers ? std::string(to_string(point.transfers->in.kind)) : "",
               page::format_seconds(point.with_transfers().seconds),
               is_first ? "" : speedup_text(all[i])});
  }
}

/// "from batch 8 on", "at every batch from 1 to 64", "never up to 64".
std::string break_even_text(const std::vector<std::int64_t>& batches,
                            const std::optional<std::int64_t>& batch) {
  if (!batch) return fmt::format("never up to batch {}", batches.back());
  if (*batch == batches.front())
    return fmt::format("at every batch from {} to {}", batches.front(), batches.back());
  return fmt::format("from batch {} on", *batch);
}

void print_break_even(const measure::BatchSweep& sweep) {
  const auto& first = sweep.machines.front();
  for (std::size_t m = 1; m < sweep.machines.size(); ++m) {
    const auto& machine = sweep.machines[m];
    if (machine.points.empty()) continue;
    const auto batches = batches_of(machine);
    const auto text = [&](bool with_transfers) {
      return break_even_text(
          batches, measure::break_even(batches, measure::speedups(machine, first, with_transfers)));
    };
    print_text("{} is faster than {} {}; with transfers {}\n", machine.backend, first.backend,
               text(false), text(true));
  }
}

void print_notes(const measure::BatchSweep& sweep) {
  for (const auto& machine : sweep.machines) {
    if (machine.points.empty()) {
      print_text("{}: not here, {}{}\n", machine.backend, machine.reason,
                 machine.remedy.empty() ? "" : "; " + machine.remedy);
    }
    if (!machine.link.empty()) {
      const bool simulated = machine.points.front().kind == TimeKind::Simulated;
      print_text("{}: {}; transfers are modelled, {} over {}\n", machine.backend, machine.device,
                 simulated ? "what the driver packs and unpacks" : "operands and results",
                 machine.link);
    }
    for (const auto& point : machine.points) {
      if (point.twin_instead)
        print_text("{}: batch {} is too large for the RTL: by the twin, equal in every cycle\n",
                   machine.backend, point.batch);
    }
  }
}

/// One result per machine.
page::Json to_json(const measure::BatchSweep& sweep) {
  page::Json results = page::Json::array();
  const auto& first = sweep.machines.front();
  for (const auto& machine : sweep.machines) {
    page::Json json = {
        {"backend", machine.backend},
        {"available", !machine.points.empty()},
        {"problem", sweep.problem},
        {"layer", sweep.layer.empty() ? page::Json(nullptr) : page::Json(sweep.layer)},
        {"contract", sweep.contract},
        {"flops_per_image", sweep.flops_per_image}};
    if (machine.points.empty()) {
      json["reason"] = machine.reason;
      json["remedy"] = machine.remedy;
    } else {
      json["device"] = machine.device;
      json["threads"] = machine.threads;
      json["link"] = machine.link.empty() ? page::Json(nullptr) : page::Json(machine.link);
      for (std::size_t i = 0; i < machine.points.size(); ++i)
        json["points"].push_back(point_json(machine, first, i));
      json["break_even"] = break_even_json(machine, first);
    }
    results.push_back(std::move(json));
  }
  return results;
}

void print_sweep(const measure::BatchSweep& sweep) {
  const auto& first = sweep.machines.front();
  print_text("{}{}{}, {}: {} FLOP an image; speedups over {}\n", sweep.layer,
             sweep.layer.empty() ? "" : ": ", sweep.problem, sweep.contract,
             page::format_count(sweep.flops_per_image), first.backend);
  page::TextTable table(
      {"machine", "batch", "time", "kind", "speedup", "transfers", "kind", "together", "speedup"});
  for (const auto& machine : sweep.machines) add_rows(table, machine, first);
  table.print();
  print_text("\n");
  print_break_even(sweep);
  print_notes(sweep);
}

}  // namespace

std::shared_ptr<measure::SweepOptions> add_conv_sweep_options(Command& conv) {
  auto sweep = std::make_shared<measure::SweepOptions>();
  auto layer = conv.add_option(
      "--layer", sweep->layer,
      "convolution of a model, such as unet-l:down1.conv1, instead of --shape and --window");
  layer.not_with("--shape").not_with("--window");
  auto backends = conv.add_option(
      "--backends", sweep->backends,
      "backends to compare, such as cpu,cuda,systolic. Speedups are relative to the first");
  for (const auto* other : {"--backend", "--kernel", "--layers", "--source"}) {
    backends.not_with(other);
  }
  conv.add_option("--link", sweep->link,
                  "link that models the transfers of a simulated array, with --backends")
      .only_with("--backends");
  return sweep;
}

bool run_conv_sweep(const Command& conv, measure::BenchOptions& options,
                    const measure::SweepOptions& sweep, const Context& context) {
  if (!sweep.layer.empty()) measure::take_layer(sweep.layer, options);
  if (sweep.backends.empty()) return false;
  // All machines compute the same. The array has no float32.
  if (conv.count("--contract") == 0) options.machine.contract = Contract::Bf16;
  const auto result = measure::sweep_batches(options, sweep);
  for (const auto& machine : result.machines) {
    auto config = options.machine;
    config.backend = machine.backend;
    say_note(machines::clock_note(config));
  }
  if (context.json) {
    print_document("bench conv", to_json(result));
  } else {
    print_sweep(result);
  }
  return true;
}

}  // namespace triptych::app
