// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "core/base/fnv1a.h"
#include "core/base/list_text.h"
#include "experiments/training/tensors_hash.h"
#include "parallel/comm/mpi_session.h"
#include "parallel/comm/nccl_group.h"
#include "parallel/comm/thread_group.h"
#include "systolic/driver/machines.h"
#include "systolic/isa/machine.h"

namespace triptych::training {
namespace {

/// nullptr for one rank, which needs nobody.
std::unique_ptr<parallel::RankGroup> open_group(const ParallelConfig& config) {
  const parallel::Seconds timeout(config.timeout_s);
  if (config.ranks == 1) return nullptr;
  if (config.transport == Transport::Nccl) return parallel::open_nccl_group(config.ranks, timeout);
  if (config.transport != Transport::Mpi)
    return std::make_unique<parallel::ThreadGroup>(config.ranks, timeout);
  auto group = std::make_unique<parallel::MpiGroup>(timeout);
  if (group->world_size() != config.ranks) {
    throw InvalidArgument(fmt::format(
        "{} over MPI, but {} started; start as many: mpirun -np {} triptych …",
        counted(config.ranks, "rank"), counted(group->world_size(), "process"), config.ranks));
  }
  return group;
}

/// True for ranks that have an array each of a machine with several arrays on one memory.
bool share_memory(const ExecutionConfig& config) {
  if (config.backend != "systolic" || config.parallel.ranks == 1) return false;
  const std::string_view name =
      config.machine.empty() ? mmu::kDefaultMachine : std::string_view(config.machine);
  return mmu::find_machine(name).arrays > 1;
}

/// Configuration of a rank that is not the first of this process: over NCCL with the GPU of its
/// number, and on arrays of one memory with the array of its number. All ranks choose the kernels
/// that the first one has chosen.
ExecutionConfig config_of(const DeviceSet& first, int rank) {
  auto config = first.config();
  config.kernel_times = first.kernel_times();
  if (config.parallel.transport == Transport::Nccl || share_memory(config)) config.device = rank;
  return config;
}

std::unique_ptr<parallel::SimulatedTime> open_clocks(const ParallelConfig& config) {
  if (config.transport != Transport::Simulated || config.ranks == 1) return nullptr;
  return std::make_unique<parallel::SimulatedTime>(
      parallel::make_interconnect(config.interconnect, config.ranks,
                                  {config.link_latency_s, config.link_bytes_per_s}),
      0);
}

/// Ranks on arrays of one memory run the same programs at the same time.
void require_equal_programs(const DeviceSet& machine, std::int64_t batch) {
  using enum parallel::Strategy::Kind;
  const auto& parallel = machine.config().parallel;
  if (!share_memory(machine.config())) return;
  const auto kind = parallel.strategy.kind;
  if (kind != Replicated && kind != Sharded && kind != Hierarchical && kind != LocalSgd)
    throw InvalidArgument(
        "arrays of one memory run the same program at the same time, and the ranks of this "
        "strategy have different ones; take the option strategy dp, or a machine without arrays");
  if (parallel.transport == Transport::Mpi)
    throw InvalidArgument(
        "arrays of one memory belong to one process, and the option transport mpi starts one for "
        "each rank; leave it out");
  if (batch % parallel.ranks != 0)
    throw InvalidArgument(fmt::format(
        "arrays of one memory run the same program at the same time, and {} rows do not divide "
        "by {} ranks; give a batch that does",
        batch, parallel.ranks));
}

template <class Read>
std::string hash_of(const std::vector<std::string>& names, const Read& read) {
  TensorsHash hash;
  for (const auto& name : names) hash.add(name, read(name));
  return hash.finish();
}

}  // namespace

bool leads(const ParallelConfig& config) {
  return config.transport != Transport::Mpi || parallel::MpiSession::of_process().rank() == 0;
}

Trainer::Trainer(const DeviceSet& machine, const TrainerConfig& config)
    : parameters_(parameter_names(config.model)) {
  std::ranges::sort(parameters_);
  const auto& parallel = machine.config().parallel;
  const auto& strategy = parallel.strategy;
  validate(strategy);
  if (parallel.transport == Transport::Nccl && machine.config().backend != "cuda") {
    throw InvalidArgument(
        fmt::format("the option transport nccl moves messages from GPU to GPU, and the ranks are "
                    "on {}; add the option "
                    "backend cuda",
                    machine.config().backend));
  }
  require_equal_programs(machine, config.options.batch);
  auto measured = config;
  const auto stages = parallel.ranks / strategy.mesh.size("dp");
  if (parallel.ranks > 1 && strategy.kind == parallel::Strategy::Kind::Pipeline &&
      std::ssize(config.cut) != stages) {
    const auto rows = config.options.batch / strategy.micro_batches / strategy.mesh.size("dp");
    measured.node_seconds = measure_nodes(machine, config, std::max<std::int64_t>(1, rows));
  }
  if (parallel.ranks > 1 && strategy.kind == parallel::Strategy::Kind::LocalSgd)
    period_ = strategy.period;
  asynchronous_ = parallel.ranks > 1 && parallel::asynchronous(strategy);
  if (asynchronous_) {
    period_ = strategy.period;
    bound_ = strategy.bound;
  }
  group_ = open_group(parallel);
  time_ = open_clocks(parallel);
  for (const int rank : group_ ? group_->local_ranks() : std::vector<int>{0}) {
    if (!ranks_.empty()) machines_.push_back(std::make_unique<DeviceSet>(config_of(machine, rank)));
    ranks_.push_back(std::make_unique<Rank>(ranks_.empty() ? machine : *machines_.back(), measured,
                                            group_ ? group_->transport(rank) : nullptr,
                                            time_.get()));
  }
}

void Trainer::synchronize() {
  if (synchronized()) return;
  own_steps_ = 0;
  const auto before = time_in_messages();
  on_every_rank([](Rank& rank) { rank.average_states(); });
  const auto spent = time_in_messages() - before;
  communication_ += spent;
  exposed_ += spent;
}

parallel::Seconds Trainer::time_in_messages() const {
  const auto* communicator = ranks_[0]->communicator();
  return communicator == nullptr ? parallel::Seconds(0) : communicator->time();
}

bool Trainer::all_agree(bool own) {
  if (ranks() == static_cast<int>(ranks_.size())) return own;  // one process has one opinion
  float votes = own ? 0 : 1;
  ranks_[0]->communicator()->all_reduce({&votes, 1}, parallel::Algorithm::Tree, "go on?");
  return votes == 0;
}

void Trainer::on_every_rank(const std::function<void(Rank&)>& work) {
  if (!group_) return work(*ranks_[0]);
  std::mutex mutex;
  std::exception_ptr first;  // guarded by mutex
  const auto run = [&](Rank& rank) {
    try {
      work(rank);
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
      rank.communicator()->fail(error.what());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < ranks_.size(); ++i) threads.emplace_back(run, std::ref(*ranks_[i]));
    run(*ranks_[0]);
  }
  if (first) std::rethrow_exception(first);
}

Rows Trainer::rows() const {
  Rows rows;
  for (const auto& rank : ranks_) rows = union_of(rows, rank->rows());
  return rows;
}

void Trainer::require_rank_consistency(const Facts& own) {
  if (ranks() == static_cast<int>(ranks_.size())) return;  // one process agrees with itself
  training::require_rank_consistency(*ranks_[0]->communicator(), own);
}

float Trainer::step(const Tensor& x, const Tensor& target, float learning_rate,
                    std::int64_t first_row, std::span<const Tensor> others) {
  const auto before = time_in_messages(), waited_before = ranks_[0]->exposed();
  on_every_rank([&](Rank& rank) {
    rank.set_inputs(x, target, learning_rate, first_row, others);
    rank.run();
  });
  const auto spent = time_in_messages() - before;
  communication_ += spent;
  // The rank also waits for the work around the messages, which is no part of them.
  exposed_ += std::min(spent, ranks_[0]->exposed() - waited_before);
  if (period_ > 0 && ++own_steps_ == period_) synchronize();
  if (time_) time_->advance();
  return executor().output("loss").as<float>()[0];
}

void Trainer::share_losses(std::int64_t steps, std::vector<float>& losses,
                           const StretchCallbacks& callbacks) {
  auto* communicator = ranks_[0]->communicator();
  if (communicator->world_size() == static_cast<int>(ranks_.size())) return;
  std::vector<float> message = {static_cast<float>(losses.size())};
  message.insert(message.end(), losses.begin(), losses.end());
  message.resize(static_cast<std::size_t>(steps) + 1);
  communicator->broadcast(message, 0, "losses");
  if (communicator->rank() == 0) return;
  losses.assign(message.begin() + 1, message.begin() + 1 + static_cast<std::ptrdiff_t>(message[0]));
  for (std::size_t i = 0; i < losses.size(); ++i)
    callbacks.on_loss(static_cast<std::int64_t>(i), losses[i]);
}

std::vector<float> Trainer::run_stretch(std::int64_t steps, const StretchCallbacks& callbacks) {
  const auto number = updates_.size();
  if (number < replay_.size()) steps = std::min(steps, replay_[number].steps);
  parallel::StretchRecord record;
  std::vector<float> losses;
  std::mutex mutex;
  const parallel::Server server = {.apply = {},
                                   .read = {},
                                   .on_loss =
                                       [&](std::int64_t step, float loss) {
                                         losses.push_back(loss);
                                         callbacks.on_loss(step, loss);
                                       },
                                   .interrupted = callbacks.interrupted,
                                   .replay = number < replay_.size()
                                                 ? std::span<const int>(replay_[number].ranks)
                                                 : std::span<const int>()};
  on_every_rank([&](Rank& rank) {
    const auto load = [&](std::int64_t step) {
      const std::unique_lock lock(mutex);
      const auto rows = rank.rows();
      const auto batch = callbacks.inputs(step, rows);
      rank.set_inputs(batch.x, batch.y, callbacks.learning_rate(step), rows.first, batch.others);
    };
    rank.run_stretch({.steps = steps, .period = period_, .bound = bound_}, server,
                     callbacks.learning_rate, load, record);
  });
  share_losses(steps, losses, callbacks);
  staleness_.sum += record.staleness * static_cast<double>(record.order.size());
  staleness_.most = std::max(staleness_.most, record.most_staleness);
  staleness_.contributions += std::ssize(record.order);
  updates_.push_back({std::ssize(losses), std::move(record.order)});
  if (time_) time_->advance();
  return losses;
}

void Trainer::tell_busy(const char* doing) {
  if (auto* communicator = ranks_[0]->communicator()) communicator->tell_busy(doing);
}

std::vector<RankTrace> Trainer::trace_step(const Tensor& x, const Tensor& target,
                                           float learning_rate) {
  std::vector<RankTrace> traces(ranks_.size());
  on_every_rank([&](Rank& rank) {
    rank.set_inputs(x, target, learning_rate);
    const auto own = std::ranges::find(ranks_, &rank, &std::unique_ptr<Rank>::get);
    traces[static_cast<std::size_t>(own - ranks_.begin())] = rank.run_traced();
  });
  if (time_) time_->advance();
  for (std::size_t i = 0; i < traces.size() && time_; ++i)
    place_on_clock(*time_, ranks_[i]->communicator()->rank(), traces[i]);
  // From the first rank's start on.
  const double start =
      std::ranges::min(traces, {}, [](const RankTrace& t) { return t.run.start_s; }).run.start_s;
  for (auto& trace : traces) trace.run.start_s -= start;
  return traces;
}

std::optional<std::string> Trainer::step_until_not_finite(const segmentation::Batch& batch,
                                                          float learning_rate) {
  std::mutex mutex;
  std::optional<std::string> found;  // guarded by mutex
  const auto search = [&](Rank& rank) {
    rank.set_inputs(batch.x, batch.y, learning_rate, 0, batch.others);
    const auto node = rank.executor().run_until_not_finite();
    if (!node) return;
    const std::lock_guard lock(mutex);
    if (!found) found = plan().graph.node(*node).name;
    // The others shall not wait for this rank.
    if (rank.communicator() != nullptr) throw NumericError("not finite: " + *found);
  };
  try {
    on_every_rank(search);
  } catch (const Error&) {
    if (!found) throw;
  }
  return found;
}

TensorMap Trainer::gather(const std::vector<std::string>& names, bool keep) {
  TensorMap tensors;
  on_every_rank([&](Rank& rank) {
    for (const auto& name : names) {
      auto tensor = rank.read(name);
      if (keep && &rank == ranks_[0].get()) tensors.emplace(name, std::move(tensor));
    }
  });
  if (time_) time_->discard();  // no part of the training
  return tensors;
}

TensorSources Trainer::state_sources(bool keep) {
  TensorSources sources;
  auto gathered = std::make_shared<TensorMap>();
  if (ranks_[0]->has_parts()) *gathered = gather(ranks_[0]->names(), keep);
  if (!keep) return sources;
  for (const auto& name : ranks_[0]->names()) {
    sources.emplace(name, TensorSource{ranks_[0]->spec(name), [this, name, gathered] {
                                         tell_busy("writing a checkpoint");
                                         const auto whole = gathered->find(name);
                                         return whole == gathered->end() ? ranks_[0]->read(name)
                                                                         : whole->second.clone();
                                       }});
  }
  return sources;
}

bool Trainer::optimizer_has(const std::string& name) const {
  return ranks_[0]->optimizer_has(name);
}

StateStore& Trainer::evaluation_states() {
  if (!ranks_[0]->has_parts()) return ranks_[0]->states();
  if (!evaluation_) evaluation_ = std::make_unique<StateStore>(ranks_[0]->states().device());
  std::vector<std::string> names;
  for (const auto& name : ranks_[0]->names())
    if (!ranks_[0]->optimizer_has(name)) names.push_back(name);
  for (const auto& [name, tensor] : gather(names)) {
    evaluation_->require(name, tensor);
    evaluation_->write(name, tensor);
  }
  return *evaluation_;
}

void Trainer::restore(const TensorMap& tensors) {
  const auto names = ranks_[0]->names();
  for (const auto& name : names) {
    if (!tensors.contains(name)) {
      throw InvalidArgument(
          fmt::format("the checkpoint has no \"{}\"; is it of another model?", name));
    }
  }
  if (tensors.size() != names.size()) {
    throw InvalidArgument("the checkpoint has tensors that the model does not have");
  }
  for (const auto& rank : ranks_)
    for (const auto& [name, tensor] : tensors) rank->write(name, tensor);
}

std::string Trainer::weights_sha256() {
  if (ranks_[0]->has_parts()) {
    const auto whole = gather(parameters_);
    return hash_of(parameters_, [&](const std::string& name) {
      tell_busy("hashing the parameters");
      return whole.at(name).clone();
    });
  }
  std::string hash;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const auto own = hash_of(parameters_, [&](const std::string& name) {
      tell_busy("hashing the parameters");
      return ranks_[i]->states().read(name);
    });
    if (i == 0) hash = own;
    if (own != hash)
      throw NumericError(fmt::format("the parameters of rank {} are not those of rank 0", i));
  }
  if (ranks() > static_cast<int>(ranks_.size())) {
    ranks_[0]->communicator()->require_same(fnv1a(std::as_bytes(std::span(hash))),
                                            "the parameters after training");
  }
  return hash;
}

Duration Trainer::communication_time() const {
  return {communication_.count(), TimeKind::Measured};
}

std::int64_t Trainer::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& name : parameters_) {
    count += ranks_[0]->spec(name).shape.elements();
  }
  return count;
}

}  // namespace triptych::training
