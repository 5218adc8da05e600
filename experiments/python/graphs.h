// Graphs and plans as Python holds them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/runtime/executor.h"
#include "experiments/python/node_cache.h"

namespace triptych::python {

/// A value of a graph, which it keeps alive.
struct GraphValue {
  std::shared_ptr<Graph> graph;
  ValueId id;

  const TensorSpec& spec() const { return graph->spec(id); }
};

/// A plan on devices that are opened for it: plans of several threads run side by side, calls of
/// one plan one after another.
class PythonPlan {
 public:
  /// Throws the exceptions of open_device and make_plan.
  PythonPlan(Graph graph, const training::ExecutionConfig& config, bool keep_values);

  /// Sets the given inputs. The others do not change. One run, which returns its outputs. Throws
  /// InvalidArgument for an input that has never been set.
  std::vector<std::pair<std::string, Tensor>> run(
      const std::vector<std::pair<std::string, NodeInput>>& inputs);
  /// Time of a call from C++, measured over so many: inputs, a run, all outputs.
  double seconds_per_call(const std::vector<std::pair<std::string, NodeInput>>& inputs, int calls);
  /// One run with the time of each step, as a file for Perfetto.
  std::string trace(const std::vector<std::pair<std::string, NodeInput>>& inputs);
  Tensor output(const std::string& name);
  /// As Trainer::weights_sha256.
  std::string weights_sha256();
  Tensor state(const std::string& name);
  void set_state(const std::string& name, const Tensor& value);

  const Plan& plan() const { return executor_.plan(); }
  std::vector<std::string> states() const { return states_.names(); }
  std::map<std::string, double> counters();
  /// Counts of all runs, of a machine that looks on while its kernels run (a counting emulation).
  KernelCounterTable kernel_counters();

 private:
  void set_inputs(const std::vector<std::pair<std::string, NodeInput>>& inputs);

  LockableDevices devices_;
  StateStore states_;
  Executor executor_;
  std::set<std::string> missing_;  ///< inputs that were never given
};

}  // namespace triptych::python
