// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/parallel_options.h"

#include <algorithm>
#include <string>
#include <thread>

#include "parallel/comm/mpi_session.h"

namespace triptych::app {

using namespace training::limits;

namespace {

void add_strategy_option(Command& command, parallel::Strategy& strategy) {
  command
      .add_text(
          "--parallel",
          [&strategy](const std::string& text) {
            auto mesh = std::move(strategy.mesh);  // of an option of its own
            strategy = parallel::strategy_without_mesh(text);
            strategy.mesh = std::move(mesh);
          },
          [&strategy] { return to_string(strategy); },
          "how they share it: dp (data parallel), zero1, zero2, zero3 (its states sharded), "
          "layers or pipeline:MICRO-BATCHES[,gpipe] (the model cut into stages), tp (each layer "
          "cut), ps-sync or central (one has the parameters), local-sgd:STEPS (averaged now and "
          "then), ps-async[:BOUND] or local-sgd-async:STEPS[,BOUND] (each rank at its own pace), "
          "ddp2d")
      .capture_default_str();
}

void add_mesh_option(Command& command, parallel::Mesh& mesh) {
  command.add_text(
      "--mesh", [&mesh](const std::string& text) { mesh = parallel::mesh_from_string(text); },
      [&mesh] { return to_string(mesh); },
      "ranks by axes: dp=2,pp=2 (replicated pipelines), dp=2,tp=2, node=2,device=2 (ddp2d)");
}

}  // namespace

void add_parallel_options(Command& command, training::ParallelConfig& parallel) {
  command.add_option("--ranks", parallel.ranks, "machines that share each batch")
      .check(within(kRanks))
      .capture_default_str();
  command
      .add_option("--transport", parallel.transport,
                  "what connects them: threads, mpi (processes that mpirun or triptych launch "
                  "started), nccl (a GPU each), or simulated (threads with a simulated clock)")
      .capture_default_str();
  command
      .add_option("--interconnect", parallel.interconnect,
                  "simulated: ring, torus:4x2, switch or pcie:2 (slots to a bridge)")
      .only_with("--transport", {"simulated"})
      .capture_default_str();
  command.add_option("--link-latency", parallel.link_latency_s, "simulated: seconds of a link")
      .check(within(kLinkLatency))
      .only_with("--transport", {"simulated"})
      .capture_default_str();
  command
      .add_option("--link-bandwidth", parallel.link_bytes_per_s,
                  "simulated: bytes per second of a link, each way")
      .check(within(kLinkBandwidth))
      .only_with("--transport", {"simulated"})
      .capture_default_str();
  add_strategy_option(command, parallel.strategy);
  command
      .add_option(
          "--shards", parallel.shards,
          "with --order shard-tree: cut each batch into so many shards, for the same bits on "
          "any number of ranks up to it; 0: one per rank")
      .check(within(kShards))
      .only_with("--order", {"shard-tree"})
      .capture_default_str();
  add_mesh_option(command, parallel.strategy.mesh);
  command.add_option("--order", parallel.order, "how the ranks' gradients are added")
      .capture_default_str();
  command.add_flag("--overlap", parallel.overlap,
                   "collectives go on beside the computation, on a thread of their own");
  command
      .add_option("--comm-timeout", parallel.timeout_s,
                  "seconds that a rank may keep the others waiting")
      .check(within(kTimeout))
      .capture_default_str();
}

int threads_per_rank(const training::ParallelConfig& config, int asked) {
  if (config.ranks == 1 || asked != 0) return asked;
  if (config.transport == training::Transport::Simulated) return 1;  // whose processor time counts
  const int here = config.transport == training::Transport::Mpi
                       ? parallel::MpiSession::of_process().ranks_on_this_host()
                       : config.ranks;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / here);
}

}  // namespace triptych::app
