// SPDX-License-Identifier: Apache-2.0
#include "experiments/python/node_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace triptych::python {
namespace {

/// All of a configuration that parse_execution reads.
std::string devices_key(const training::ExecutionConfig& config) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", config.backend, config.fallback,
                     config.device, config.threads, to_string(config.contract), config.machine,
                     config.emulation, config.kernel, config.winograd,
                     config.simulate ? name_of(*config.simulate) : "");
}

std::string node_key(const OpPtr& op, const std::vector<NodeInput>& inputs,
                     const training::ExecutionConfig& config) {
  auto key = devices_key(config) + "|" + to_string(*op);
  for (const auto& input : inputs) key += "|" + to_string(input.spec);
  return key;
}

/// Distinct words in the order of their first use.
std::string joined(const std::vector<std::string>& words) {
  std::vector<std::string> distinct;
  for (const auto& word : words) {
    if (std::ranges::find(distinct, word) == distinct.end()) distinct.push_back(word);
  }
  return fmt::format("{}", fmt::join(distinct, " + "));
}

}  // namespace

std::map<std::string, double> LockableDevices::counters() const {
  std::map<std::string, double> total;
  for (const auto* device : set.devices()) {
    for (const auto& [name, value] : device->counters()) total[name] += value;
  }
  return total;
}

PreparedNode::PreparedNode(const OpPtr& op, const std::vector<TensorSpec>& inputs,
                           std::shared_ptr<LockableDevices> devices)
    : devices_(std::move(devices)), updated_(inputs.size(), false) {
  const std::lock_guard lock(devices_->busy);
  const auto count = static_cast<int>(inputs.size());
  for (const auto& [output, input] : op->updates(count)) {
    if (input < count) updated_[static_cast<std::size_t>(input)] = true;
  }
  Graph graph;
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    input_names_.push_back(fmt::format("input {}", i));
    const auto& name = input_names_.back();
    values.push_back(updated_[i] ? graph.add_state(name, Tensor(inputs[i]))
                                 : graph.add_input(name, inputs[i]));
  }
  const auto outputs = graph.add_node(op, values);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    output_names_.push_back(fmt::format("output {}", i));
    graph.mark_output(output_names_.back(), outputs[i]);
  }
  auto& set = devices_->set;
  states_ = std::make_unique<StateStore>(set.device());
  executor_ = std::make_unique<Executor>(
      make_plan(std::move(graph), set.devices(), set.plan_options()), *states_);
}

PreparedNode::~PreparedNode() {
  const std::lock_guard lock(devices_->busy);  // they forget their prepared data
  executor_.reset();
  states_.reset();
}

void PreparedNode::set_inputs(const std::vector<NodeInput>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!updated_[i]) {
      executor_->set_input(input_names_[i], inputs[i].spec, inputs[i].bytes);
      continue;
    }
    Tensor value(inputs[i].spec);
    std::ranges::copy(inputs[i].bytes, value.bytes().begin());
    states_->write(input_names_[i], value);
  }
}

NodeRun PreparedNode::run(const std::vector<NodeInput>& inputs) {
  const std::lock_guard lock(devices_->busy);
  NodeRun result;
  set_inputs(inputs);
  const auto before = devices_->counters();
  const auto profile = executor_->run_profiled();
  for (const auto& [name, value] : devices_->counters()) {
    const auto old = before.find(name);
    const auto rise = value - (old == before.end() ? 0 : old->second);
    if (rise != 0) result.counters[name] = rise;
  }
  std::vector<std::string> devices, kernels;
  std::map<std::size_t, Duration> times;
  for (const auto& step : profile) {
    if (step.kernel.empty()) continue;
    devices.push_back(executor_->plan().devices[step.device]->info().name);
    kernels.emplace_back(step.kernel);
    auto& time = times[step.device];
    time = {time.seconds + step.time.seconds, step.time.kind};
    if (time.seconds >= result.time.seconds) result.time = time;
  }
  result.device = joined(devices);
  result.kernel = joined(kernels);
  for (const auto& name : output_names_) result.outputs.push_back(executor_->output(name));
  return result;
}

NodeRun NodeCache::run(const OpPtr& op, const std::vector<NodeInput>& inputs,
                       const training::ExecutionConfig& config) {
  const auto key = node_key(op, inputs, config);
  auto node = find(key);
  if (!node) {
    std::vector<TensorSpec> specs;
    specs.reserve(inputs.size());
    for (const auto& input : inputs) specs.push_back(input.spec);
    node = std::make_shared<PreparedNode>(op, specs, open(config));
    insert(key, node);
  }
  return node->run(inputs);
}

std::shared_ptr<PreparedNode> NodeCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->node;
}

void NodeCache::insert(const std::string& key, const std::shared_ptr<PreparedNode>& node) {
  std::shared_ptr<PreparedNode> dropped;  // destroyed when nobody holds the lock
  const std::lock_guard lock(mutex_);
  if (by_key_.contains(key)) return;
  entries_.push_front({key, node});
  by_key_[key] = entries_.begin();
  if (entries_.size() <= capacity_) return;
  dropped = std::move(entries_.back().node);
  by_key_.erase(entries_.back().key);
  entries_.pop_back();
}

std::shared_ptr<LockableDevices> NodeCache::open(const training::ExecutionConfig& config) {
  const std::lock_guard lock(mutex_);
  auto& known = open_[devices_key(config)];
  auto devices = known.lock();
  if (!devices) known = devices = std::make_shared<LockableDevices>(config);
  return devices;
}

std::size_t NodeCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void NodeCache::clear() {
  std::list<Entry> entries;  // destroyed when nobody holds the lock
  const std::lock_guard lock(mutex_);
  by_key_.clear();
  entries.swap(entries_);
}

}  // namespace triptych::python
