// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/bench_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/base/console.h"
#include "core/base/list_text.h"
#include "experiments/app/kernel_counters.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

bool is_counted(const BenchRow& row) { return row.time.samples == 0; }

double flops_per_second(const BenchRow& row) { return row.flops / row.time.median; }

page::Json ranks_json(const measure::ArrayRanks& ranks) {
  return {{"count", ranks.ranks},
          {"cycles", ranks.cycles()},
          {"compute_cycles", ranks.compute_cycles},
          {"arbiter_wait_cycles", ranks.wait_cycles},
          {"all_reduce_cycles", ranks.all_reduce_cycles},
          {"all_reduce_bytes", ranks.all_reduce_bytes}};
}

page::Json row_json(const BenchRow& row, const BenchHeader& header) {
  page::Json result = {{"name", row.name},       {"backend", header.backend},
                       {"kernel", row.kernel},   {"contract", header.contract},
                       {"threads", row.threads}, {"batch", row.batch}};
  if (is_counted(row)) {
    result["counters"] = to_json(row.counters, header.source);
  } else {
    result.update(measure::times_json(row.time, row.kind));
    result["gflops"] = flops_per_second(row) * 1e-9;
    result["images_per_second"] = static_cast<double>(row.batch) / row.time.median;
  }
  if (row.roof) result["roof"] = page::figure_json(*row.roof, "FLOP/s", TimeKind::Modelled);
  if (row.peak) result["peak"] = page::figure_json(*row.peak, "FLOP/s", TimeKind::Measured);
  if (row.modelled) {
    result["modelled"] = {{"device", row.modelled->device},
                          {"time", page::time_json(row.modelled->time)},
                          {"bound", page::time_json({row.modelled->bound_s, TimeKind::Modelled})}};
  }
  for (const auto& moved : row.traffic) {
    result["traffic"].push_back(
        {{"level", moved.level}, {"bytes", moved.bytes}, {"kind", "modelled"}});
    if (moved.read_bytes > 0) result["traffic"].back()["read_bytes"] = moved.read_bytes;
  }
  if (row.ranks) result["ranks"] = ranks_json(*row.ranks);
  result["host"] = measure::host_json(row.host);
  result["plan_memory_mib"] = row.plan_bytes / 1048576;
  result["peak_memory_mib"] = row.peak_memory_mib;
  for (std::size_t i = 0; i < row.layers.size(); ++i) {
    result["layers"].push_back({{"node", row.layer_work[i].first},
                                {"kernel", row.layers[i].kernel},
                                {"time", page::time_json(row.layers[i].time)},
                                {"flops", row.layer_work[i].second.flops},
                                {"bytes", row.layer_work[i].second.bytes}});
    if (row.layer_bounds.empty()) continue;
    result["layers"].back()["bound"] = page::time_json({row.layer_bounds[i], TimeKind::Modelled});
  }
  for (const auto& use : row.array) {
    result["array"].push_back(to_json(use, header.energy));
    result["array"].back()["dataflows"] = measure::dataflows_json(row.dataflows, use.node);
  }
  return result;
}

/// True for a node on a simulated machine's host.
bool on_host(const BenchRow& row, const StepProfile& step) { return row.host && step.device == 1; }

bool is_shown(const BenchRow& row, const StepProfile& step) {
  return !step.kernel.empty() && (row.host || step.time.kind == row.kind);
}

void print_layers(const BenchRow& row, const machines::EnergyTable& energy) {
  const bool bounded = !row.layer_bounds.empty();
  std::vector<std::string> header = {"node", "kernel", "time", "share %", "GFLOP/s", "GB/s"};
  if (bounded) header.insert(header.end(), {"roofline (modelled)", "% of it"});
  page::TextTable table(header);
  double total = 0;
  for (const auto& step : row.layers) total += is_shown(row, step) ? step.time.seconds : 0;
  for (std::size_t i = 0; i < row.layers.size(); ++i) {
    const auto& step = row.layers[i];
    if (!is_shown(row, step)) continue;
    const auto& [name, cost] = row.layer_work[i];
    std::vector<std::string> cells = {
        name,
        on_host(row, step) ? fmt::format("host: {}", step.kernel) : std::string(step.kernel),
        page::format_seconds(step.time.seconds),
        fmt::format("{:.1f}", 100 * step.time.seconds / total),
        fmt::format("{:.1f}", cost.flops / step.time.seconds * 1e-9),
        fmt::format("{:.1f}", cost.bytes / step.time.seconds * 1e-9)};
    if (bounded) {
      cells.push_back(page::format_seconds(row.layer_bounds[i]));
      cells.push_back(fmt::format("{:.0f}", 100 * row.layer_bounds[i] / step.time.seconds));
    }
    table.add(std::move(cells));
  }
  print_text("\n{}, batch {}, {}, one profiled run ({}):\n", row.name, row.batch,
             counted(row.threads, "thread"), to_string(row.kind));
  table.print();
  if (bounded) {
    print_text(
        "roofline: FLOP, counted directly, at the multiply-adds' peak, or bytes, each operand "
        "once, "
        "at the bandwidth of the nearest level that holds them, both measured just now; a kernel "
        "that saves multiplications (winograd) may exceed it\n");
  }
  measure::print_array_use(row.array, energy);
  measure::print_dataflows(row.dataflows);
}

/// The most FLOP/s among the kernels of this row's problem.
double best_of(const std::vector<BenchRow>& rows, const BenchRow& row) {
  double best = 0;
  for (const auto& other : rows) {
    const bool same =
        other.name == row.name && other.batch == row.batch && other.threads == row.threads;
    if (same) best = std::max(best, flops_per_second(other));
  }
  return best;
}

bool any_has_peak(const std::vector<BenchRow>& rows) {
  return std::ranges::any_of(rows, [](const auto& row) { return row.peak.has_value(); });
}

std::string percent_of(const std::optional<double>& limit, const BenchRow& row) {
  return limit ? fmt::format("{:.1f}", 100 * flops_per_second(row) / *limit) : "-";
}

/// GFLOP/s with three digits where they are few.
std::string format_speed(const BenchRow& row) {
  const double giga = flops_per_second(row) * 1e-9;
  return giga < 100 ? fmt::format("{:.3g}", giga) : fmt::format("{:.1f}", giga);
}

/// Columns of a ladder that only some machines or kernels fill, by name.
struct LadderColumn {
  std::string header;
  std::function<std::string(const BenchRow&)> cell;
};

std::vector<LadderColumn> optional_columns(const std::vector<BenchRow>& rows) {
  std::vector<LadderColumn> columns;
  if (any_has_peak(rows)) {
    columns.push_back({"% of peak", [](const auto& row) { return percent_of(row.peak, row); }});
  }
  if (std::ranges::any_of(rows, [](const auto& row) { return row.roof.has_value(); })) {
    columns.push_back(
        {"% of roofline (modelled)", [](const auto& row) { return percent_of(row.roof, row); }});
  }
  const auto with_traffic =
      std::ranges::find_if(rows, [](const auto& row) { return !row.traffic.empty(); });
  if (with_traffic == rows.end()) return columns;
  for (std::size_t i = 0; i < with_traffic->traffic.size(); ++i) {
    columns.push_back(
        {fmt::format("{} (modelled)", with_traffic->traffic[i].level), [i](const BenchRow& row) {
           return i < row.traffic.size() ? page::format_bytes(row.traffic[i].bytes) : "-";
         }});
  }
  return columns;
}

/// The kernels of one problem in one table, each with its ratio to the fastest and to the backend.
void print_ladder(const std::vector<BenchRow>& rows) {
  const auto optional = optional_columns(rows);
  std::vector<std::string> header = {"name", "kernel", "batch",   "threads",  "median",
                                     "min",  "max",    "GFLOP/s", "% of best"};
  for (const auto& column : optional) header.push_back(column.header);
  page::TextTable table(header);
  for (const auto& row : rows) {
    const double speed = flops_per_second(row);
    std::vector<std::string> cells = {row.name,
                                      row.kernel,
                                      fmt::format("{}", row.batch),
                                      fmt::format("{}", row.threads),
                                      page::format_seconds(row.time.median),
                                      page::format_seconds(row.time.min),
                                      page::format_seconds(row.time.max),
                                      format_speed(row),
                                      fmt::format("{:.1f}", 100 * speed / best_of(rows, row))};
    for (const auto& column : optional) cells.push_back(column.cell(row));
    table.add(std::move(cells));
  }
  table.print();
}

void print_times(const std::vector<BenchRow>& rows) {
  const bool has_peak = any_has_peak(rows);
  std::vector<std::string> header = {"name", "batch", "threads",  "median", "min",
                                     "max",  "runs",  "images/s", "GFLOP/s"};
  if (has_peak) header.emplace_back("% of peak");
  header.insert(header.end(), {"plan", "process"});
  page::TextTable table(header);
  for (const auto& row : rows) {
    std::vector<std::string> cells = {
        row.name,
        fmt::format("{}", row.batch),
        fmt::format("{}", row.threads),
        page::format_seconds(row.time.median),
        page::format_seconds(row.time.min),
        page::format_seconds(row.time.max),
        fmt::format("{}", row.time.samples),
        fmt::format("{:.1f}", static_cast<double>(row.batch) / row.time.median),
        fmt::format("{:.1f}", flops_per_second(row) * 1e-9)};
    if (has_peak) cells.push_back(percent_of(row.peak, row));
    cells.push_back(page::format_bytes(row.plan_bytes));
    cells.push_back(fmt::format("{:.0f} MiB", row.peak_memory_mib));
    table.add(std::move(cells));
  }
  table.print();
}

/// Prints the parts of a step that ranks share.
void print_ranks(const BenchRow& row) {
  const auto& ranks = *row.ranks;
  const auto share = [&](std::uint64_t cycles) {
    return 100 * static_cast<double>(cycles) / static_cast<double>(ranks.cycles());
  };
  print_text(
      "{}, batch {}: {} cycles of each of {} ranks (simulated); waits for other arrays {} ({:.1f} "
      "%), all-reduce of {} by a ring {} ({:.1f} %)\n",
      row.name, row.batch, ranks.cycles(), ranks.ranks, ranks.wait_cycles, share(ranks.wait_cycles),
      page::format_bytes(static_cast<double>(ranks.all_reduce_bytes)), ranks.all_reduce_cycles,
      share(ranks.all_reduce_cycles));
}

/// The peaks that percentages are of, one for each number of threads.
void print_peaks(const std::vector<BenchRow>& rows) {
  std::map<std::int64_t, double> peaks;
  for (const auto& row : rows) {
    if (row.peak) peaks[row.threads] = *row.peak;
  }
  for (const auto& [threads, peak] : peaks) {
    print_text("peak of the multiply-adds of {} (measured): {:.1f} GFLOP/s\n",
               counted(threads, "thread"), peak * 1e-9);
  }
}

/// Prints the times of the same plans on the machine of --device.
void print_modelled(const std::vector<BenchRow>& rows) {
  if (rows.empty() || !rows.front().modelled) return;
  print_text("\nthe same plans on {} (modelled: launch + roofline / what kernels reach of it):\n",
             rows.front().modelled->device);
  page::TextTable table({"name", "kernel", "batch", "threads", "modelled", "roofline", "images/s",
                         "modelled over " + std::string(to_string(rows.front().kind))});
  for (const auto& row : rows) {
    const auto& [device, time, bound_s] = *row.modelled;
    table.add({row.name, row.kernel.empty() ? "-" : row.kernel, fmt::format("{}", row.batch),
               fmt::format("{}", row.threads), page::format_seconds(time.seconds),
               page::format_seconds(bound_s),
               fmt::format("{:.1f}", static_cast<double>(row.batch) / time.seconds),
               fmt::format("{:.3f}", time.seconds / row.time.median)});
  }
  table.print();
}

void print_counted(const std::vector<BenchRow>& rows, const BenchHeader& header) {
  std::vector<CountedRun> runs;
  runs.reserve(rows.size());
  for (const auto& row : rows) {
    // Where several kernels stand for one, they are listed under its name.
    const bool several = row.counters.size() > 1 && !row.kernel.empty();
    runs.push_back({several ? row.name + ", " + row.kernel : row.name, row.counters});
  }
  print_text("{} on {}: counted in one run, no times\n", header.contract, header.backend);
  print_counters(runs);
  if (header.ladder) print_traffic(runs);
  if (header.source) print_lines(runs);
}

}  // namespace

page::Json to_json(const std::vector<BenchRow>& rows, const BenchHeader& header) {
  page::Json results = page::Json::array();
  for (const auto& row : rows) results.push_back(row_json(row, header));
  return results;
}

void print_rows(const std::vector<BenchRow>& rows, const BenchHeader& header) {
  if (!rows.empty() && is_counted(rows.front())) {
    print_counted(rows, header);
    return;
  }
  print_text(
      "{} on {}; times are {}; FLOP by direct counting; peak memory of the process {:.0f} MiB\n",
      header.contract, header.backend, rows.empty() ? "" : to_string(rows.front().kind),
      rows.empty() ? measure::peak_memory_mib() : rows.back().peak_memory_mib);
  if (header.ladder) {
    print_ladder(rows);
  } else {
    print_times(rows);
  }
  print_peaks(rows);
  print_modelled(rows);
  for (const auto& row : rows) {
    if (row.ranks) print_ranks(row);
    if (row.host) print_text("{}: {} per run, included\n", row.name, to_string(*row.host));
    if (!row.layers.empty()) print_layers(row, header.energy);
  }
}

}  // namespace triptych::app
