// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/device_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "backends/all_backends.h"
#include "core/base/console.h"
#include "core/base/list_text.h"
#include "core/io/cache_file.h"

namespace triptych::training {
namespace {

DeviceOptions device_options(const ExecutionConfig& config) {
  DeviceOptions options = {.index = config.device, .threads = config.threads};
  if (!config.machine.empty()) options.extra["machine"] = config.machine;
  if (config.simulate) options.extra["simulate"] = name_of(*config.simulate);
  if (!config.tiling.empty()) options.extra["tiling"] = config.tiling;
  if (!config.graph) options.extra["graph"] = "off";
  if (!config.emulation.empty()) options.extra["emulation"] = config.emulation;
  const auto known = find_backend(config.backend).options();
  if (config.parallel.ranks > 1 && std::ranges::count(known, "ranks") > 0)
    options.extra["ranks"] = std::to_string(config.parallel.ranks);
  return options;
}

/// Cache of devices and of the choice of kernels, kept between runs in kernels.json.
std::shared_ptr<TextCache> open_cache() {
  const auto folder = cache_folder();
  if (folder.empty()) return std::make_shared<MemoryCache>();
  return std::make_shared<CacheFile>(folder / "kernels.json", say_note);
}

bool wants_measuring(Selection choice, const Device& device) {
  return choice == Selection::Measured ||
         (choice == Selection::ByDevice && device.chooses_by_measurement());
}

/// Processor time of this thread.
double thread_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Operations of a vector unit on a node: at least one for each element of its largest operand.
double operations_of(const Graph& graph, const Node& node, const Cost& cost) {
  std::int64_t elements = 0;
  for (const auto values : {&node.inputs, &node.outputs}) {
    for (const auto value : *values) {
      elements = std::max(elements, graph.spec(value).shape.elements());
    }
  }
  return std::max(static_cast<double>(elements), cost.flops);
}

Cost cost_of(const Graph& graph, const Node& node) {
  return node.op->cost(graph.specs(node.inputs), graph.specs(node.outputs));
}

/// Bytes per second of the memory behind a simulated machine. 0: unlimited.
double dram_rate(const Device& device) {
  for (const auto& level : device.level_bandwidths())
    if (level.level == "memory") return level.copy_bytes_per_s;
  return 0;
}

}  // namespace

MeasuredChoice::MeasuredChoice(TextCache& cache) : chooser(stopwatch, cache, say_note) {}

namespace {

/// A measurement_key without its third part, the device with its threads: a run keeps its kernels
/// on another computer and with another number of threads.
std::string portable(const std::string& key) {
  constexpr std::string_view separator = " | ";
  const auto first = key.find(separator);
  const auto second = first == key.npos ? first : key.find(separator, first + separator.size());
  const auto third = second == key.npos ? second : key.find(separator, second + separator.size());
  return third == key.npos ? key : key.substr(0, second) + key.substr(third);
}

}  // namespace

RecordedTimes::RecordedTimes(TextCache& cache, std::map<std::string, std::string> known)
    : cache_(cache), texts_(std::move(known)) {}

std::optional<std::string> RecordedTimes::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto own = texts_.find(portable(key));
  if (own != texts_.end()) return own->second;
  auto found = cache_.find(key);
  if (found) texts_.emplace(portable(key), *found);
  return found;
}

void RecordedTimes::insert(const std::string& key, const std::string& text) {
  const std::lock_guard lock(mutex_);
  texts_[portable(key)] = text;
  cache_.insert(key, text);
}

std::map<std::string, std::string> RecordedTimes::texts() const {
  const std::lock_guard lock(mutex_);
  return texts_;
}

void RecordedTimes::prefer(const std::map<std::string, std::string>& texts) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, text] : texts) texts_[key] = text;
}

DeviceSet::DeviceSet(const ExecutionConfig& config) : config_(config), cache_(open_cache()) {
  auto options = device_options(config);
  options.cache = cache_;
  owned_.push_back(open_device(config.backend, options));
  if (wants_measuring(config.choice, device())) {
    times_ = std::make_unique<RecordedTimes>(*cache_, config.kernel_times);
    choice_ = std::make_unique<MeasuredChoice>(*times_);
  }
  const std::string host(find_backend(config.backend).host());
  has_host_ = !host.empty();
  if (has_host_) owned_.push_back(open_device(host, {.threads = config.threads}));
  if (!config.fallback.empty() && config.fallback != config.backend && config.fallback != host) {
    owned_.push_back(open_device(config.fallback, {.threads = config.threads}));
  }
  for (const auto& device : owned_) devices_.push_back(device.get());
}

PlanOptions DeviceSet::plan_options() const {
  PlanOptions options;
  options.placement.contract = config_.contract;
  options.placement.forced = config_.kernel;
  options.placement.transformed = config_.winograd;
  if (choice_) options.placement.chooser = &choice_->chooser;
  if (has_host_ && config_.fallback != find_backend(config_.backend).host()) {
    options.placement.host = 1;
  }
  return options;
}

std::map<std::string, std::string> DeviceSet::kernel_times() const {
  return times_ ? times_->texts() : std::map<std::string, std::string>();
}

void DeviceSet::prefer(const std::map<std::string, std::string>& kernel_times) {
  if (times_) times_->prefer(kernel_times);
}

int DeviceSet::threads() const {
  const auto threads_of = [](const Device& device) {
    return static_cast<int>(device.info().facts.threads.value_or(0));
  };
  const int own = threads_of(device());
  return own > 0 || !has_host_ ? own : threads_of(*devices_[1]);
}

std::function<double()> DeviceSet::work_clock() const {
  const auto threads = device().info().facts.threads.value_or(0);
  if (threads > 1) {
    throw InvalidArgument(
        fmt::format("the option transport simulated counts what a rank computes by the processor "
                    "time of one thread; "
                    "{0} computes with {1}; leave out the option threads {1}, or take the option "
                    "transport threads",
                    device().info().name, threads));
  }
  if (threads == 1) return thread_seconds;
  return [this] { return device().elapsed().seconds; };
}

std::optional<HostShare> DeviceSet::host_share(const Plan& plan) const {
  if (!has_host_ || device().info().time_kind != TimeKind::Simulated) return std::nullopt;
  HostShare share = {.device = devices_[1]->info().name,
                     .lanes = static_cast<double>(device().info().facts.vector_lanes.value_or(0)),
                     .clock_mhz = device().info().facts.clock_mhz.value_or(0),
                     .bytes_per_s = dram_rate(device()),
                     .time = {0, TimeKind::Modelled}};
  for (const auto& step : plan.steps) {
    if (step.device != 1 || step.entry == nullptr) continue;
    ++share.nodes;
    const auto& node = plan.graph.node(step.node);
    const auto cost = cost_of(plan.graph, node);
    share.operations += operations_of(plan.graph, node, cost);
    share.bytes += cost.bytes;
    share.time.seconds += host_time(plan, step).seconds;
  }
  return share;
}

Duration DeviceSet::whole_time(double device_s, const Plan& plan, std::int64_t runs) const {
  const auto host = host_share(plan);
  if (!host || host->nodes == 0) return {device_s, device().info().time_kind};
  return {device_s + host->time.seconds * static_cast<double>(runs), TimeKind::Modelled};
}

Duration DeviceSet::host_time(const Plan& plan, const Step& step) const {
  const auto& facts = device().info().facts;
  const auto per_second =
      static_cast<double>(facts.vector_lanes.value_or(0)) * facts.clock_mhz.value_or(0) * 1e6;
  const auto& node = plan.graph.node(step.node);
  const auto cost = cost_of(plan.graph, node);
  const auto rate = dram_rate(device());
  const auto moving = rate > 0 ? cost.bytes / rate : 0;
  return {std::max(operations_of(plan.graph, node, cost) / per_second, moving), TimeKind::Modelled};
}

std::string to_string(const HostShare& share) {
  const auto memory = share.bytes_per_s > 0 ? fmt::format(", {:.3g} bytes at {:.3g} GB/s",
                                                          share.bytes, share.bytes_per_s * 1e-9)
                                            : std::string();
  return fmt::format(
      "host: {}; {} run there, {:.3g} operations on {} lanes at {} MHz{}: {:.3g} ms ({})",
      share.device, counted(share.nodes, "node"), share.operations, share.lanes, share.clock_mhz,
      memory, share.time.seconds * 1e3, to_string(share.time.kind));
}

}  // namespace triptych::training
