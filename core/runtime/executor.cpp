// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "core/runtime/collectives.h"
#include "core/runtime/executor_memory.h"
#include "core/runtime/index_reader.h"
#include "core/runtime/plan.h"
#include "core/runtime/segment_id.h"

namespace triptych {
namespace {

// Faults of all the kernels of a plan that read computed indices.

class IndexWatch {
 public:
  /// Gives each such kernel a word in its device's memory. `plan` must outlive it.
  explicit IndexWatch(const Plan& plan);

  /// Throws InvalidArgument with the first node that had an index out of range since the last call,
  /// the index and its position. The devices must have finished. Does not allocate else.
  void check();

 private:
  struct Reader {
    NodeId node;
    std::int64_t size;
  };
  /// The readers of one device. words[i] is that of readers[i].
  struct Words {
    Device* device;
    std::vector<Reader> readers;
    std::vector<std::uint64_t> host;
    std::unique_ptr<DeviceBuffer> words;
  };

  const Plan& plan_;
  std::vector<Words> devices_;  ///< those with readers
};

IndexWatch::IndexWatch(const Plan& plan) : plan_(plan) {
  for (std::size_t d = 0; d < plan.devices.size(); ++d) {
    Words words{.device = plan.devices[d]};
    std::vector<IndexReader*> kernels;
    for (const auto& step : plan.steps) {
      auto* kernel = dynamic_cast<IndexReader*>(step.kernel.get());
      if (step.device != d || kernel == nullptr || kernel->unchecked_size() == 0) continue;
      words.readers.push_back({step.node, kernel->unchecked_size()});
      kernels.push_back(kernel);
    }
    if (kernels.empty()) continue;
    words.host.assign(kernels.size(), 0);
    words.words = words.device->allocate(std::as_bytes(std::span(words.host)).size());
    auto* first = reinterpret_cast<std::uint64_t*>(words.words->data());
    for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i]->report_to(first + i);
    devices_.push_back(std::move(words));
  }
}

void IndexWatch::check() {
  for (auto& [device, readers, host, words] : devices_) {
    const auto bytes = std::as_writable_bytes(std::span(host));
    device->download(bytes.data(), words->data(), bytes.size());
    const auto found = std::ranges::find_if(host, [](std::uint64_t word) { return word != 0; });
    if (found == host.end()) continue;
    const auto& [id, size] = readers[static_cast<std::size_t>(found - host.begin())];
    const auto fault = IndexFault::of(*found);
    std::ranges::fill(host, 0);
    device->upload(words->data(), bytes.data(), bytes.size());
    const auto& node = plan_.graph.node(id);
    throw InvalidArgument(
        fmt::format("node \"{}\" ({}): {}", node.name, node.op->name(), to_string(fault, size)));
  }
}

/// Steps [first, last) on one device. Crossings happen before its first step and write-backs after
/// its last one only.
struct Segment {
  std::size_t device = 0;
  bool collective = false;  ///< one step, on the host
  std::size_t first = 0;
  std::size_t last = 0;
  int id = 0;
  std::function<void(Stream*)> launch;
  std::size_t collectives_needed = 0;
};

struct StepPointers {
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* scratch = nullptr;
};

bool all_finite(const Tensor& tensor) {
  return visit_dtype(tensor.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (!is_floating(dtype_of<T>)) return true;
    return std::ranges::all_of(tensor.as<T>(),
                               [](T value) { return std::isfinite(static_cast<float>(value)); });
  });
}

[[noreturn]] void throw_unknown(std::string_view what, std::string_view name,
                                const std::vector<std::string_view>& names) {
  throw InvalidArgument(
      fmt::format("the graph has no {0} \"{1}\"; its {0}s: {2}", what, name,
                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

}  // namespace

struct Executor::Impl {
  Impl(Plan the_plan, StateStore& the_states, const ExecutorMemory* lender)
      : plan(std::move(the_plan)),
        states(the_states),
        memory(plan, the_states, lender),
        indices(plan) {
    find_pointers();
    segments = make_segments(false);
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() {
    for (const auto* list : {&segments, &single_steps}) {
      for (const auto& segment : *list) plan.devices[segment.device]->release(segment.id);
    }
  }

  void find_pointers() {
    for (const auto& step : plan.steps) {
      auto& list = pointers.emplace_back();
      if (!step.kernel) continue;
      const auto& node = plan.graph.node(step.node);
      for (const auto value : node.inputs)
        list.inputs.push_back(memory.address(step.device, value));
      for (const auto value : node.outputs) {
        list.outputs.push_back(memory.address(step.device, value));
      }
      list.scratch = memory.scratch(step.device);
    }
  }

  /// The longest runs of steps on one device without a copy between them, or each step alone.
  std::vector<Segment> make_segments(bool alone) {
    std::vector<Segment> list;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const auto& step = plan.steps[i];
      if (!step.kernel) continue;
      const bool collective = plan.graph.node(step.node).op->collective();
      const bool joins = !alone && !collective && !list.empty() && !list.back().collective &&
                         list.back().device == step.device && step.crossings.empty() &&
                         step.collectives_needed <= list.back().collectives_needed &&
                         plan.steps[list.back().last - 1].write_backs.empty();
      if (!joins) {
        list.push_back({.device = step.device,
                        .collective = collective,
                        .first = i,
                        .id = next_segment_id(),
                        .collectives_needed = step.collectives_needed});
      }
      list.back().last = i + 1;
    }
    for (auto& segment : list) {
      segment.launch = [this, first = segment.first, last = segment.last](Stream* stream) {
        for (auto i = first; i < last; ++i) {
          launch_step(i, stream);
          if (plan.options.placement.collectives) plan.options.placement.collectives->computes();
        }
      };
    }
    return list;
  }

  void launch_step(std::size_t index, Stream* stream) {
    const auto& step = plan.steps[index];
    if (!step.kernel) return;
    const auto& own = pointers[index];
    try {
      step.kernel->run({own.inputs, own.outputs, own.scratch, stream});
    } catch (const CommError&) {
      throw;  // names the ranks and their actions
    } catch (const NumericError& error) {
      std::throw_with_nested(NumericError(describe(step, error)));
    } catch (const std::exception& error) {
      std::throw_with_nested(DeviceError(describe(step, error)));
    }
  }

  std::string describe(const Step& step, const std::exception& error) const {
    const auto& node = plan.graph.node(step.node);
    return fmt::format("node \"{}\" ({}): {}", node.name, node.op->name(), error.what());
  }

  void copy_in(const Segment& segment) {
    await_collectives(segment.collectives_needed);
    memory.copy(plan.steps[segment.first].crossings);
  }

  /// Until so many of this run's have finished.
  void await_collectives(std::size_t count) {
    if (count <= collectives_finished) return;
    plan.options.placement.collectives->finish(collectives_started - count);
    collectives_finished = count;
  }
  void begin_run() { collectives_started = collectives_finished = 0; }
  void end_run() {
    await_collectives(collectives_started);
    synchronize();
    indices.check();
  }

  void execute(const Segment& segment) {
    auto& device = *plan.devices[segment.device];
    if (segment.collective) {
      device.synchronize();
      segment.launch(nullptr);
      ++collectives_started;
    } else {
      device.submit(segment.id, segment.launch);
    }
    memory.copy(plan.steps[segment.last - 1].write_backs);
  }

  void synchronize() {
    for (auto* device : plan.devices) device->synchronize();
  }

  const std::vector<Segment>& steps_alone() {
    if (single_steps.empty()) single_steps = make_segments(true);
    return single_steps;
  }

  ValueId input(std::string_view name) const {
    std::vector<std::string_view> names;
    for (const auto id : plan.graph.values_of(ValueKind::Input)) {
      names.push_back(plan.graph.value(id).name);
      if (names.back() == name) return id;
    }
    throw_unknown("input", name, names);
  }

  /// The value behind the name of an output, or with keep_values behind any name.
  ValueId readable(std::string_view name) const {
    std::vector<std::string_view> names;
    for (const auto& output : plan.graph.outputs()) {
      if (output.name == name) return output.value;
      names.push_back(output.name);
    }
    if (plan.options.keep_values) return plan.graph.find(name);
    throw_unknown("output", name, names);
  }

  Plan plan;
  StateStore& states;
  ExecutorMemory memory;
  IndexWatch indices;
  std::vector<StepPointers> pointers;
  std::vector<Segment> segments;
  std::vector<Segment> single_steps;                              ///< made when first needed
  std::size_t collectives_started = 0, collectives_finished = 0;  ///< in this run
};

Executor::Executor(Plan plan, StateStore& states, const Executor* lender)
    : impl_(std::make_unique<Impl>(std::move(plan), states,
                                   lender ? &lender->impl_->memory : nullptr)) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;

const Plan& Executor::plan() const { return impl_->plan; }
StateStore& Executor::states() const { return impl_->states; }

void Executor::set_input(std::string_view name, const Tensor& value) {
  set_input(name, value.spec(), value.bytes());
}

void Executor::set_input(std::string_view name, const TensorSpec& spec,
                         std::span<const std::byte> value) {
  const auto id = impl_->input(name);
  const auto& wanted = impl_->plan.graph.spec(id);
  if (spec != wanted) {
    throw InvalidArgument(
        fmt::format("the input \"{}\" is {}, got {}", name, to_string(wanted), to_string(spec)));
  }
  if (value.size() != spec.bytes()) {
    throw InvalidArgument(
        fmt::format("the input \"{}\" has {} bytes, got {}", name, spec.bytes(), value.size()));
  }
  impl_->memory.upload(id, value);
}

void Executor::run() {
  impl_->begin_run();
  for (const auto& segment : impl_->segments) {
    impl_->copy_in(segment);
    impl_->execute(segment);
  }
  impl_->end_run();
}

std::vector<StepProfile> Executor::run_profiled(
    const std::function<void(const StepProfile&)>& on_step) {
  const auto& plan = impl_->plan;
  impl_->begin_run();
  impl_->synchronize();
  std::vector<double> begin;
  for (auto* device : plan.devices) begin.push_back(device->elapsed().seconds);
  const auto now = [&](std::size_t device) {
    auto time = plan.devices[device]->elapsed();
    time.seconds -= begin[device];
    return time;
  };
  std::vector<StepProfile> profile;
  auto segment = impl_->steps_alone().begin();
  for (const auto& step : plan.steps) {
    auto& entry = profile.emplace_back();
    entry.node = step.node;
    entry.device = step.device;
    if (step.kernel) impl_->copy_in(*segment);
    entry.start = entry.time = now(step.device);
    if (step.kernel) {
      entry.kernel = step.entry->name;
      impl_->execute(*segment++);
      impl_->synchronize();
      entry.time = now(step.device);
    }
    entry.time.seconds -= entry.start.seconds;
    if (on_step) on_step(entry);
  }
  impl_->end_run();
  return profile;
}

std::optional<NodeId> Executor::run_until_not_finite() {
  const auto& plan = impl_->plan;
  impl_->begin_run();
  for (const auto& segment : impl_->steps_alone()) {
    impl_->copy_in(segment);
    impl_->execute(segment);
    impl_->await_collectives(impl_->collectives_started);
    if (!plan.steps[segment.first].keeps_output.empty()) continue;  // not in memory
    const auto& node = plan.graph.node(plan.steps[segment.first].node);
    for (const auto output : node.outputs) {
      if (!is_floating(plan.graph.spec(output).dtype)) continue;
      if (all_finite(impl_->memory.download(segment.device, output))) continue;
      impl_->end_run();  // an index out of range is the earlier fault
      return node.id;
    }
  }
  impl_->end_run();
  return std::nullopt;
}

Tensor Executor::output(std::string_view name) const {
  const auto value = impl_->readable(name);
  return impl_->memory.download(impl_->plan.homes[value.index()], value);
}

std::size_t Executor::allocated_bytes() const {
  const auto& plan = impl_->plan;
  std::size_t total = 0;
  for (std::size_t d = 0; d < plan.devices.size(); ++d) {
    total += plan.total_bytes(d) - plan.state_bytes[d];
  }
  return total;
}

}  // namespace triptych
