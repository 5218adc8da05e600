// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/communicator.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "parallel/comm/sum.h"

namespace triptych::parallel {
namespace {

/// FNV-1a over what all ranks must agree on.
std::uint64_t fingerprint_of(const CollectiveCall& call) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const std::uint64_t value :
       {static_cast<std::uint64_t>(call.collective), static_cast<std::uint64_t>(call.algorithm),
        static_cast<std::uint64_t>(call.dtype), static_cast<std::uint64_t>(call.elements),
        static_cast<std::uint64_t>(call.root)}) {
    for (int byte = 0; byte < 8; ++byte) {
      hash ^= value >> (8 * byte) & 0xFF;
      hash *= 0x100000001B3U;
    }
  }
  return hash;
}

std::string describe(const CollectiveCall& call, std::uint64_t sequence) {
  std::string text = fmt::format("{} #{}", to_string(call.collective), sequence);
  if (!call.label.empty()) text += fmt::format(" \"{}\"", call.label);
  const double mebibytes =
      static_cast<double>(call.elements) * static_cast<double>(dtype_size(call.dtype)) / (1 << 20);
  return text + fmt::format(" ({:.3g} MiB)", mebibytes);
}

/// Empty for what the transport's library does.
Schedule schedule_of(const CollectiveCall& call, int rank, int world_size) {
  if (call.algorithm == Algorithm::Library && call.collective == Collective::AllReduce) return {};
  return make_schedule(
      call.collective, call.algorithm,
      {.world_size = world_size, .rank = rank, .elements = call.elements, .root = call.root});
}

}  // namespace

PreparedCollective::PreparedCollective(const CollectiveCall& call, int rank, int world_size)
    : call_(call),
      schedule_(schedule_of(call, rank, world_size)),
      fingerprint_(fingerprint_of(call)),
      scratch_(static_cast<std::size_t>(schedule_.scratch_elements) * dtype_size(call.dtype)),
      messages_(schedule_.steps.size()) {}

Communicator::Communicator(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)) {}

PreparedCollective Communicator::prepare(const CollectiveCall& call) const {
  return {call, rank(), world_size()};
}

void Communicator::run(PreparedCollective& collective, std::byte* data) {
  ++sequence_;
  const Envelope envelope = {sequence_, collective.fingerprint_};
  const auto start = std::chrono::steady_clock::now();
  try {
    if (collective.call_.algorithm == Algorithm::Library) {
      const auto& call = collective.call_;
      const auto size = static_cast<std::size_t>(call.elements) * dtype_size(call.dtype);
      transport_->library_all_reduce(envelope, {data, size}, call.dtype);
    }
    for (std::size_t i = 0; i < collective.schedule_.steps.size(); ++i)
      step(collective, i, data, envelope);
  } catch (const PeerFailure& failure) {
    transport_->abandon();
    throw FaultError(transport_->raise({.culprit = failure.peer,
                                        .cause = failure.cause,
                                        .operation = describe(collective.call_, sequence_),
                                        .detail = failure.detail,
                                        .waited = failure.waited,
                                        .noticed_by = rank()}));
  } catch (...) {
    transport_->abandon();
    throw;
  }
  time_ += std::chrono::steady_clock::now() - start;
}

void Communicator::step(PreparedCollective& collective, std::size_t number, std::byte* data,
                        const Envelope& envelope) {
  const Step& step = collective.schedule_.steps[number];
  const std::size_t size = dtype_size(collective.call_.dtype);
  const auto bytes = [&](const Place& place) {
    std::byte* memory = place.memory == Memory::Data ? data : collective.scratch_.data();
    return std::span(memory + static_cast<std::size_t>(place.range.begin) * size,
                     static_cast<std::size_t>(place.range.elements()) * size);
  };
  switch (step.kind) {
    case Step::Kind::Send:
      collective.messages_[number] = transport_->send(step.peer, envelope, bytes(step.place));
      return;
    case Step::Kind::Receive:
      return transport_->receive(step.peer, envelope, bytes(step.place));
    case Step::Kind::ReceiveAdd:
      return transport_->receive_add(step.peer, envelope, bytes(step.place),
                                     collective.call_.dtype);
    case Step::Kind::Copy:
      std::memmove(bytes(step.place).data(), bytes(step.source).data(), bytes(step.place).size());
      return;
    case Step::Kind::Add:
      return add_to(bytes(step.place), bytes(step.source), collective.call_.dtype);
    case Step::Kind::Wait:
      return transport_->wait_taken(step.peer,
                                    collective.messages_[static_cast<std::size_t>(step.send)]);
  }
}

void Communicator::all_reduce(std::span<float> data, Algorithm algorithm, std::string label) {
  auto call = prepare({.collective = Collective::AllReduce,
                       .algorithm = algorithm,
                       .elements = std::ssize(data),
                       .label = std::move(label)});
  run(call, reinterpret_cast<std::byte*>(data.data()));
}

void Communicator::broadcast(std::span<float> data, int root, std::string label) {
  auto call = prepare({.collective = Collective::Broadcast,
                       .algorithm = Algorithm::Tree,
                       .elements = std::ssize(data),
                       .root = root,
                       .label = std::move(label)});
  run(call, reinterpret_cast<std::byte*>(data.data()));
}

void Communicator::barrier() {
  float nothing = 0;
  all_reduce({&nothing, 1}, Algorithm::Tree, "barrier");
}

void Communicator::fail(const std::string& what) {
  transport_->raise(
      {.culprit = rank(), .cause = Cause::Threw, .detail = what, .noticed_by = rank()});
}

}  // namespace triptych::parallel
