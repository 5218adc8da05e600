// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/calibrate.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "core/base/error.h"
#include "experiments/measure/bandwidth.h"
#include "experiments/measure/link_timing.h"
#include "experiments/measure/reference_kernels.h"

namespace triptych::measure {
namespace {

using training::DeviceSet;
using training::ExecutionConfig;

std::string source(const Device& device, const std::string& what) {
  return fmt::format("triptych calibrate on {}: {}", device.info().description, what);
}

std::map<std::string, machines::Figure> array_peaks(const Device& device) {
  const auto& facts = device.info().facts;
  const auto rows = static_cast<double>(facts.rows.value());
  const auto columns = static_cast<double>(facts.columns.value());
  const double clock = facts.clock_mhz.value() * 1e6;
  const machines::Figure peak = {rows * columns * 2 * clock,
                                 TimeKind::Modelled,
                                 source(device, "rows, columns, 2, clock"),
                                 {rows, columns, 2, clock}};
  return {{facts.format.value(), peak}};
}

int processors() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

int threads_of(const ExecutionConfig& config) {
  return config.threads > 0 ? config.threads : processors();
}

/// Efficiencies of one of `ranks` machines that share the processors, `busy` of them at work.
machines::EfficiencyTable measure_table(const machines::MachineFigures& figures,
                                        ExecutionConfig config, int ranks, int busy, bool quick) {
  config.threads = threads_of(config) / ranks;
  machines::Assumptions assumptions;
  assumptions.format = machines::format_of(config.contract);
  assumptions.ranks = ranks;
  return {.ranks = ranks,
          .busy = busy,
          .kind = TimeKind::Measured,
          .source =
              fmt::format("triptych calibrate{}: nodes of small U-Nets, {}, {} threads each, "
                          "{} at work",
                          quick ? ", quick" : "", to_string(config.contract), config.threads, busy),
          .classes = points_of(
              measure_kernels(config, machines::NodeTimes(figures, assumptions), busy, quick))};
}

/// Times of a real machine's kernels and links.
void measure_kernels_and_links(machines::MachineFigures& figures, const ExecutionConfig& config,
                               const CalibrationOptions& options) {
  options.progress("the launch of a kernel");
  const DeviceSet machine(config);
  figures.launch =
      machines::Figure{measure_launch(machine).in_run, TimeKind::Measured,
                       source(machine.device(), "64 steps of one element, per step of a run")};
  for (const int ranks : options.ranks) {
    const int most = config.backend == "cpu" ? std::min(processors(), threads_of(config)) : 1;
    if (ranks > most) continue;
    for (int busy = 1; busy <= ranks; busy += std::max(1, ranks - 1)) {
      options.progress(fmt::format("kernels of one of {}, {} at work", ranks, busy));
      figures.efficiencies.push_back(measure_table(figures, config, ranks, busy, options.quick));
    }
  }
  if (config.backend != "cpu" || processors() < 2) return;
  options.progress("the link between two ranks");
  figures.links.emplace("rank", measure_rank_link());
}

}  // namespace

std::string kind_of(const Device& device) {
  if (device.info().time_kind == TimeKind::Simulated) return "array";
  return device.info().facts.multiprocessors ? "gpu" : "cpu";
}

std::map<std::string, machines::Figure> peaks_of(const Device& device) {
  if (const double peak = device.measure_peak(Contract::F32); peak > 0) {
    const auto figure = [&](double value, const char* what) -> machines::Figure {
      return {value, TimeKind::Measured, source(device, what)};
    };
    return {{"f32", figure(peak, "float32 multiply-adds that wait for nothing")},
            {"bf16", figure(device.measure_peak(Contract::Bf16),
                            "multiply-adds of bfloat16 operands that wait for nothing")}};
  }
  if (device.info().time_kind == TimeKind::Simulated) return array_peaks(device);
  std::map<std::string, machines::Figure> peaks;
  for (const char* format : {"f32", "bf16"}) {
    const auto peak = device.info().facts.peak_flops(format);
    if (!peak) continue;
    peaks[format] = {*peak, TimeKind::Modelled, source(device, "lanes, clock and 2 of its kind")};
  }
  if (!peaks.empty()) return peaks;
  throw UnsupportedError(fmt::format(
      "{} neither measures nor states its peak; calibrate cpu, systolic or a GPU of a known kind",
      device.info().name));
}

std::vector<machines::MemoryLevel> levels_of(Device& device) {
  std::vector<machines::MemoryLevel> levels;
  for (const auto& level : measure_bandwidths(device)) {
    const auto what =
        level.array_bytes > 0
            ? fmt::format("arrays of {:.0f} bytes together", level.array_bytes)
            : fmt::format("ports and clock of {} MHz", device.info().facts.clock_mhz.value_or(0));
    const auto figure = [&](double value) {
      return value > 0 ? std::optional(machines::Figure{value, level.kind, source(device, what)})
                       : std::nullopt;
    };
    auto capacity = figure(level.capacity_bytes);
    if (capacity) capacity->source = source(device, "as the device describes itself");
    levels.push_back({.name = level.level,
                      .capacity = std::move(capacity),
                      .copy = figure(level.copy_bytes_per_s),
                      .triad = figure(level.triad_bytes_per_s)});
  }
  return levels;
}

machines::MachineFigures calibrate(const ExecutionConfig& config,
                                   const CalibrationOptions& options) {
  const DeviceSet machine(config);
  auto& device = machine.device();
  if (device.info().facts.emulation) {
    throw UnsupportedError(fmt::format(
        "{} stands in for a GPU, and its times say nothing of one; calibrate cuda where there is "
        "a GPU, or use a published machine of experiments/machines/devices",
        config.backend));
  }
  machines::MachineFigures figures;
  figures.name = options.name;
  figures.description = device.info().description;
  figures.kind = kind_of(device);
  options.progress("peaks");
  figures.peaks = peaks_of(device);
  options.progress("the bandwidth of each level of the memory");
  figures.levels = levels_of(device);
  if (device.info().time_kind != TimeKind::Measured) return figures;
  // Other programs may have been in the way of one of the two meanwhile. Not later, because the
  // efficiency of kernels is relative to the peak.
  for (auto& [format, peak] : peaks_of(device)) {
    if (peak.value > figures.peaks.at(format).value) figures.peaks.at(format) = peak;
  }
  measure_kernels_and_links(figures, config, options);
  return figures;
}

}  // namespace triptych::measure
