// Bandwidth of memories and its effects: the claims "bandwidth", "sram" and "matrix-units".
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "experiments/machines/node_time.h"
#include "experiments/measure/array_bandwidth.h"
#include "experiments/studies/bandwidth_table.h"
#include "experiments/studies/examinations.h"
#include "experiments/studies/laboratory.h"
#include "experiments/studies/page_parts.h"
#include "experiments/studies/rules.h"

namespace triptych::studies {
namespace {

using machines::MachineFigures;

/// Peak and bandwidth alone, so that parts of two machines can be put together.
struct Roof {
  double flops_per_s = 0, bytes_per_s = 0;

  double seconds(const Cost& cost) const {
    return std::max(cost.flops / flops_per_s, cost.bytes / bytes_per_s);
  }
};

Roof roof_of(const MachineFigures& machine) {
  return {machine.peaks.at("f32").value, machine.memory_bytes_per_s()};
}

/// Nodes of a training step by operator.
std::map<std::string, std::vector<Cost>> kinds_of_work(const std::string& model) {
  const auto graph = optimize(build_training_graph(model_preset(model), {.batch = 8}).graph, {});
  std::map<std::string, std::vector<Cost>> kinds;
  for (const auto& node : graph.nodes()) {
    const auto cost = machines::cost_of(graph, node);
    if (cost.bytes > 0 && !node.op->view()) kinds[std::string(node.op->name())].push_back(cost);
  }
  return kinds;
}

double seconds_of(const std::vector<Cost>& work, const Roof& roof) {
  double seconds = 0;
  for (const auto& cost : work) seconds += roof.seconds(cost);
  return seconds;
}

struct KindOfWork {
  std::string name;
  double seconds = 0;  ///< on the CPU
  Cost cost;
  Shares shares;
};

/// The kinds that take at least 1 % of the CPU's time, the longest first.
std::vector<KindOfWork> compare(const Roof& cpu, const Roof& gpu) {
  std::vector<KindOfWork> kinds;
  double total = 0;
  for (const auto& [name, work] : kinds_of_work("unet-m")) {
    KindOfWork kind = {.name = name, .seconds = seconds_of(work, cpu), .cost = {}, .shares = {}};
    for (const auto& cost : work) {
      kind.cost.flops += cost.flops;
      kind.cost.bytes += cost.bytes;
    }
    const auto over = [&kind, &costs = work](const Roof& roof) {
      return kind.seconds / seconds_of(costs, roof);
    };
    kind.shares = {.speedup = over(gpu),
                   .by_bandwidth = over({cpu.flops_per_s, gpu.bytes_per_s}),
                   .by_arithmetic = over({gpu.flops_per_s, cpu.bytes_per_s})};
    total += kind.seconds;
    kinds.push_back(std::move(kind));
  }
  std::erase_if(kinds, [&](const KindOfWork& kind) { return kind.seconds < 0.01 * total; });
  std::ranges::sort(kinds, std::ranges::greater{}, &KindOfWork::seconds);
  return kinds;
}

Json machine_table(const MachineFigures& cpu) {
  std::vector<std::vector<Json>> rows;
  const auto add = [&](const MachineFigures& machine) {
    if (!machine.peaks.contains("f32")) return;
    const auto& peak = machine.peaks.at("f32");
    const auto memory = best_of(machine.levels.back());
    if (!memory) return;
    rows.push_back(
        {machine.description, figure(peak, "FLOP/s"), figure(*memory, "byte/s"),
         ratio(peak.value / memory->value, peak.kind, memory->kind, "FLOP/byte"),
         ratio(memory->value / cpu.memory_bytes_per_s(), memory->kind, TimeKind::Measured),
         ratio(peak.value / cpu.peaks.at("f32").value, peak.kind, TimeKind::Measured)});
  };
  add(cpu);
  for (const auto* name : {"i9-9900k", "rtx2070super", "a100", "h200"})
    add(machines::find_figures(name));
  return table("Machines: arithmetic and memory",
               {{"machine", ""},
                {"f32", "FLOP/s"},
                {"memory", "byte/s"},
                {"ridge", "FLOP/byte"},
                {"bandwidth over this CPU", "x"},
                {"arithmetic over this CPU", "x"}},
               std::move(rows));
}

/// On-chip level over memory, of machines that tell both.
struct Ratio {
  std::string machine, level;
  machines::Figure near, far;

  double value() const { return near.value / far.value; }
};

std::optional<Ratio> ratio_of(const std::string& machine,
                              const std::vector<machines::MemoryLevel>& levels) {
  const auto near = best_of(levels.front()), far = best_of(levels.back());
  if (!near || !far) return std::nullopt;
  return Ratio{machine, levels.front().name, *near, *far};
}

std::vector<Ratio> ratios(Laboratory& laboratory) {
  std::vector<Ratio> list;
  const auto add = [&](const std::optional<Ratio>& ratio) {
    if (ratio) list.push_back(*ratio);
  };
  for (const auto* name : {"rtx2070super", "a100", "h100", "h200", "tpu-v1"})
    add(ratio_of(name, machines::find_figures(name).levels));
  add(ratio_of("this CPU", laboratory.cpu().levels));
  for (const auto* name : {"mmu16", "tpu-v2-core"})
    add(ratio_of(std::string("systolic:") + name,
                 measure::array_bandwidths(mmu::find_machine(name))));
  return list;
}

double ratio_named(const std::vector<Ratio>& list, std::string_view machine) {
  const auto found = std::ranges::find(list, machine, &Ratio::machine);
  return found == list.end() ? 0 : found->value();
}

}  // namespace

Finding examine_bandwidth(Laboratory& laboratory) {
  const auto& cpu = laboratory.cpu();
  const auto gpu = machines::find_figures("h200");
  const auto kinds = compare(roof_of(cpu), roof_of(gpu));
  std::vector<std::vector<Json>> rows;
  std::vector<Shares> shares;
  std::string by_bandwidth, by_both;
  Bars whole = {.name = "all of it", .kind = TimeKind::Modelled, .bars = {}};
  Bars bandwidth = {.name = "its bandwidth alone", .kind = TimeKind::Modelled, .bars = {}};
  Bars arithmetic = {.name = "its arithmetic alone", .kind = TimeKind::Modelled, .bars = {}};
  for (const auto& kind : kinds) {
    const auto& s = kind.shares;
    shares.push_back(s);
    rows.push_back({kind.name,
                    figure(kind.cost.flops / kind.cost.bytes, "FLOP/byte", TimeKind::Modelled),
                    figure(kind.seconds, "s", TimeKind::Modelled),
                    ratio(s.speedup, TimeKind::Modelled, TimeKind::Modelled),
                    ratio(s.by_bandwidth, TimeKind::Modelled, TimeKind::Modelled),
                    ratio(s.by_arithmetic, TimeKind::Modelled, TimeKind::Modelled),
                    figure(s.bandwidth_share(), "%", TimeKind::Modelled)});
    auto& names = s.bandwidth_share() >= 0.9 ? by_bandwidth : by_both;
    names += (names.empty() ? "" : ", ") +
             fmt::format("{} ({:.3g} of {:.3g} times)", kind.name, s.by_arithmetic, s.speedup);
    whole.bars.emplace_back(kind.name, s.speedup);
    bandwidth.bars.emplace_back(kind.name, s.by_bandwidth);
    arithmetic.bars.emplace_back(kind.name, s.by_arithmetic);
  }
  Finding finding = {
      .verdict = judge_bandwidth(shares),
      .why = fmt::format(
          "An H200 has {:.0f} times this CPU's bandwidth and {:.0f} times its float32 arithmetic. "
          "With the CPU's bandwidth it would lose, by the roofline, the speedup of: {}. It would "
          "keep much of that of: {}.",
          gpu.memory_bytes_per_s() / cpu.memory_bytes_per_s(),
          gpu.peaks.at("f32").value / cpu.peaks.at("f32").value,
          by_bandwidth.empty() ? "nothing" : by_bandwidth, by_both.empty() ? "nothing" : by_both),
      .commands = {"triptych bench bandwidth --backends cpu --device h200,a100"}};
  finding.tables.push_back(machine_table(cpu));
  finding.tables.push_back(table("A training step of unet-m, batch 8, on this CPU and an H200",
                                 {{"operator", ""},
                                  {"intensity", "FLOP/byte"},
                                  {"on this CPU", "s"},
                                  {"speedup", "x"},
                                  {"by bandwidth alone", "x"},
                                  {"by arithmetic alone", "x"},
                                  {"lost without its bandwidth", "%"}},
                                 std::move(rows)));
  finding.charts.push_back(
      bar_chart("bandwidth-speedups", "Gain of an H200 over this CPU, by operator",
                {.label = "speedup", .unit = "x", .log = true}, {whole, bandwidth, arithmetic}));
  return finding;
}

Finding examine_sram(Laboratory& laboratory) {
  const auto list = ratios(laboratory);
  std::vector<std::vector<Json>> rows;
  std::vector<Bars> bars;
  for (const auto& of : list) {
    rows.push_back({of.machine, of.level, figure(of.near, "byte/s"), figure(of.far, "byte/s"),
                    ratio(of.value(), of.near.kind, of.far.kind)});
    add_bar(bars, of.near.kind, of.machine, of.value());
  }
  rows.push_back({"survey", "SRAM", figure(kSurveySram, "byte/s", TimeKind::Recorded),
                  figure(kSurveyHbmHigh, "byte/s", TimeKind::Recorded),
                  ratio(kSurveySram / kSurveyHbmHigh, TimeKind::Recorded, TimeKind::Recorded)});
  const double a100 = ratio_named(list, "a100"), h100 = ratio_named(list, "h100"),
               h200 = ratio_named(list, "h200");
  const std::vector<double> newer = {h100, h200};
  Finding finding = {
      .verdict = judge_sram(a100, newer),
      .why = fmt::format("Shared memory over HBM: {:.1f} on an A100, which the numbers are of, "
                         "{:.1f} on an H100 and {:.1f} on an H200: HBM has grown faster since.",
                         a100, h100, h200),
      .commands = {"triptych bench bandwidth --backends cpu,systolic --device "
                   "rtx2070super,a100,h100,h200,tpu-v1"}};
  finding.tables.push_back(table("Memory on the chip and outside it",
                                 {{"machine", ""},
                                  {"level", ""},
                                  {"on the chip", "byte/s"},
                                  {"beside it", "byte/s"},
                                  {"ratio", "x"}},
                                 std::move(rows)));
  finding.charts.push_back(bar_chart("sram-ratios", "Bandwidth on the chip over that outside it",
                                     {.label = "ratio", .unit = "x", .log = true}, bars));
  return finding;
}

Finding examine_matrix_units(Laboratory&) {
  std::vector<std::vector<Json>> rows;
  Bars ordinary = {.name = "ordinary units, f32", .kind = TimeKind::Modelled, .bars = {}};
  Bars matrix = {.name = "matrix units, bf16 or f16", .kind = TimeKind::Modelled, .bars = {}};
  double over_ordinary = 0, newest_gpu = 0, newest_tpu = 0;
  for (const auto* name : {"rtx2070super", "a100", "h100", "h200", "tpu-v2", "tpu-v4", "tpu-v5e"}) {
    const auto machine = machines::find_figures(name);
    const auto f32 = machine.peaks.find("f32");
    auto half = machine.peaks.find("bf16");
    if (half == machine.peaks.end()) half = machine.peaks.find("f16");
    if (half == machine.peaks.end()) continue;
    const bool is_gpu = machine.kind == "gpu";
    const Json scalar =
        is_gpu && f32 != machine.peaks.end() ? figure(f32->second, "FLOP/s") : Json(nullptr);
    const double faster = scalar.is_null() ? 0 : half->second.value / f32->second.value;
    rows.push_back(
        {machine.description, scalar, figure(half->second, "FLOP/s"),
         scalar.is_null() ? Json(nullptr) : ratio(faster, f32->second.kind, half->second.kind)});
    if (!scalar.is_null()) ordinary.bars.emplace_back(name, f32->second.value);
    matrix.bars.emplace_back(name, half->second.value);
    if (is_gpu) {
      newest_gpu = half->second.value;
      over_ordinary = faster;
    } else {
      newest_tpu = std::max(newest_tpu, half->second.value);
    }
  }
  Finding finding = {
      .verdict = judge_matrix_units(over_ordinary, newest_gpu / newest_tpu),
      .why = fmt::format("On an H200 the matrix units compute {:.1f} times as fast as the ordinary "
                         "ones, and {:.1f} times as fast as the fastest of these TPU chips.",
                         over_ordinary, newest_gpu / newest_tpu),
      .commands = {"triptych bench bandwidth --device a100,h100,h200,tpu-v4"}};
  finding.tables.push_back(table("Peaks of a chip",
                                 {{"machine", ""},
                                  {"ordinary units, f32", "FLOP/s"},
                                  {"matrix units", "FLOP/s"},
                                  {"ratio", "x"}},
                                 std::move(rows)));
  finding.charts.push_back(bar_chart("matrix-units", "Peaks: matrix units and ordinary ones",
                                     {.label = "peak", .unit = "FLOP/s", .log = true},
                                     {ordinary, matrix}));
  return finding;
}

}  // namespace triptych::studies
