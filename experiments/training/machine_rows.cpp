// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_option_rows.h"

namespace triptych::training::rows {
namespace {

using enum OptionGroup;
using enum ResumePolicy;
using enum RankPolicy;
using enum Storage;
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

Value replay(CommandConfig& config) { return value_of_member(config.replay); }

/// Another backend does not keep the array of the one before.
void leave_array(ExecutionConfig& run, const ExecutionConfig& asked) {
  if (run.backend == asked.backend) return;
  run.machine.clear();
  run.simulate.reset();
}

std::vector<RunOption> device_rows() {
  return {
      {.name = "--backend",
       .help = "the machine to run on (see triptych devices)",
       .group = Machine,
       .member = of_machine<&M::backend>,
       .resume = Replaceable,
       .same_bits = false,
       .before_replacing = leave_array,
       .ranks = SameBits,
       .field = "backend",
       .python = "backend"},
      {.name = "--fallback",
       .help = "another machine for nodes the backend cannot run",
       .group = Machine,
       .member = of_machine<&M::fallback>,
       .resume = Replaceable,
       .same_bits = false,
       .ranks = SameBits,
       .field = "fallback",
       .python = "fallback"},
      {.name = "--threads",
       .help = "CPU threads; 0: as many as there are",
       .group = Machine,
       .member = of_machine<&M::threads>,
       .limits = WholeLimits{0, 1024},
       .resume = Free,
       .ranks = Own,
       .field = "threads",
       .storage = Never,
       .python = "threads"},
      {.name = "--contract",
       .help = "f32, bf16, bf16-exact or int8",
       .group = Machine,
       .member = contract,
       .field = "contract",
       .python = "contract"},
      {.name = "--kernel",
       .help = "own, library, or a kernel's name: forced where an operator has it",
       .group = Machine,
       .member = of_machine<&M::kernel>,
       .ranks = SameBits,
       .field = "kernel",
       .storage = Later,
       .python = "kernel"},
      {.name = "--choice",
       .help = "among several kernels: measured, by the table's rules, or auto: measured on a GPU",
       .group = Choice,
       .member = of_machine<&M::choice>,
       .ranks = SameBits,
       .field = "choice",
       .storage = Later,
       .python = "choice"},
      {.name = "--no-winograd",
       .help = "no convolution by Winograd's transforms",
       .group = Choice,
       .member = of_machine<&M::winograd>,
       .turns_off = true,
       .ranks = SameBits,
       .field = "winograd",
       .storage = Later,
       .python = "winograd"},
      {.name = "--no-graph",
       .help = "cuda: launch each kernel by itself, not whole segments as recorded graphs",
       .group = Graph,
       .member = of_machine<&M::graph>,
       .turns_off = true,
       .resume = Free,
       .ranks = Own,
       .field = "graph",
       .storage = Never,
       .python = "graph"},
      {.name = "--machine",
       .help = "systolic: mmu16 (default), another of triptych devices, or a JSON file",
       .group = Simulation,
       .member = of_machine<&M::machine>,
       .resume = Replaceable,
       .same_bits = false,
       .ranks = SameBits,
       .field = "machine",
       .storage = Later,
       .python = "machine"},
      {.name = "--simulate",
       .help = "systolic: by the C++ twin (default), the RTL or both",
       .group = Simulation,
       .member = of_machine<&M::simulate>,
       .help_default = false,
       .resume = Replaceable,
       .ranks = SameBits,
       .field = "simulate",
       .storage = Later,
       .python = "simulate"},
      {.name = "--tiling",
       .help = "systolic: sizes of tiles instead of the planner's: pass=64,columns=2",
       .group = Tiling,
       .member = of_machine<&M::tiling>,
       .ranks = SameBits,
       .field = "tiling",
       .storage = Later,
       .python = "tiling"},
      {.member = of_machine<&M::device>,
       .resume = Replaceable,
       .ranks = Own,
       .field = "device",
       .storage = Never,
       .python = "device"},
      {.member = of_machine<&M::emulation>,
       .resume = Replaceable,
       .ranks = SameBits,
       .field = "emulation",
       .storage = Never,
       .python = "emulation"},
  };
}

std::vector<RunOption> rank_rows() {
  const OptionCondition simulated = {"--transport", {"simulated"}};
  return {
      {.name = "--ranks",
       .help = "machines that share each batch",
       .group = Ranks,
       .member = of_ranks<&R::ranks>,
       .limits = WholeLimits{1, 1024},
       .resume = Replaceable,
       .same_bits = false,
       .field = "ranks",
       .storage = Later,
       .python = "ranks"},
      {.name = "--transport",
       .help = "what connects them: threads, mpi (processes that mpirun or triptych launch "
               "started), nccl (a GPU each), or simulated (threads with a simulated clock)",
       .group = Ranks,
       .member = of_ranks<&R::transport>,
       .resume = Replaceable,
       .same_bits = false,
       .field = "transport",
       .storage = Later,
       .python = "transport"},
      {.name = "--interconnect",
       .help = "simulated: ring, torus:4x2, switch or pcie:2 (slots to a bridge)",
       .group = Ranks,
       .member = of_ranks<&R::interconnect>,
       .conditions = {simulated},
       .resume = Replaceable,
       .ranks = Own,
       .field = "interconnect",
       .storage = Later,
       .python = "interconnect"},
      {.name = "--link-latency",
       .help = "simulated: seconds of a link",
       .group = Ranks,
       .member = of_ranks<&R::link_latency_s>,
       .limits = NumberLimits{0, 3600},
       .conditions = {simulated},
       .resume = Replaceable,
       .ranks = Own,
       .field = "link_latency_s",
       .storage = Later,
       .python = "link_latency"},
      {.name = "--link-bandwidth",
       .help = "simulated: bytes per second of a link, each way",
       .group = Ranks,
       .member = of_ranks<&R::link_bytes_per_s>,
       .limits = NumberLimits{1, 1e15},
       .conditions = {simulated},
       .resume = Replaceable,
       .ranks = Own,
       .field = "link_bytes_per_s",
       .storage = Later,
       .python = "link_bandwidth"},
      {.name = "--parallel",
       .help = "how they share it: dp (data parallel), zero1, zero2, zero3 (its states sharded), "
               "layers or pipeline:MICRO-BATCHES[,gpipe] (the model cut into stages), tp (each "
               "layer cut), ps-sync or central (one has the parameters), local-sgd:STEPS (averaged "
               "now and then), ps-async[:BOUND] or local-sgd-async:STEPS[,BOUND] (each rank at its "
               "own pace), ddp2d",
       .group = Ranks,
       .member = strategy,
       .resume = Replaceable,
       .same_bits = false,
       .field = "strategy",
       .storage = Later,
       .python = "parallel"},
      {.name = "--shards",
       .help = "with --order shard-tree: cut each batch into so many shards, for the same bits on "
               "any number of ranks up to it; 0: one per rank",
       .group = Ranks,
       .member = of_ranks<&R::shards>,
       .limits = WholeLimits{0, 4096},
       .conditions = {{"--order", {"shard-tree"}}},
       .resume = Replaceable,
       .same_bits = false,
       .field = "shards",
       .storage = Later,
       .python = "shards"},
      {.name = "--mesh",
       .help =
           "ranks by axes: dp=2,pp=2 (replicated pipelines), dp=2,tp=2, node=2,device=2 (ddp2d)",
       .group = Ranks,
       .member = mesh,
       .help_default = false,
       .resume = Replaceable,
       .same_bits = false,
       .field = "mesh",
       .storage = Later,
       .python = "mesh"},
      {.name = "--order",
       .help = "how the ranks' gradients are added",
       .group = Ranks,
       .member = of_ranks<&R::order>,
       .resume = Replaceable,
       .same_bits = false,
       .field = "order",
       .storage = Later,
       .python = "order"},
      {.name = "--overlap",
       .help = "collectives go on beside the computation, on a thread of their own",
       .group = Ranks,
       .member = of_ranks<&R::overlap>,
       .resume = Free,
       .field = "overlap",
       .storage = Never,
       .python = "overlap"},
      {.name = "--comm-timeout",
       .help = "seconds that a rank may keep the others waiting",
       .group = Ranks,
       .member = of_ranks<&R::timeout_s>,
       .limits = NumberLimits{0.001, 1e6},
       .resume = Free,
       .ranks = Own,
       .field = "timeout_s",
       .storage = Never,
       .python = "timeout"},
  };
}

std::vector<RunOption> program_rows() {
  return {
      {.name = "--replay",
       .help = "a run whose updates.csv says in which order asynchronous ranks update",
       .group = Replay,
       .member = replay,
       .conditions = {{"--parallel", {"ps-async*", "local-sgd-async*"}}},
       .resume = Free,
       .same_bits = false},
      {.name = "--json", .group = Program, .resume = Free},
      {.name = "--overwrite", .group = Program, .resume = Free},
      {.name = "--quiet", .group = Program, .resume = Free},
      {.name = "--verbose", .group = Program, .resume = Free},
      {.name = "--color", .group = Program, .resume = Free},
      {.name = "--max-memory",
       .group = Program,
       .limits = WholeLimits{1, kMaxMemoryMib},
       .resume = Free},
  };
}

}  // namespace

std::vector<RunOption> machine() {
  auto rows = device_rows();
  for (auto part : {rank_rows(), program_rows()}) rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace triptych::training::rows
