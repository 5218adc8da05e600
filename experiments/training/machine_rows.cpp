// Rows of the table of options. A row is a paragraph: identity, help, then unusual properties.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_option_rows.h"

namespace triptych::training::rows {
namespace {

using enum OptionGroup;
using enum ResumePolicy;
using enum RankPolicy;
using M = ExecutionConfig;
using R = ParallelConfig;

/// Does not compile with another number of members: a new member needs a row, or a reason here.
[[maybe_unused]] void require_rows(const ExecutionConfig& config) {
  [[maybe_unused]] const auto& [backend, fallback, device, threads, contract, machine, simulate,
                                tiling, kernel, choice, winograd, graph, emulation,
                                kernel_times /* stored with the tensors */, parallel] = config;
  [[maybe_unused]] const auto& [ranks, transport, interconnect, latency, bandwidth, strategy, order,
                                shards, overlap, timeout] = parallel;
}

template <auto Member>
Value of_machine(ExecutionConfig& config) {
  return value_of_member(config.*Member);
}

template <auto Member>
Value of_ranks(ExecutionConfig& config) {
  return value_of_member(config.parallel.*Member);
}

std::string contract_text(const Contract& contract) { return std::string(to_string(contract)); }
void take_contract(Contract& contract, std::string_view text) {
  contract = contract_from_string(text);
}

Value contract(ExecutionConfig& config) {
  return TextValue{&config.contract, &kTextType<Contract, contract_text, take_contract>};
}

std::string strategy_text(const parallel::Strategy& strategy) { return to_string(strategy); }

/// The mesh has an option of its own, which may come first.
void take_strategy(parallel::Strategy& strategy, std::string_view text) {
  auto mesh = std::move(strategy.mesh);
  strategy = parallel::strategy_without_mesh(text);
  strategy.mesh = std::move(mesh);
}

Value strategy(ExecutionConfig& config) {
  return TextValue{&config.parallel.strategy,
                   &kTextType<parallel::Strategy, strategy_text, take_strategy>};
}

std::string mesh_text(const parallel::Mesh& mesh) { return to_string(mesh); }
void take_mesh(parallel::Mesh& mesh, std::string_view text) {
  mesh = parallel::mesh_from_string(text);
}

Value mesh(ExecutionConfig& config) {
  return TextValue{&config.parallel.strategy.mesh,
                   &kTextType<parallel::Mesh, mesh_text, take_mesh>};
}

Value backends(CommandConfig& config) { return value_of_member(config.backends); }
Value replay(CommandConfig& config) { return value_of_member(config.replay); }

/// Another backend does not keep the array of the one before.
void leave_array(ExecutionConfig& run, const ExecutionConfig& asked) {
  if (run.backend == asked.backend) return;
  run.machine.clear();
  run.simulate.reset();
}

std::vector<RunOption> device_rows() {
  // clang-format off
  return {
      {.name = "--backend", .group = Machine, .member = of_machine<&M::backend>, .field = "backend",
       .python = "backend",
       .value = "BACKEND",
       .help = "backend to run on (see triptych devices)",
       .resume = Replaceable, .same_bits = false, .before_replacing = leave_array,
       .ranks = SameBits},
      {.name = "--backends", .group = Backends, .member = backends,
       .value = "BACKENDS",
       .help = "backends that train the same, one after another in OUT/BACKEND, such as "
          "cpu,systolic, or all",
       .comma_list = true, .conditions = {{"--backend", {}, false}}, .resume = Refused},
      {.name = "--fallback", .group = Machine, .member = of_machine<&M::fallback>,
       .field = "fallback", .python = "fallback",
       .value = "BACKEND",
       .help = "second backend for nodes that the first one cannot run",
       .resume = Replaceable, .same_bits = false, .ranks = SameBits},
      {.name = "--threads", .group = Machine, .member = of_machine<&M::threads>, .field = "threads",
       .python = "threads",
       .help = "CPU threads (0: all)",
       .limits = WholeLimits{0, 1024}, .resume = Free, .ranks = Own, .stored = false},
      {.name = "--contract", .group = Machine, .member = contract, .field = "contract",
       .python = "contract",
       .value = "CONTRACT",
       .help = "numeric contract: f32, bf16, bf16-exact or int8"},
      {.name = "--kernel", .group = Machine, .member = of_machine<&M::kernel>, .field = "kernel",
       .python = "kernel",
       .value = "KERNEL",
       .help = "kernel that every operator with it must use: own, library, or a name",
       .ranks = SameBits},
      {.name = "--choice", .group = Choice, .member = of_machine<&M::choice>, .field = "choice",
       .python = "choice",
       .help = "choice among several kernels: measured, table (by its rules), or auto (measured on "
          "a GPU)",
       .ranks = SameBits},
      {.name = "--no-winograd", .group = Choice, .member = of_machine<&M::winograd>,
       .field = "winograd", .python = "winograd",
       .help = "disable convolution by Winograd's transforms",
       .turns_off = true, .ranks = SameBits},
      {.name = "--no-graph", .group = Graph, .member = of_machine<&M::graph>, .field = "graph",
       .python = "graph",
       .help = "cuda: launch each kernel by itself, not whole segments as recorded graphs",
       .turns_off = true, .resume = Free, .ranks = Own, .stored = false},
      {.name = "--machine", .group = Simulation, .member = of_machine<&M::machine>,
       .field = "machine", .python = "machine",
       .value = "MACHINE",
       .help = "systolic: machine of triptych machine list, or a JSON file (default: mmu16)",
       .resume = Replaceable, .same_bits = false, .ranks = SameBits},
      {.name = "--simulate", .group = Simulation, .member = of_machine<&M::simulate>,
       .field = "simulate", .python = "simulate",
       .help = "systolic: simulation by the C++ model twin (default), the RTL or both",
       .help_default = false,
       .resume = Replaceable, .ranks = SameBits},
      {.name = "--tiling", .group = Tiling, .member = of_machine<&M::tiling>, .field = "tiling",
       .python = "tiling",
       .value = "NAME=N,...",
       .help = "systolic: tile sizes that replace the planner's, such as pass=64,columns=2",
       .ranks = SameBits},
      {.member = of_machine<&M::device>, .field = "device", .python = "device",
       .resume = Replaceable, .ranks = Own, .stored = false},
      {.member = of_machine<&M::emulation>, .field = "emulation", .python = "emulation",
       .resume = Replaceable, .ranks = SameBits, .stored = false},
  };
  // clang-format on
}

std::vector<RunOption> rank_rows() {
  const OptionCondition simulated = {"--transport", {"simulated"}};
  // clang-format off
  return {
      {.name = "--ranks", .group = Ranks, .member = of_ranks<&R::ranks>, .field = "ranks",
       .python = "ranks",
       .help = "number of ranks that share each batch",
       .limits = WholeLimits{1, 1024}, .resume = Replaceable, .same_bits = false},
      {.name = "--transport", .group = Ranks, .member = of_ranks<&R::transport>,
       .field = "transport", .python = "transport",
       .help = "connection of the ranks: threads, mpi (processes of mpirun or triptych launch), "
          "nccl (one GPU each), or simulated (threads with a simulated clock)",
       .resume = Replaceable, .same_bits = false},
      {.name = "--interconnect", .group = Ranks, .member = of_ranks<&R::interconnect>,
       .field = "interconnect", .python = "interconnect",
       .value = "SHAPE",
       .help = "simulated: ring, torus:4x2, switch or pcie:2 (slots to a bridge)",

       .conditions = {simulated}, .resume = Replaceable, .ranks = Own},
      {.name = "--link-latency", .group = Ranks, .member = of_ranks<&R::link_latency_s>,
       .field = "link_latency_s", .python = "link_latency",
       .value = "SECONDS",
       .help = "simulated: latency of a link in seconds, or with a unit: 1us",
       .limits = NumberLimits{0, 3600}, .unit = Unit::Seconds,
       .conditions = {simulated}, .resume = Replaceable,
       .ranks = Own},
      {.name = "--link-bandwidth", .group = Ranks, .member = of_ranks<&R::link_bytes_per_s>,
       .field = "link_bytes_per_s", .python = "link_bandwidth",
       .value = "BYTES/S",
       .help = "simulated: bytes per second of a link in each direction, or with a unit: 10GB/s",
       .limits = NumberLimits{1, 1e15}, .unit = Unit::BytesPerSecond,
       .conditions = {simulated}, .resume = Replaceable,
       .ranks = Own},
      {.name = "--strategy", .group = Ranks, .member = strategy, .field = "strategy",
       .python = "strategy",
       .value = "STRATEGY",
       .help = "strategy: dp (data parallel), zero1, zero2, zero3 (sharded states), layers or "
          "pipeline:MICRO-BATCHES[,gpipe] (stages), tp (tensor parallel), ps-sync or central "
          "(parameter server), local-sgd:STEPS (periodic average), ps-async[:BOUND] or "
          "local-sgd-async:STEPS[,BOUND] (asynchronous), ddp2d",
       .resume = Replaceable, .same_bits = false},
      {.name = "--shards", .group = Ranks, .member = of_ranks<&R::shards>, .field = "shards",
       .python = "shards",
       .help = "with --order shard-tree: shards of each batch, for the same bits on any smaller "
          "number of ranks (0: one per rank)",
       .limits = WholeLimits{0, 4096}, .conditions = {{"--order", {"shard-tree"}}},
       .resume = Replaceable, .same_bits = false},
      {.name = "--mesh", .group = Ranks, .member = mesh, .field = "mesh", .python = "mesh",
       .value = "AXIS=N,...",
       .help = "ranks by axes: dp=2,pp=2 (replicated pipelines), dp=2,tp=2, node=2,device=2 "
          "(ddp2d)",
       .help_default = false,
       .resume = Replaceable, .same_bits = false},
      {.name = "--order", .group = Ranks, .member = of_ranks<&R::order>, .field = "order",
       .python = "order",
       .help = "order of the gradient sum over the ranks",
       .resume = Replaceable, .same_bits = false},
      {.name = "--overlap", .group = Ranks, .member = of_ranks<&R::overlap>, .field = "overlap",
       .python = "overlap",
       .help = "overlap collectives with computation, on a second thread per rank",
       .resume = Free, .stored = false},
      {.name = "--comm-timeout", .group = Ranks, .member = of_ranks<&R::timeout_s>,
       .field = "timeout_s", .python = "timeout",
       .value = "SECONDS",
       .help = "seconds that the other ranks wait for a rank, or with a unit: 5min",
       .limits = NumberLimits{0.001, 1e6}, .unit = Unit::Seconds, .resume = Free,
       .ranks = Own, .stored = false},
  };
  // clang-format on
}

std::vector<RunOption> program_rows() {
  // clang-format off
  return {
      {.name = "--replay", .group = Replay, .member = replay,
       .value = "RUN",
       .help = "run with an updates.csv, which fixes the order of asynchronous updates",
       .conditions = {{"--strategy", {"ps-async*", "local-sgd-async*"}}}, .resume = Free,
       .same_bits = false},
      {.name = "--json", .group = Program, .resume = Free},
      {.name = "--overwrite", .group = Program, .resume = Free},
      {.name = "--quiet", .group = Program, .resume = Free},
      {.name = "--verbose", .group = Program, .resume = Free},
      {.name = "--color", .group = Program, .resume = Free},
      {.name = "--plugin", .group = Program, .value = "FILE", .resume = Free},
      {.name = "--max-memory", .group = Program, .value = "MIB",
       .limits = WholeLimits{1, kMaxMemoryMib},
       .unit = Unit::Mebibytes, .resume = Free},
  };
  // clang-format on
}

}  // namespace

std::vector<RunOption> machine() {
  auto rows = device_rows();
  for (auto part : {rank_rows(), program_rows()}) rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace triptych::training::rows
