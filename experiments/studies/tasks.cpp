// Convolutions of several sizes and batches: the claims "transfer" and "batch".
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/ops/conv.h"
#include "experiments/machines/node_time.h"
#include "experiments/studies/examinations.h"
#include "experiments/studies/laboratory.h"
#include "experiments/studies/page_parts.h"
#include "experiments/studies/rules.h"

namespace triptych::studies {
namespace {

constexpr const char* kArray = "tpu-v2-core";
/// A copy's start, and a PCIe Gen3 x16 as TPU v1 has it.
constexpr const char* kHostLink = "1e-5,15e9";
constexpr const char* kGpu = "h200";

measure::BatchSweep sweep(const measure::BenchOptions& options) {
  return measure::sweep_batches(options, {.backends = "cpu,systolic", .link = kHostLink});
}

measure::BenchOptions conv_options(std::int64_t channels, std::int64_t size,
                                   const std::string& batch) {
  measure::BenchOptions options;
  options.machine.contract = Contract::Bf16;
  options.machine.machine = kArray;
  options.shape = {channels, channels, size, size};
  options.batches = batch;
  options.repeats = 15;
  return options;
}

std::string command(const measure::BenchOptions& options) {
  return fmt::format(
      "triptych bench conv --backends cpu,systolic --machine {} --shape {} --batch {} --link {}",
      kArray, fmt::join(options.shape, ","), options.batches, kHostLink);
}

/// Times of a published GPU by its roofline, and of copies over its link.
struct Modelled {
  double compute_s = 0, transfers_s = 0;
};

Modelled on_gpu(const measure::BenchOptions& options, std::int64_t batch) {
  const auto figures = machines::find_figures(kGpu);
  const machines::NodeTimes times(figures, {.format = "bf16"});
  const auto& s = options.shape;
  const double positions = static_cast<double>(batch * s[2] * s[3]);
  const double in = 4 * positions * static_cast<double>(s[0]),
               out = 4 * positions * static_cast<double>(s[1]);
  const double weights = static_cast<double>(s[0] * s[1] * options.window * options.window);
  const Cost cost = {.flops = 2 * positions * weights, .bytes = in + out + 4 * weights};
  auto link = figures.links.at("host");
  link.alpha.value = std::max(link.alpha.value, measure::host_link(kHostLink).alpha.value);
  return {times.time(Conv{}, "", cost).seconds,
          2 * link.alpha.value + (in + out) / link.beta.value};
}

}  // namespace

Finding examine_transfers(Laboratory& laboratory) {
  std::vector<std::int64_t> sizes = {8, 16, 32, 64};
  if (!laboratory.quick()) sizes.push_back(128);
  std::vector<std::vector<Json>> rows;
  std::vector<TaskSpeedup> tasks;
  Series compute = {.name = "array, without copies", .kind = TimeKind::Simulated, .points = {}};
  Series all = {.name = "array, with copies", .kind = TimeKind::Modelled, .points = {}};
  Series gpu = {.name = "H200, without copies", .kind = TimeKind::Modelled, .points = {}};
  Series gpu_all = {.name = "H200, with copies", .kind = TimeKind::Modelled, .points = {}};
  std::string lost;
  for (const auto size : sizes) {
    const auto options = conv_options(32, size, "1");
    const auto result = sweep(options);
    const auto &cpu = result.machines[0], &array = result.machines[1];
    tasks.push_back(
        {measure::speedups(array, cpu, false)[0], measure::speedups(array, cpu, true)[0]});
    const auto& task = tasks.back();
    const double cpu_s = cpu.points[0].compute().seconds;
    const auto modelled = on_gpu(options, 1);
    const auto x = static_cast<double>(size);
    const double gpu_speedup = cpu_s / modelled.compute_s,
                 gpu_both = cpu_s / (modelled.compute_s + modelled.transfers_s);
    rows.push_back({fmt::format("{0} x {0}", size), figure(cpu.points[0].compute()),
                    figure(array.points[0].compute()), figure(array.points[0].with_transfers()),
                    ratio(task.compute, TimeKind::Measured, TimeKind::Simulated),
                    ratio(task.with_transfers, TimeKind::Measured, TimeKind::Modelled),
                    ratio(gpu_speedup, TimeKind::Measured, TimeKind::Modelled),
                    ratio(gpu_both, TimeKind::Measured, TimeKind::Modelled)});
    compute.points.emplace_back(x, task.compute);
    all.points.emplace_back(x, task.with_transfers);
    gpu.points.emplace_back(x, gpu_speedup);
    gpu_all.points.emplace_back(x, gpu_both);
    if (task.compute > 1 && task.with_transfers <= 1)
      lost += fmt::format("{}{}", lost.empty() ? "" : ", ", size);
  }
  Finding finding = {
      .verdict = judge_transfers(tasks),
      .why = fmt::format("A convolution of 32 channels on {}: the copies undo the gain of images "
                         "with a side of {}. With copies it is {:.2g} times as fast as the CPU at "
                         "{} and {:.2g} times at {}.",
                         kArray, lost.empty() ? "no size" : lost, tasks.front().with_transfers,
                         sizes.front(), tasks.back().with_transfers, sizes.back()),
      .commands = {command(conv_options(32, sizes.front(), "1")),
                   command(conv_options(32, sizes.back(), "1"))}};
  finding.tables.push_back(table("One convolution, 32 > 32 channels, 3 x 3, batch 1",
                                 {{"image", ""},
                                  {"CPU", "s"},
                                  {"array", "s"},
                                  {"array with copies", "s"},
                                  {"speedup", "x"},
                                  {"with copies", "x"},
                                  {"H200, modelled", "x"},
                                  {"H200 with copies, modelled", "x"}},
                                 std::move(rows)));
  finding.charts.push_back(line_chart("transfer-speedups", "Speedup over the CPU by size",
                                      {.label = "side of the image", .unit = "1", .log = true},
                                      {.label = "speedup", .unit = "x", .log = true},
                                      {compute, all, gpu, gpu_all}));
  return finding;
}

Finding examine_batch(Laboratory& laboratory) {
  const auto options = conv_options(32, 16, laboratory.quick() ? "1..16" : "1..64");
  const auto result = sweep(options);
  const auto &cpu = result.machines[0], &array = result.machines[1];
  const auto compute = measure::speedups(array, cpu, false),
             all = measure::speedups(array, cpu, true);
  std::vector<std::vector<Json>> rows;
  Series without = {.name = "array, without copies", .kind = TimeKind::Simulated, .points = {}};
  Series with = {.name = "array, with copies", .kind = TimeKind::Modelled, .points = {}};
  Series gpu = {.name = "H200, with copies", .kind = TimeKind::Modelled, .points = {}};
  std::vector<std::int64_t> batches;
  for (std::size_t i = 0; i < compute.size(); ++i) {
    const auto batch = array.points[i].batch;
    const auto modelled = on_gpu(options, batch);
    const double cpu_s = cpu.points[i].compute().seconds;
    const double on_h200 = cpu_s / (modelled.compute_s + modelled.transfers_s);
    rows.push_back({batch, figure(cpu.points[i].compute()), figure(array.points[i].compute()),
                    figure(array.points[i].with_transfers()),
                    ratio(compute[i], TimeKind::Measured, TimeKind::Simulated),
                    ratio(all[i], TimeKind::Measured, TimeKind::Modelled),
                    ratio(on_h200, TimeKind::Measured, TimeKind::Modelled)});
    without.points.emplace_back(batch, compute[i]);
    with.points.emplace_back(batch, all[i]);
    gpu.points.emplace_back(batch, on_h200);
    batches.push_back(batch);
  }
  const auto even = measure::break_even(batches, all);
  Finding finding = {
      .verdict = judge_growth(all),
      .why = fmt::format("With copies, {} is {:.3g} times as fast as the CPU at batch 1 and {:.3g} "
                         "times at batch {} ({:.3g} and {:.3g} without); the last doubling adds "
                         "{:.0f} %. It is faster {}.",
                         kArray, all.front(), all.back(), batches.back(), compute.front(),
                         compute.back(), 100 * (all.back() / all[all.size() - 2] - 1),
                         even ? fmt::format("from batch {} on", *even) : "at no batch"),
      .commands = {command(options)}};
  finding.tables.push_back(table("One convolution, 32 > 32 channels, 3 x 3, on 16 x 16",
                                 {{"batch", "1"},
                                  {"CPU", "s"},
                                  {"array", "s"},
                                  {"array with copies", "s"},
                                  {"speedup", "x"},
                                  {"with copies", "x"},
                                  {"H200 with copies, modelled", "x"}},
                                 std::move(rows)));
  finding.charts.push_back(line_chart("batch-speedups", "Speedup over the CPU by batch (figure 3)",
                                      {.label = "batch", .unit = "1", .log = true},
                                      {.label = "speedup", .unit = "x", .log = true},
                                      {without, with, gpu}));
  return finding;
}

}  // namespace triptych::studies
