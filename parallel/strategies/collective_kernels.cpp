// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/collective_kernels.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/runtime/device.h"
#include "parallel/strategies/rank_collectives.h"

namespace triptych::parallel {
namespace {

std::vector<TensorSpec> specs_of(std::span<const Operand> operands) {
  std::vector<TensorSpec> specs;
  for (const auto& operand : operands) specs.push_back(operand.spec);
  return specs;
}

Verdict accepts_axis(const KernelQuery& query, const std::string& axis) {
  const auto& runner = dynamic_cast<RankCollectives&>(*query.collectives);
  if (runner.find(axis) == nullptr) {
    return Verdict::no(
        fmt::format("the run has no mesh axis \"{}\", only {}", axis, runner.axes()));
  }
  return query.dense() ? Verdict::yes() : Verdict::no("needs dense operands");
}

/// Base of the kernels: a message in the transport's memory, to which inputs are copied and from
/// which outputs are. It contains the tensors one after another, `parts` times: each part of the
/// message has a part of each tensor, with zeros where a flat tensor does not divide. Its elements
/// are those of f32, or bytes where any tensor is of another dtype.
class MessageKernel : public Kernel {
 public:
  template <class Op>
  MessageKernel(const KernelQuery& query, Device& device, const Op& op)
      : device_(device),
        runner_(dynamic_cast<RankCollectives&>(*query.collectives)),
        communicator_(*runner_.find(op.axis)),
        label_(op.label) {}

  std::size_t resident_bytes() const override { return resident_bytes_; }

  void run(const KernelArgs& args) final {
    auto* slot = lane_ring_ ? &lane_ring_->next() : nullptr;
    if (slot != nullptr) {
      if (slot->used) runner_.finish_collective(*slot->used);
      own_ = slot->buffer.get();
    }
    runner_.computation_ends();
    if (!runner_.memory().on_host()) device_.synchronize();  // copies there do not wait for it
    collect(args.inputs);
    outputs_ = args.outputs;
    runner_.run(
        label_, [this] { exchange(); }, [this] { deliver(outputs_); });
    if (slot != nullptr) slot->used = runner_.begun();
    runner_.computation_begins();
  }

 protected:
  /// From the device to the message, between the ranks, and back to the device.
  virtual void collect(std::span<const std::byte* const> inputs) = 0;
  virtual void exchange() = 0;
  virtual void deliver(std::span<std::byte* const> outputs) = 0;

  /// Takes these tensors, cut as `split` of ReduceScatter says.
  void set_layout(const std::vector<TensorSpec>& whole, std::int64_t parts = 1,
                  std::int64_t split = -1) {
    parts_ = static_cast<std::size_t>(parts);
    part_ = 0;
    const auto floats = [](const TensorSpec& spec) { return spec.dtype == DType::F32; };
    dtype_ = std::ranges::all_of(whole, floats) ? DType::F32 : DType::U8;
    size_ = dtype_size(dtype_);
    for (const auto& spec : whole) {
      const auto elements = static_cast<std::int64_t>(spec.bytes() / size_);
      whole_.push_back(static_cast<std::size_t>(elements));
      share_.push_back(static_cast<std::size_t>(shard_elements(elements, parts)));
      runs_.push_back(split < 0 ? 1
                                : static_cast<std::size_t>(spec.shape.elements_between(0, split)));
      part_ += share_.back();
    }
    elements_ = part_ * parts_;
    if (label_.empty()) label_ = fmt::format("{} tensors", whole_.size());
  }
  /// With a lane, messages of its own: one, or those of `ring`. Without, the one that all share.
  void reserve(std::shared_ptr<MessageRing> ring = nullptr) {
    if (!runner_.overlaps()) {
      resident_bytes_ += runner_.reserve(elements_ * size_);
      return;
    }
    lane_ring_ = ring ? std::move(ring)
                      : std::make_shared<MessageRing>(runner_.memory(), elements_ * size_, 1);
    resident_bytes_ += lane_ring_->add_user();
  }
  /// A ring that the messages of this size to or from that rank of the axis share. No rank of a
  /// pipeline runs further ahead of another than there are stages, so that more buffers than ranks
  /// would stay unused, however many micro-batches a step has.
  std::shared_ptr<MessageRing> ring(std::string_view use, const std::string& axis, int peer) const {
    const auto bytes = elements_ * size_;
    return runner_.ring(fmt::format("{} {} {} {}", use, axis, peer, bytes), bytes,
                        static_cast<std::size_t>(communicator_.world_size()));
  }

  PreparedCollective prepare(Collective collective, Algorithm algorithm) const {
    return communicator_.prepare({.collective = collective,
                                  .algorithm = algorithm,
                                  .dtype = dtype_,
                                  .elements = static_cast<std::int64_t>(elements_),
                                  .label = label_});
  }
  /// Calls use(tensor, its first element, elements, message's first element, elements there) for
  /// each piece: a run's share of each part, which the tensor has run by run and the message part
  /// by part. The message's is longer where a flat tensor does not divide.
  template <class Use>
  void for_each_piece(const Use& use) const {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < whole_.size(); ++i) {
      const auto length = share_[i] / runs_[i];
      for (std::size_t run = 0; run < runs_[i]; ++run) {
        for (std::size_t p = 0; p < parts_; ++p) {
          const auto first = std::min((run * parts_ + p) * length, whole_[i]);
          use(i, first, std::min(length, whole_[i] - first), p * part_ + offset + run * length,
              length);
        }
      }
      offset += share_[i];
    }
  }
  /// Between an operand and the message, from element `at` on.
  void fetch(std::size_t at, const std::byte* source, std::size_t count) {
    const auto size = count * size_;
    if (runner_.memory().on_host()) return device_.download(bytes(at), source, size);
    runner_.memory().copy({bytes(at), size}, {source, size});
  }
  void store(std::byte* target, std::size_t at, std::size_t count) {
    const auto size = count * size_;
    if (runner_.memory().on_host()) return device_.upload(target, bytes(at), size);
    runner_.memory().copy({target, size}, {bytes(at), size});
  }
  void clear(std::size_t at, std::size_t count) {
    if (count == 0) return;
    const std::vector<std::byte> zeros(count * size_);
    runner_.memory().write({bytes(at), zeros.size()}, zeros);
  }
  void download_whole(std::span<const std::byte* const> tensors) {
    for_each_piece([&](std::size_t i, std::size_t first, std::size_t count, std::size_t at,
                       std::size_t length) {
      fetch(at, tensors[i] + first * size_, count);
      clear(at + count, length - count);
    });
  }
  void upload_whole(std::span<std::byte* const> tensors) {
    for_each_piece([&](std::size_t i, std::size_t first, std::size_t count, std::size_t at,
                       std::size_t) { store(tensors[i] + first * size_, at, count); });
  }
  /// The part of this rank, tensor by tensor.
  std::size_t own_part() const { return static_cast<std::size_t>(communicator_.rank()) * part_; }
  void scale(std::size_t first, std::size_t count, float factor) {
    if (factor == 1) return;
    runner_.memory().scale({bytes(first), count * size_}, factor);
  }
  std::byte* bytes(std::size_t element) {
    return (own_ ? own_->bytes().data() : runner_.message()) + element * size_;
  }
  std::span<std::byte> all_bytes() { return {bytes(0), elements_ * size_}; }

  Device& device_;
  RankCollectives& runner_;
  Communicator& communicator_;
  std::string label_;
  std::span<std::byte* const> outputs_;     ///< of the run under way
  std::shared_ptr<MessageRing> lane_ring_;  ///< with a lane
  MessageBuffer* own_ = nullptr;            ///< of that ring: the run's under way
  DType dtype_ = DType::F32;                ///< of the message's elements
  std::size_t size_ = sizeof(float);
  std::size_t parts_ = 1;
  std::size_t part_ = 0;            ///< elements of a part of the message
  std::size_t elements_ = 0;        ///< of the message
  std::size_t resident_bytes_ = 0;  ///< that this kernel added
  std::vector<std::size_t> whole_;  ///< elements of each tensor
  std::vector<std::size_t> share_;  ///< of each rank's part of it
  std::vector<std::size_t> runs_;   ///< the range of a part in it
};

class AllReduceKernel : public MessageKernel {
 public:
  AllReduceKernel(const KernelQuery& query, Device& device)
      : MessageKernel(query, device, query.as<AllReduce>()), scale_(query.as<AllReduce>().scale) {
    set_layout(specs_of(query.inputs));
    reserve();
    all_reduce_.emplace(prepare(Collective::AllReduce, algorithm_of(query.as<AllReduce>().order)));
  }
  static Verdict accepts(const KernelQuery& query) {
    return accepts_axis(query, query.as<AllReduce>().axis);
  }

 private:
  void collect(std::span<const std::byte* const> inputs) override { download_whole(inputs); }
  void exchange() override {
    communicator_.run_in_place(*all_reduce_, bytes(0));
    scale(0, elements_, scale_);
  }
  void deliver(std::span<std::byte* const> outputs) override { upload_whole(outputs); }

  float scale_;
  std::optional<PreparedCollective> all_reduce_;
};

class ReduceScatterKernel : public MessageKernel {
 public:
  ReduceScatterKernel(const KernelQuery& query, Device& device)
      : MessageKernel(query, device, query.as<ReduceScatter>()),
        scale_(query.as<ReduceScatter>().scale) {
    const auto& op = query.as<ReduceScatter>();
    set_layout(specs_of(query.inputs), op.parts, op.split);
    reserve();
    reduce_scatter_.emplace(prepare(Collective::ReduceScatter, algorithm_of(op.order)));
  }
  static Verdict accepts(const KernelQuery& query) {
    const auto& op = query.as<ReduceScatter>();
    if (op.order != ReductionOrder::RankOrdered && op.order != ReductionOrder::Ring)
      return Verdict::no(fmt::format("a part cannot be added \"{}\"", name_of(op.order)));
    return accepts_axis(query, op.axis);
  }

 private:
  void collect(std::span<const std::byte* const> inputs) override { download_whole(inputs); }
  void exchange() override {
    communicator_.run_in_place(*reduce_scatter_, bytes(0));
    scale(own_part(), part_, scale_);
  }
  void deliver(std::span<std::byte* const> outputs) override {
    auto at = own_part();
    for (std::size_t i = 0; i < share_.size(); at += share_[i++]) store(outputs[i], at, share_[i]);
  }

  float scale_;
  std::optional<PreparedCollective> reduce_scatter_;
};

class AllGatherKernel : public MessageKernel {
 public:
  AllGatherKernel(const KernelQuery& query, Device& device)
      : MessageKernel(query, device, query.as<AllGather>()) {
    const auto& op = query.as<AllGather>();
    set_layout(specs_of(query.outputs), op.parts, op.split);
    reserve();
    all_gather_.emplace(prepare(Collective::AllGather, Algorithm::Direct));
  }
  static Verdict accepts(const KernelQuery& query) {
    return accepts_axis(query, query.as<AllGather>().axis);
  }

 private:
  void collect(std::span<const std::byte* const> inputs) override {
    auto at = own_part();
    for (std::size_t i = 0; i < share_.size(); at += share_[i++]) fetch(at, inputs[i], share_[i]);
  }
  void exchange() override { communicator_.run_in_place(*all_gather_, bytes(0)); }
  void deliver(std::span<std::byte* const> outputs) override { upload_whole(outputs); }

  std::optional<PreparedCollective> all_gather_;
};

/// A message stays as it is until its place in the ring is needed again, before which it is waited
/// for.
class SendKernel : public MessageKernel {
 public:
  SendKernel(const KernelQuery& query, Device& device)
      : MessageKernel(query, device, query.as<Send>()), to_(static_cast<int>(query.as<Send>().to)) {
    const auto& axis = query.as<Send>().axis;
    set_layout(specs_of(query.inputs));
    reserve(ring("collected", axis, to_));
    offers_ = ring("offered", axis, to_);
    resident_bytes_ += offers_->add_user();
  }
  static Verdict accepts(const KernelQuery& query) {
    return accepts_axis(query, query.as<Send>().axis);
  }

 private:
  void collect(std::span<const std::byte* const> inputs) override { download_whole(inputs); }
  void exchange() override {
    auto& [buffer, sent] = offers_->next();
    if (sent) communicator_.wait_taken(to_, *sent, label_);
    runner_.memory().copy(buffer->bytes(), all_bytes());
    sent = communicator_.send_in_place(to_, buffer->bytes(), label_);
  }
  void deliver(std::span<std::byte* const> outputs) override {
    const auto count = static_cast<float>(whole_.size());
    device_.upload(outputs[0], reinterpret_cast<const std::byte*>(&count), sizeof count);
  }

  int to_;
  std::shared_ptr<MessageRing> offers_;
};

class ReceiveKernel : public MessageKernel {
 public:
  ReceiveKernel(const KernelQuery& query, Device& device)
      : MessageKernel(query, device, query.as<Receive>()),
        from_(static_cast<int>(query.as<Receive>().from)) {
    set_layout(specs_of(query.outputs));
    reserve(ring("received", query.as<Receive>().axis, from_));
  }
  static Verdict accepts(const KernelQuery& query) {
    return accepts_axis(query, query.as<Receive>().axis);
  }

 private:
  void collect(std::span<const std::byte* const>) override {}
  void exchange() override { communicator_.receive_in_place(from_, all_bytes(), label_); }
  void deliver(std::span<std::byte* const> outputs) override { upload_whole(outputs); }

  int from_;
};

}  // namespace

Algorithm algorithm_of(ReductionOrder order) {
  switch (order) {
    case ReductionOrder::RankOrdered:
      return Algorithm::Direct;
    case ReductionOrder::ShardTree:
      return Algorithm::HalvingDoubling;
    case ReductionOrder::Ring:
      return Algorithm::Ring;
    case ReductionOrder::Library:
      return Algorithm::Library;
  }
  return Algorithm::Direct;
}

KernelTable collective_kernels() {
  static const std::array table = {
      kernel_entry<AllReduceKernel>(AllReduce::kName, "message"),
      kernel_entry<ReduceScatterKernel>(ReduceScatter::kName, "message"),
      kernel_entry<AllGatherKernel>(AllGather::kName, "message"),
      kernel_entry<SendKernel>(Send::kName, "message"),
      kernel_entry<ReceiveKernel>(Receive::kName, "message")};
  return table;
}

}  // namespace triptych::parallel
