// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/batch_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <system_error>
#include <tuple>

#include "backends/all_backends.h"
#include "core/base/list_text.h"
#include "core/nn/training_graph.h"
#include "core/ops/conv.h"
#include "experiments/machines/links.h"
#include "experiments/machines/node_time.h"
#include "experiments/measure/calibrate.h"
#include "experiments/training/run_options.h"

namespace triptych::measure {
namespace {

using Clock = std::chrono::steady_clock;

/// Above so many multiply-adds the RTL would take minutes: the twin, which is equal to it in every
/// cycle, takes its place.
constexpr double kMostRtlMacs = 1e9;

constexpr int kTransferRepeats = 5;

double wall_seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// Seconds of copying that much in both directions. Medians.
Transfers measure_transfers(Device& device, std::size_t bytes_in, std::size_t bytes_out) {
  const auto time = [&](std::size_t bytes, bool in) {
    const auto buffer = device.allocate(bytes);
    std::vector<std::byte> host(bytes);
    const auto copy = [&] {
      if (in) {
        device.upload(buffer->data(), host.data(), bytes);
      } else {
        device.download(host.data(), buffer->data(), bytes);
      }
    };
    return Duration{time_repeatedly(copy, wall_seconds, kTransferRepeats).median,
                    TimeKind::Measured};
  };
  return {.bytes_in = static_cast<double>(bytes_in),
          .bytes_out = static_cast<double>(bytes_out),
          .in = time(bytes_in, true),
          .out = time(bytes_out, false)};
}

Transfers over_link(double bytes_in, double bytes_out, const machines::Link& link) {
  const auto time = [&](double bytes) {
    return Duration{link.alpha.value + bytes / link.beta.value, TimeKind::Modelled};
  };
  return {
      .bytes_in = bytes_in, .bytes_out = bytes_out, .in = time(bytes_in), .out = time(bytes_out)};
}

/// Transfers of the data that the driver packs into a simulated machine's memory and reads from it,
/// over a link.
Transfers model_transfers(const std::map<std::string, double>& counters,
                          const machines::Link& link) {
  const double runs = counters.at("runs");
  return over_link(counters.at("bytes_packed") / runs, counters.at("bytes_unpacked") / runs, link);
}

/// Bytes of all inputs, and of the output. Weights are constants, which stay where they are.
std::pair<double, double> operand_bytes(const Graph& graph) {
  double in = 0;
  for (const auto input : graph.values_of(ValueKind::Input))
    in += static_cast<double>(graph.spec(input).bytes());
  return {in, static_cast<double>(graph.spec(graph.outputs().front().value).bytes())};
}

/// One machine at one batch.
SweepPoint time_point(const Problem& problem, const DeviceSet& machine, const BenchOptions& options,
                      const machines::Link& link) {
  Device& device = machine.device();
  Plan plan = problem.plan(machine);
  SweepPoint point = {.batch = problem.batch,
                      .kernel = std::string(plan.steps.front().entry->name),
                      .kind = device.info().time_kind};
  const auto [bytes_in, bytes_out] = operand_bytes(plan.graph);
  StateStore states(device);
  Executor executor(std::move(plan), states);
  fill_inputs(executor);
  if (point.kind == TimeKind::Simulated) {
    const double start = device.elapsed().seconds;
    executor.run();
    point.time = statistics_of({device.elapsed().seconds - start});
    point.simulated_by = name_of(machine.config().simulate.value_or(mmu::Simulation::Twin));
    point.transfers = model_transfers(executor.plan().steps.front().kernel->counters(), link);
    return point;
  }
  point.time = time_repeatedly([&] { executor.run(); }, [&] { return device.elapsed().seconds; },
                               options.repeats);
  if (kind_of(device) != "cpu") {
    point.transfers = measure_transfers(device, static_cast<std::size_t>(bytes_in),
                                        static_cast<std::size_t>(bytes_out));
  }
  return point;
}

/// By definition, with taps in the padding. Every pass has as many.
double conv_flops(const BenchOptions& options, std::int64_t batch) {
  double flops = 2.0 * static_cast<double>(batch * options.window * options.window);
  for (const auto size : options.shape) flops *= static_cast<double>(size);
  return flops;
}

/// Opens a backend. Where it cannot take part, says why in `swept` and returns nothing.
std::unique_ptr<DeviceSet> open(const training::ExecutionConfig& config, SweptMachine& swept) {
  const Backend& backend = find_backend(config.backend);
  if (!backend.emulates().empty()) {
    swept.reason = fmt::format("times of an emulation say nothing of {}", backend.emulates());
    swept.remedy = "bench conv on " + config.backend + " counts what its kernels do";
    return nullptr;
  }
  const auto here = backend.availability();
  if (!here.available) {
    swept.reason = here.reason;
    swept.remedy = here.remedy;
    return nullptr;
  }
  return std::make_unique<DeviceSet>(config);
}

training::ExecutionConfig config_of(const std::string& backend, const BenchOptions& options) {
  auto config = options.machine;
  config.backend = backend;
  if (options.threads != "0") {
    const auto counts = parse_numbers(options.threads);
    const auto most = training::most_of("threads");
    if (counts.size() > 1 || counts.front() > most) {
      throw InvalidArgument(
          fmt::format("the option threads {}: one number up to {} with the option backends",
                      options.threads, most));
    }
    config.threads = static_cast<int>(counts.front());
  }
  const auto names = find_backend(backend).options();
  const auto takes = [&](const char* name) { return std::ranges::count(names, name) > 0; };
  if (!takes("machine")) config.machine.clear();
  if (!takes("simulate")) config.simulate.reset();
  if (!takes("tiling")) config.tiling.clear();
  return config;
}

/// The machine's points, or why it has none.
SweptMachine sweep_machine(const std::string& backend, const BenchOptions& options,
                           const std::vector<std::int64_t>& batches, const SweepOptions& sweep) {
  const auto config = config_of(backend, options);
  SweptMachine swept = {.backend = backend};
  const auto machine = open(config, swept);
  if (machine == nullptr) return swept;
  swept.device = machine->device().info().description;
  swept.threads = machine->threads();
  const auto link = host_link(sweep.link);
  std::unique_ptr<DeviceSet> twin;
  for (const auto batch : batches) {
    const auto problem = conv_problems(options, machine->device(), batch).front();
    const bool by_rtl = config.simulate.value_or(mmu::Simulation::Twin) != mmu::Simulation::Twin;
    const bool too_large = by_rtl && conv_flops(options, batch) / 2 > kMostRtlMacs;
    if (too_large && twin == nullptr) {
      auto by_twin = config;
      by_twin.simulate = mmu::Simulation::Twin;
      twin = std::make_unique<DeviceSet>(by_twin);
    }
    swept.points.push_back(time_point(problem, too_large ? *twin : *machine, options, link));
    auto& point = swept.points.back();
    point.twin_instead = too_large;
    if (point.kind == TimeKind::Simulated) swept.link = sweep.link;
  }
  return swept;
}

/// A machine that is known by its figures: its roofline, and its link to the host.
SweptMachine model_machine(const std::string& name, const BenchOptions& options,
                           const std::vector<std::int64_t>& batches) {
  const auto figures = machines::find_figures(name);
  const auto config = config_of("cpu", options);
  const DeviceSet planner(config);
  machines::Assumptions assumptions;
  assumptions.format = machines::format_of(config.contract);
  const machines::NodeTimes times(figures, assumptions);
  SweptMachine swept = {.backend = figures.name};
  swept.device = figures.description;
  const auto link = figures.links.find("host");
  for (const auto batch : batches) {
    const auto plan = conv_problems(options, planner.device(), batch).front().plan(planner);
    const auto time = times.time(plan);
    SweepPoint point = {.batch = batch, .kernel = "roofline", .kind = time.kind};
    point.time = statistics_of({time.seconds});
    if (link != figures.links.end()) {
      const auto [in, out] = operand_bytes(plan.graph);
      point.transfers = over_link(in, out, link->second);
      swept.link = name;
    }
    swept.points.push_back(std::move(point));
  }
  return swept;
}

/// True when `bench conv` has all that this convolution says.
bool can_state(const ConvGeometry& g) {
  const auto& w = g.window;
  for (int axis = 0; axis < 2; ++axis) {
    if (w.stride[axis] != 1 || w.dilation[axis] != 1 ||
        w.pad_begin[axis] != (w.kernel[axis] - 1) / 2 || w.pad_end[axis] != w.kernel[axis] / 2)
      return false;
  }
  return g.groups == 1 && w.kernel[0] == w.kernel[1];
}

double number_in(const std::string& text, const std::string& link) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (whole && std::isfinite(value) && value >= 0) return value;
  throw InvalidArgument(
      fmt::format("the option link {}: give pcie3x16, a machine whose link to its host is known "
                  "(tpu-v1, h200), or "
                  "LATENCY,BANDWIDTH in seconds and bytes per second, as 1e-5,12e9",
                  link));
}

}  // namespace

machines::Link host_link(const std::string& text) {
  const auto parts = split_list(text);
  if (parts.size() == 2) {
    machines::Link link;
    link.alpha = {number_in(parts[0], text), TimeKind::Modelled, "as given"};
    link.beta = {number_in(parts[1], text), TimeKind::Modelled, "as given"};
    if (link.beta.value > 0) return link;
    number_in("", text);
  }
  if (text.starts_with("pcie")) return machines::link_of(text, {});
  const auto figures = machines::find_figures(text);
  const auto found = figures.links.find("host");
  if (found == figures.links.end()) number_in("", text);
  return found->second;
}

Duration SweepPoint::with_transfers() const {
  if (!transfers) return compute();
  return {compute().seconds + transfers->in.seconds + transfers->out.seconds,
          kind_of_sum(kind, transfers->in.kind)};
}

TimeKind kind_of_sum(TimeKind a, TimeKind b) { return a == b ? a : TimeKind::Modelled; }

std::optional<std::int64_t> break_even(std::span<const std::int64_t> batches,
                                       std::span<const double> speedups) {
  std::optional<std::int64_t> batch;
  for (std::size_t i = batches.size(); i-- > 0 && speedups[i] > 1;) batch = batches[i];
  return batch;
}

std::vector<double> speedups(const SweptMachine& machine, const SweptMachine& first,
                             bool with_transfers) {
  std::vector<double> list;
  for (std::size_t i = 0; i < machine.points.size(); ++i) {
    const auto& [a, b] = std::tie(first.points[i], machine.points[i]);
    list.push_back(with_transfers ? a.with_transfers().seconds / b.with_transfers().seconds
                                  : a.compute().seconds / b.compute().seconds);
  }
  return list;
}

void take_layer(const std::string& layer, BenchOptions& options) {
  const auto colon = layer.find(':');
  const auto config = model_preset(layer.substr(0, colon));
  const auto wanted = colon == std::string::npos ? "" : layer.substr(colon + 1);
  const auto graph = build_inference_graph(config, 1, config.size, config.size, std::nullopt);
  std::vector<std::string_view> names;
  for (const auto& node : graph.nodes()) {
    const auto* conv = dynamic_cast<const Conv*>(node.op.get());
    if (conv == nullptr) continue;
    names.push_back(node.name);
    if (node.name != wanted) continue;
    const auto& x = graph.spec(node.inputs[0]).shape;
    const auto geometry = conv->geometry(x, graph.spec(node.inputs[1]).shape);
    if (!can_state(geometry)) {
      throw UnsupportedError(fmt::format(
          "the option layer {}: bench conv takes square windows of stride 1 that keep the size",
          layer));
    }
    options.shape = {x[1], geometry.out_channels, x[2], x[3]};
    options.window = geometry.window.kernel[0];
    return;
  }
  throw InvalidArgument(fmt::format("the option layer {}: {} has no convolution \"{}\"; it has: {}",
                                    layer, config.name, wanted, fmt::join(names, ", ")));
}

BatchSweep sweep_batches(const BenchOptions& options, const SweepOptions& sweep) {
  auto batches = parse_numbers(options.batches);
  std::ranges::sort(batches);
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  const auto backends = split_list(sweep.backends);
  for (const auto& backend : backends) find_backend(backend);
  BatchSweep result = {.problem = conv_name(options),
                       .layer = sweep.layer,
                       .contract = std::string(to_string(options.machine.contract)),
                       .flops_per_image = conv_flops(options, 1),
                       .machines = {}};
  for (const auto& backend : backends) {
    result.machines.push_back(sweep_machine(backend, options, batches, sweep));
    const auto& first = result.machines.front();
    if (first.points.empty()) {
      throw DeviceError(
          fmt::format("{}: {}; the option backends must begin with a machine that has times here, "
                      "cpu for example",
                      first.backend, first.reason));
    }
  }
  for (const auto& name : split_list(options.device))
    if (!name.empty()) result.machines.push_back(model_machine(name, options, batches));
  return result;
}

}  // namespace triptych::measure
