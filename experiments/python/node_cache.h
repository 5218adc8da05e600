// Single operators that were run last, prepared, with the devices that they run on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/runtime/executor.h"
#include "experiments/training/device_set.h"

namespace triptych::python {

/// Opened devices. Their clock and counters are one: whoever runs on them holds `busy`.
struct LockableDevices {
  explicit LockableDevices(const training::ExecutionConfig& config) : set(config) {}
  /// Counters of all of them so far, by name.
  std::map<std::string, double> counters() const;

  training::DeviceSet set;
  std::mutex busy;
};

/// Work of one run of a single operator.
struct NodeRun {
  std::vector<Tensor> outputs;
  std::string device, kernel;  ///< those of several nodes, for a composite, joined by " + "
  Duration time;               ///< of all nodes, on the device that took longest
  std::map<std::string, double> counters;  ///< by how much the run raised them
};

/// An operand in memory of the caller's.
struct NodeInput {
  TensorSpec spec;
  std::span<const std::byte> bytes;
};

/// One operator prepared for its operands.
class PreparedNode {
 public:
  PreparedNode(const OpPtr& op, const std::vector<TensorSpec>& inputs,
               std::shared_ptr<LockableDevices> devices);
  ~PreparedNode();
  PreparedNode(const PreparedNode&) = delete;
  PreparedNode& operator=(const PreparedNode&) = delete;
  NodeRun run(const std::vector<NodeInput>& inputs);

 private:
  void set_inputs(const std::vector<NodeInput>& inputs);

  std::shared_ptr<LockableDevices> devices_;
  std::unique_ptr<StateStore> states_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::string> input_names_;
  std::vector<bool> updated_;  ///< per input: the operator writes over it, so that it is a state
  std::vector<std::string> output_names_;
};

/// The operators that were run last, with their plans, which keep their devices open. Any thread
/// may call: operators on the same devices run one after another, those on others side by side.
class NodeCache {
 public:
  explicit NodeCache(std::size_t capacity) : capacity_(capacity) {}

  /// Runs `op` once. Throws the exceptions of make_plan, open_device and Executor.
  NodeRun run(const OpPtr& op, const std::vector<NodeInput>& inputs,
              const training::ExecutionConfig& config);
  std::size_t size() const;
  std::size_t capacity() const { return capacity_; }
  /// Lets go of all plans, and so of the devices that nobody uses at the moment.
  void clear();

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<PreparedNode> node;
  };
  std::shared_ptr<PreparedNode> find(const std::string& key);
  void insert(const std::string& key, const std::shared_ptr<PreparedNode>& node);
  std::shared_ptr<LockableDevices> open(const training::ExecutionConfig& config);

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  ///< the last used one first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  std::map<std::string, std::weak_ptr<LockableDevices>> open_;  ///< by their options
};

}  // namespace triptych::python
