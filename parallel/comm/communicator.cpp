// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/communicator.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/base/fnv1a.h"

namespace triptych::parallel {
namespace {

/// Bits of an envelope's sequence number: a message between two ranks or a collective, then the
/// communicator, then the message's sender, then a count.
constexpr int kGroupShift = 48, kSenderShift = 32;

Envelope message_envelope(std::uint64_t group, int sender, std::uint64_t count, std::size_t bytes) {
  return {kMessageBit | group << kGroupShift | static_cast<std::uint64_t>(sender) << kSenderShift |
              (count & 0xFFFFFFFFU),
          bytes};
}

std::string describe_message(const std::string& label, std::size_t bytes) {
  return fmt::format("the message \"{}\" ({:.3g} MiB)", label,
                     static_cast<double>(bytes) / (1 << 20));
}

/// A number that differs where ranks disagree about common settings.
std::uint64_t fingerprint_of(const CollectiveCall& call) {
  const std::array values = {
      static_cast<std::int64_t>(call.collective), static_cast<std::int64_t>(call.algorithm),
      static_cast<std::int64_t>(call.dtype), call.elements, static_cast<std::int64_t>(call.root)};
  return fnv1a(std::as_bytes(std::span(values)));
}

std::string describe(const CollectiveCall& call, std::uint64_t sequence) {
  std::string text = fmt::format("{} #{}", to_string(call.collective), sequence);
  if (!call.label.empty()) text += fmt::format(" \"{}\"", call.label);
  const double mebibytes =
      static_cast<double>(call.elements) * static_cast<double>(dtype_size(call.dtype)) / (1 << 20);
  return text + fmt::format(" ({:.3g} MiB)", mebibytes);
}

/// Empty for algorithms of the transport's library.
Schedule schedule_of(const CollectiveCall& call, int rank, int world_size) {
  if (call.algorithm == Algorithm::Library && call.collective == Collective::AllReduce) return {};
  return make_schedule(
      call.collective, call.algorithm,
      {.world_size = world_size, .rank = rank, .elements = call.elements, .root = call.root});
}

}  // namespace

PreparedCollective::PreparedCollective(const CollectiveCall& call, int rank, int world_size,
                                       MessageMemory& memory)
    : call_(call),
      schedule_(schedule_of(call, rank, world_size)),
      fingerprint_(fingerprint_of(call)),
      scratch_(memory.allocate(static_cast<std::size_t>(schedule_.scratch_elements) *
                               dtype_size(call.dtype))),
      messages_(schedule_.steps.size()) {}

Communicator::Communicator(std::shared_ptr<Transport> transport)
    : transport_(std::move(transport)),
      counts_(std::make_shared<MessageCounts>()),
      members_(static_cast<std::size_t>(transport_->world_size())),
      rank_(transport_->rank()),
      sent_(members_.size()),
      received_(members_.size()) {
  std::iota(members_.begin(), members_.end(), 0);
  if (!memory().on_host()) staged_ = std::make_shared<StagedMessages>(members_.size());
  counts_->sent.resize(members_.size());
  counts_->received.resize(members_.size());
}

Communicator Communicator::subgroup(std::vector<int> members, int number) const {
  const auto self = std::ranges::find(members, transport_->rank());
  if (self == members.end() || number < 1 || number > 4095)
    throw InvalidArgument("a group of ranks without this one, or with a number out of 1 to 4095");
  Communicator group(transport_);
  group.counts_ = counts_;
  group.staged_ = staged_;
  group.rank_ = static_cast<int>(self - members.begin());
  group.members_ = std::move(members);
  group.number_ = static_cast<std::uint64_t>(number);
  group.sent_.resize(group.members_.size());
  group.received_.resize(group.members_.size());
  group.observer_ = observer_;
  return group;
}

Envelope Communicator::next_to(int peer, Envelope envelope) {
  envelope.number = ++counts_->sent[static_cast<std::size_t>(member(peer))];
  return envelope;
}

Envelope Communicator::next_from(int peer, Envelope envelope) {
  envelope.number = ++counts_->received[static_cast<std::size_t>(member(peer))];
  return envelope;
}

PreparedCollective Communicator::prepare(const CollectiveCall& call) const {
  return {call, rank(), world_size(), memory()};
}

void Communicator::run(PreparedCollective& collective, std::byte* data) {
  if (memory().on_host()) return run_in_place(collective, data);
  const auto& call = collective.call_;
  const auto size = static_cast<std::size_t>(call.elements) * dtype_size(call.dtype);
  if (!collective.staged_) collective.staged_ = memory().allocate(size);
  memory().write(collective.staged_->bytes(), {data, size});
  run_in_place(collective, collective.staged_->bytes().data());
  memory().read({data, size}, collective.staged_->bytes());
}

void Communicator::run_in_place(PreparedCollective& collective, std::byte* data) {
  const Envelope envelope = {number_ << kGroupShift | ++sequence_, collective.fingerprint_};
  const auto start = std::chrono::steady_clock::now();
  const auto work = [&] {
    const auto& call = collective.call_;
    const auto bytes =
        std::span(data, static_cast<std::size_t>(call.elements) * dtype_size(call.dtype));
    if (call.algorithm == Algorithm::Library)
      transport_->library_all_reduce(envelope, bytes, call.dtype);
    if (call.collective == Collective::AllReduce && call.algorithm == Algorithm::Direct &&
        transport_->shared_all_reduce(envelope, members_, bytes, call.dtype))
      return;
    for (std::size_t i = 0; i < collective.schedule_.steps.size(); ++i)
      step(collective, i, data, envelope);
  };
  guard(work, [&] { return describe(collective.call_, sequence_); });
  if (observer_ != nullptr)
    observer_->on_steps(collective.schedule_, members_, dtype_size(collective.call_.dtype));
  time_ += std::chrono::steady_clock::now() - start;
}

void Communicator::guard(const std::function<void()>& work,
                         const std::function<std::string()>& operation) {
  try {
    work();
  } catch (const PeerFailure& failure) {
    transport_->abandon();
    throw FaultError(transport_->raise({.culprit = failure.peer,
                                        .cause = failure.cause,
                                        .operation = operation(),
                                        .detail = failure.detail,
                                        .waited = failure.waited,
                                        .noticed_by = transport_->rank()}));
  } catch (...) {
    transport_->abandon();
    throw;
  }
}

void Communicator::step(PreparedCollective& collective, std::size_t number, std::byte* data,
                        const Envelope& envelope) {
  const ScheduleStep& step = collective.schedule_.steps[number];
  const std::size_t size = dtype_size(collective.call_.dtype);
  const auto bytes = [&](const BufferRange& place) {
    std::byte* memory = place.memory == Memory::Data ? data : collective.scratch_->bytes().data();
    return std::span(memory + static_cast<std::size_t>(place.range.begin) * size,
                     static_cast<std::size_t>(place.range.size()) * size);
  };
  switch (step.kind) {
    case ScheduleStep::Kind::Send:
      collective.messages_[number] =
          transport_->send(member(step.peer), next_to(step.peer, envelope), bytes(step.place));
      return;
    case ScheduleStep::Kind::Receive:
      return transport_->receive(member(step.peer), next_from(step.peer, envelope),
                                 bytes(step.place));
    case ScheduleStep::Kind::ReceiveAdd:
      return transport_->receive_add(member(step.peer), next_from(step.peer, envelope),
                                     bytes(step.place), collective.call_.dtype);
    case ScheduleStep::Kind::Copy:
      return memory().copy(bytes(step.place), bytes(step.source));
    case ScheduleStep::Kind::Add:
      return memory().add(bytes(step.place), bytes(step.source), collective.call_.dtype);
    case ScheduleStep::Kind::Wait:
      return transport_->wait_taken(member(step.peer),
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

std::vector<std::uint64_t> Communicator::gather_numbers(std::uint64_t own,
                                                        const std::string& label) {
  std::vector<std::uint64_t> all(members_.size());
  all[static_cast<std::size_t>(rank_)] = own;
  auto gather = prepare({.collective = Collective::AllGather,
                         .dtype = DType::I64,
                         .elements = std::ssize(all),
                         .label = label});
  run(gather, reinterpret_cast<std::byte*>(all.data()));
  return all;
}

std::vector<std::string> Communicator::gather_texts(std::string_view own,
                                                    const std::string& label) {
  const auto sizes = gather_numbers(own.size(), label);
  const auto longest = std::max<std::size_t>(1, std::ranges::max(sizes));
  std::vector<char> bytes(longest * sizes.size());
  const auto place = [&](std::size_t rank) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(rank * longest);
  };
  std::ranges::copy(own, place(static_cast<std::size_t>(rank_)));
  auto gather = prepare({.collective = Collective::AllGather,
                         .dtype = DType::U8,
                         .elements = std::ssize(bytes),
                         .label = label});
  run(gather, reinterpret_cast<std::byte*>(bytes.data()));
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank)
    texts.emplace_back(place(rank), place(rank) + static_cast<std::ptrdiff_t>(sizes[rank]));
  return texts;
}

void Communicator::require_same(std::uint64_t value, const std::string& what) {
  const auto all = gather_numbers(value, what);
  const auto usual = *std::ranges::max_element(
      all, {}, [&](std::uint64_t one) { return std::ranges::count(all, one); });
  const auto other = std::ranges::find_if(all, [&](std::uint64_t one) { return one != usual; });
  if (other == all.end()) return;
  throw FaultError(transport_->raise(
      {.culprit = member(static_cast<int>(other - all.begin())),
       .cause = Cause::Mismatch,
       .operation = what,
       .detail = "it is not that of the others; start all ranks with the same options",
       .waited = Seconds(0),
       .noticed_by = -1}));
}

std::uint64_t Communicator::send(int to, std::span<const std::byte> bytes,
                                 const std::string& label) {
  if (!staged_) return send_in_place(to, bytes, label);
  auto copy = memory().allocate(bytes.size());
  memory().write(copy->bytes(), bytes);
  const auto message = send_in_place(to, copy->bytes(), label);
  (*staged_)[static_cast<std::size_t>(member(to))][message] = std::move(copy);
  return message;
}

void Communicator::receive(int from, std::span<std::byte> target, const std::string& label) {
  if (!staged_) return receive_in_place(from, target, label);
  const auto copy = memory().allocate(target.size());
  receive_in_place(from, copy->bytes(), label);
  memory().read(target, copy->bytes());
}

std::uint64_t Communicator::send_in_place(int to, std::span<const std::byte> bytes,
                                          const std::string& label) {
  const auto count = ++sent_[static_cast<std::size_t>(to)];
  std::uint64_t message = 0;
  guard(
      [&] {
        const auto envelope = message_envelope(number_, transport_->rank(), count, bytes.size());
        message = transport_->send(member(to), next_to(to, envelope), bytes);
      },
      [&] { return describe_message(label, bytes.size()); });
  observe_message(ScheduleStep::Kind::Send, to, bytes.size());
  return message;
}

void Communicator::wait_taken(int to, std::uint64_t message, const std::string& label) {
  const auto start = std::chrono::steady_clock::now();
  guard([&] { transport_->wait_taken(member(to), message); },
        [&] { return fmt::format("the message \"{}\"", label); });
  if (staged_) {
    auto& own = (*staged_)[static_cast<std::size_t>(member(to))];
    own.erase(own.begin(), own.upper_bound(message));
  }
  time_ += std::chrono::steady_clock::now() - start;
}

void Communicator::receive_in_place(int from, std::span<std::byte> target,
                                    const std::string& label) {
  const auto start = std::chrono::steady_clock::now();
  const auto count = ++received_[static_cast<std::size_t>(from)];
  guard(
      [&] {
        const auto envelope = message_envelope(number_, member(from), count, target.size());
        transport_->receive(member(from), next_from(from, envelope), target);
      },
      [&] { return describe_message(label, target.size()); });
  observe_message(ScheduleStep::Kind::Receive, from, target.size());
  time_ += std::chrono::steady_clock::now() - start;
}

int Communicator::wait_any(std::span<const int> from, const std::string& label) {
  std::vector<int> members;
  for (const int rank : from) members.push_back(member(rank));
  const auto start = std::chrono::steady_clock::now();
  int found = 0;
  guard([&] { found = transport_->wait_any(members); },
        [&] { return fmt::format("the message \"{}\"", label); });
  time_ += std::chrono::steady_clock::now() - start;
  return static_cast<int>(std::ranges::find(members_, found) - members_.begin());
}

void Communicator::observe_message(ScheduleStep::Kind kind, int peer, std::size_t bytes) {
  if (observer_ == nullptr) return;
  const ScheduleStep step = {
      .kind = kind, .peer = peer, .place = {Memory::Data, {0, static_cast<std::int64_t>(bytes)}}};
  observer_->on_steps({{step}, 0}, members_, 1);
}

void Communicator::fail(const std::string& what) {
  transport_->raise({.culprit = transport_->rank(),
                     .cause = Cause::Threw,
                     .operation = {},
                     .detail = what,
                     .waited = Seconds(0),
                     .noticed_by = transport_->rank()});
}

}  // namespace triptych::parallel
