// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "experiments/training/device_set.h"

namespace triptych::training {
namespace {

using enum ResumePolicy;

template <auto Member>
void config(RunConfig& run, const RunConfig& asked) {
  run.*Member = asked.*Member;
}

template <auto Member>
void data(RunConfig& run, const RunConfig& asked) {
  run.data.*Member = asked.data.*Member;
}

template <auto Member>
void machine(ExecutionConfig& run, const ExecutionConfig& asked) {
  run.*Member = asked.*Member;
}

template <auto Member>
void ranks(ExecutionConfig& run, const ExecutionConfig& asked) {
  run.parallel.*Member = asked.parallel.*Member;
}

/// Each of the two limits counts alone unless both are given.
void length(RunConfig& run, const RunConfig& asked) {
  run.epochs = asked.epochs;
  run.steps = asked.steps;
}

/// Another backend does not keep the array configuration of the one before.
void backend(ExecutionConfig& run, const ExecutionConfig& asked) {
  if (run.backend == asked.backend) return;
  run.backend = asked.backend;
  run.machine.clear();
  run.simulate.reset();
}

void mesh(ExecutionConfig& run, const ExecutionConfig& asked) {
  run.parallel.strategy.mesh = asked.parallel.strategy.mesh;
}

std::string contract_text(const ExecutionConfig& machine) {
  return std::string(to_string(machine.contract));
}

std::string kernel_text(const ExecutionConfig& machine) {
  return machine.kernel.empty() ? "unset" : machine.kernel;
}

std::string choice_text(const ExecutionConfig& machine) {
  return std::string(name_of(machine.choice));
}

std::string winograd_text(const ExecutionConfig& machine) {
  return machine.winograd ? "off" : "on";
}

using R = ParallelConfig;
using M = ExecutionConfig;
using C = RunConfig;
using D = DataConfig;

// In the order of application: a backend before its array, a strategy before its mesh.
const RunOption kOptions[] = {
    {.name = "--model"},
    {.name = "--base"},
    {.name = "--depth"},
    {.name = "--size"},
    {.name = "--in-channels"},
    {.name = "--classes"},
    {.name = "--freeze"},

    {"--data", Replaceable, true, "data.source", true, data<&D::source>},
    {"--images", Replaceable, true, "data.images", true, data<&D::images>},
    {"--masks", Replaceable, true, "data.masks", true, data<&D::masks>},
    {"--list", Replaceable, true, "data.list", true, data<&D::list>},
    {"--input", Replaceable, true, "data.inputs", true},  // needs the network: TrainOptions
    {"--target", Replaceable, true, "data.target", true, data<&D::target>},
    {"--cache", Replaceable, true, "data.cache_mib", true, data<&D::cache_mib>},
    {.name = "--mask-pattern"},
    {.name = "--train-split"},
    {.name = "--validation-split"},
    {.name = "--validation"},
    {.name = "--labels"},
    {.name = "--ignore-label"},
    {.name = "--class-names"},
    {.name = "--normalize"},
    {.name = "--invert"},
    {.name = "--synthetic-images"},

    {.name = "--optimizer"},
    {.name = "--lr"},
    {.name = "--schedule"},
    {.name = "--schedule-steps"},
    {.name = "--warmup"},
    {.name = "--momentum"},
    {.name = "--weight-decay"},
    {.name = "--loss"},
    {.name = "--class-weights"},
    {.name = "--border-weight"},
    {.name = "--border-sigma"},
    {.name = "--augmentation"},
    {.name = "--drawing"},
    {.name = "--batch"},
    {.name = "--accumulate"},
    {.name = "--seed"},

    {"--epochs", Replaceable, true, "epochs", false, length},
    {"--steps", Replaceable, true, "steps", false, length},
    {.name = "--steps-per-epoch"},
    {.name = "--tile"},
    {.name = "--margin"},
    {.name = "--statistics-batches"},
    {.name = "--mask-pictures", .policy = Free},
    {"--init", Refused, true, "init", true},
    {.name = "--init-names", .policy = Refused},
    {.name = "--init-skip", .policy = Refused},
    {.name = "--keep"},
    {"--patience", Replaceable, true, "patience", false, config<&C::patience>},

    {.name = "--out", .policy = Refused},
    {.name = "--overwrite", .policy = Free},
    {.name = "--resume", .policy = Free},
    {.name = "--previous", .policy = Free},
    {"--checkpoint-every", Replaceable, true, "checkpoint_every", false,
     config<&C::checkpoint_every>},
    {"--memory-limit", Replaceable, true, "memory_limit_mib", false, config<&C::memory_limit_mib>},

    {.name = "--contract", .text = contract_text},
    {.name = "--kernel", .text = kernel_text},
    {.name = "--choice", .text = choice_text},
    {.name = "--no-winograd", .text = winograd_text},
    {"--backend", Replaceable, false, {}, false, {}, backend},
    {"--fallback", Replaceable, false, {}, false, {}, machine<&M::fallback>},
    {"--machine", Replaceable, false, {}, false, {}, machine<&M::machine>},
    {"--simulate", Replaceable, true, {}, false, {}, machine<&M::simulate>},
    {"--threads", Free, true, {}, true, {}, machine<&M::threads>},
    {"--no-graph", Free, true, {}, true, {}, machine<&M::graph>},

    {"--ranks", Replaceable, false, {}, false, {}, ranks<&R::ranks>},
    {"--transport", Replaceable, false, {}, false, {}, ranks<&R::transport>},
    {"--interconnect", Replaceable, true, {}, false, {}, ranks<&R::interconnect>},
    {"--link-latency", Replaceable, true, {}, false, {}, ranks<&R::link_latency_s>},
    {"--link-bandwidth", Replaceable, true, {}, false, {}, ranks<&R::link_bytes_per_s>},
    {"--parallel", Replaceable, false, {}, false, {}, ranks<&R::strategy>},
    {"--mesh", Replaceable, false, {}, false, {}, mesh},
    {"--order", Replaceable, false, {}, false, {}, ranks<&R::order>},
    {"--shards", Replaceable, false, {}, false, {}, ranks<&R::shards>},
    {"--overlap", Free, true, {}, false, {}, ranks<&R::overlap>},
    {"--comm-timeout", Free, true, {}, true, {}, ranks<&R::timeout_s>},
    {.name = "--replay", .policy = Free, .same_bits = false},

    {.name = "--json", .policy = Free},
    {.name = "--quiet", .policy = Free},
    {.name = "--verbose", .policy = Free},
    {.name = "--color", .policy = Free},
    {.name = "--max-memory", .policy = Free},
};

bool is_given(const ResumeOptions& options, const RunOption& option) {
  return std::ranges::find(options.given, option.name) != options.given.end();
}

void require_taken(const RunOption& option, const ExecutionConfig& run,
                   const ExecutionConfig& asked) {
  if (option.policy != Stored && option.policy != Refused) return;
  std::string values;
  if (option.text != nullptr) {
    const auto own = option.text(run), other = option.text(asked);
    if (own == other) return;
    values = fmt::format(" from {} to {}", own, other);
  }
  throw InvalidArgument(fmt::format(
      "the option {} cannot change{} in a resumed run; leave it out, or start a new run",
      option.name.substr(2), values));
}

}  // namespace

std::span<const RunOption> run_options() { return kOptions; }

const RunOption* find_run_option(std::string_view name) {
  const auto* found = std::ranges::find(kOptions, name, &RunOption::name);
  return found == std::end(kOptions) ? nullptr : found;
}

void apply_on_resume(const ResumeOptions& options, RunConfig& run, ExecutionConfig& machine) {
  for (const auto& name : options.given) TRIPTYCH_ASSERT(find_run_option(name) != nullptr);
  for (const auto& option : kOptions) {
    if (!is_given(options, option)) continue;
    require_taken(option, machine, options.machine);
    if (option.take_config != nullptr) option.take_config(run, options.config);
  }
  apply_on_resume(options, machine);
}

void apply_on_resume(const ResumeOptions& options, ExecutionConfig& machine) {
  for (const auto& option : kOptions) {
    if (option.text != nullptr && is_given(options, option))
      require_taken(option, machine, options.machine);
    const bool taken = option.policy == Free || is_given(options, option);
    if (taken && option.take_machine != nullptr) option.take_machine(machine, options.machine);
  }
}

void require_same_numerics(const ExecutionConfig& run, const ExecutionConfig& other) {
  for (const auto& option : kOptions)
    if (option.text != nullptr) require_taken(option, run, other);
}

bool may_change(std::string_view field) {
  const auto* found = std::ranges::find(kOptions, field, &RunOption::field);
  return !field.empty() && found != std::end(kOptions) && found->policy == Replaceable;
}

bool is_per_process(std::string_view field) {
  return std::ranges::any_of(kOptions, [&](const RunOption& option) {
    if (!option.per_process || option.field.empty()) return false;
    return field == option.field ||
           (field.starts_with(option.field) && field.substr(option.field.size()).starts_with('.'));
  });
}

}  // namespace triptych::training
