// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/rank_collectives.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "core/ops/all_reduce.h"
#include "core/runtime/device.h"

namespace triptych::parallel {
namespace {

struct Order {
  std::string_view name;
  Algorithm algorithm;
};
constexpr std::array kOrders = {Order{"rank-ordered", Algorithm::Direct},
                                Order{"shard-tree", Algorithm::HalvingDoubling},
                                Order{"ring", Algorithm::Ring}};

/// Inputs are copied into one message on the host, and its sum to the outputs.
class AllReduceKernel : public Kernel {
 public:
  AllReduceKernel(const KernelQuery& query, Device& device)
      : device_(device),
        runner_(dynamic_cast<RankCollectives&>(*query.collectives)),
        communicator_(runner_.communicator()),
        scale_(query.as<AllReduce>().scale),
        sizes_(sizes_of(query)),
        message_(total(sizes_)),
        all_reduce_(
            communicator_.prepare({.collective = Collective::AllReduce,
                                   .algorithm = algorithm_of_order(query.as<AllReduce>().order),
                                   .elements = std::ssize(message_),
                                   .label = label(query)})) {}

  static Verdict accepts(const KernelQuery& query) {
    if (query.as<AllReduce>().axis != "dp")
      return Verdict::no("the run has the mesh axis \"dp\" only");
    return query.dense() ? Verdict::yes() : Verdict::no("needs dense operands");
  }

  std::size_t resident_bytes() const override { return message_.size() * sizeof(float); }

  void run(const KernelArgs& args) override {
    runner_.count_computation(device_);
    auto* next = message_.data();
    for (std::size_t i = 0; i < sizes_.size(); ++i, next += sizes_[i - 1])
      device_.download(bytes(next), args.inputs[i], sizes_[i] * sizeof(float));
    communicator_.run(all_reduce_, bytes(message_.data()));
    if (scale_ != 1) {
      for (float& value : message_) value *= scale_;
    }
    next = message_.data();
    for (std::size_t i = 0; i < sizes_.size(); ++i, next += sizes_[i - 1])
      device_.upload(args.outputs[i], bytes(next), sizes_[i] * sizeof(float));
    runner_.skip(device_);
  }

 private:
  static std::byte* bytes(float* values) { return reinterpret_cast<std::byte*>(values); }
  static std::vector<std::size_t> sizes_of(const KernelQuery& query) {
    std::vector<std::size_t> sizes;
    for (const auto& input : query.inputs)
      sizes.push_back(static_cast<std::size_t>(input.spec.shape.elements()));
    return sizes;
  }
  static std::size_t total(const std::vector<std::size_t>& sizes) {
    std::size_t sum = 0;
    for (const auto size : sizes) sum += size;
    return sum;
  }
  static std::string label(const KernelQuery& query) {
    return fmt::format("{} tensors", query.inputs.size());
  }

  Device& device_;
  RankCollectives& runner_;
  Communicator& communicator_;
  float scale_;
  std::vector<std::size_t> sizes_;  // elements of each input
  std::vector<float> message_;
  PreparedCollective all_reduce_;
};

}  // namespace

Algorithm algorithm_of_order(std::string_view order) {
  std::string names;
  for (const auto& entry : kOrders) {
    if (entry.name == order) return entry.algorithm;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  }
  throw InvalidArgument(fmt::format("no order of additions \"{}\"; choose from: {}", order, names));
}

RankCollectives::RankCollectives(Communicator& communicator, SimulatedTime* time)
    : communicator_(communicator), time_(time) {
  if (time_ != nullptr) communicator.observe(time_->observer(communicator.rank()));
}

void RankCollectives::count_computation(Device& device) {
  const double now = device.elapsed().seconds;
  if (time_ != nullptr) time_->compute(communicator_.rank(), now - counted_s_);
  counted_s_ = now;
}

void RankCollectives::skip(Device& device) { counted_s_ = device.elapsed().seconds; }

KernelTable RankCollectives::kernels() const {
  static const std::array table = {kernel_entry<AllReduceKernel>(AllReduce::kName, "message")};
  return table;
}

}  // namespace triptych::parallel
