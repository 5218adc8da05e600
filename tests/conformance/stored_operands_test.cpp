// Convolutions with operands that are stored channels last, as parts of concats, by every kernel
// of every available backend that takes them so, against the float64 reference.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "backends/all_backends.h"
#include "core/base/float16.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/runtime/formats.h"
#include "core/runtime/segment_id.h"
#include "experiments/check/case_runner.h"
#include "tests/conformance/asked_backends.h"

namespace triptych::conformance {
namespace {

/// Elements of the other parts of a concat, at each position.
constexpr std::int64_t kOthers = 64;
constexpr float kOther = 3;

/// Memory of an operand: as planes, or channels last with the other parts behind its channels.
class Stored {
 public:
  Stored(const TensorSpec& spec, bool channels_last, std::int64_t pad) {
    operand = Operand::dense(spec);
    bytes.resize(spec.bytes());
    if (!channels_last) return;
    const auto& shape = spec.shape;
    operand.channels_last = ChannelsLast{DType::BF16, pad, shape[1] + kOthers};
    bytes.assign(bytes_of(shape, *operand.channels_last), std::byte{0});
    for_each_element([&](auto at, std::int64_t channel, auto) {
      if (channel >= shape[1]) put(at, kOther);
    });
  }

  void load(const Tensor& planes) {
    if (!operand.channels_last) {
      std::memcpy(bytes.data(), planes.bytes().data(), bytes.size());
      return;
    }
    const auto values = planes.as<float>();
    for_each_element([&](auto at, std::int64_t channel, auto plane_element) {
      if (channel < operand.spec.shape[1]) put(at, values[plane_element]);
    });
  }
  Tensor planes() const {
    Tensor tensor(operand.spec);
    if (operand.channels_last) {
      planes_from_channels_last(operand.spec.shape, *operand.channels_last, bytes,
                                tensor.as<float>());
    } else {
      std::memcpy(tensor.bytes().data(), bytes.data(), bytes.size());
    }
    return tensor;
  }
  /// True when a kernel has left the other parts alone.
  bool others_are_kept() const {
    bool kept = true;
    if (!operand.channels_last) return true;
    for_each_element([&](auto at, std::int64_t channel, auto) {
      BFloat16 value;
      std::memcpy(&value, bytes.data() + at * sizeof(value), sizeof(value));
      kept &= channel < operand.spec.shape[1] || static_cast<float>(value) == kOther;
    });
    return kept;
  }

  Operand operand;
  std::vector<std::byte> bytes;

 private:
  /// Calls visit(stored element, channel, element of the planes) for all channels of the concat.
  template <class Visit>
  void for_each_element(const Visit& visit) const {
    const auto& shape = operand.spec.shape;
    const auto& format = *operand.channels_last;
    const auto rows = shape[2] + 2 * format.pad, columns = shape[3] + 2 * format.pad;
    for (std::int64_t i = 0; i < shape[0] * shape[2] * shape[3] * format.pitch; ++i) {
      const auto channel = i % format.pitch, position = i / format.pitch;
      const auto x = position % shape[3], y = position / shape[3] % shape[2],
                 n = position / shape[3] / shape[2];
      const auto at = ((n * rows + y + format.pad) * columns + x + format.pad) * format.pitch;
      const auto element = ((n * shape[1] + channel) * shape[2] + y) * shape[3] + x;
      visit(static_cast<std::size_t>(at + channel), channel, static_cast<std::size_t>(element));
    }
  }
  void put(std::size_t at, float value) {
    const BFloat16 rounded(value);
    std::memcpy(bytes.data() + at * sizeof(rounded), &rounded, sizeof(rounded));
  }
};

/// The layers from one channel (3 x 3) and to one (1 x 1), and their gradients.
void add_thin(std::vector<OpCase>& cases, const Shape& thin, const Shape& wide) {
  const auto add = [&](auto op, const char* name, std::int64_t taps,
                       std::vector<InputRule> inputs) {
    op.kernel_shape = {taps, taps};
    if (taps > 1) op.pads = {1, 1, 1, 1};
    cases.push_back({name, make_op(op), std::move(inputs)});
  };
  const auto channels = wide[1];
  const auto first = f32({channels, 1, 3, 3}), last = f32({1, channels, 1, 1});
  add(Conv(), "first", 3, {f32(thin), first});
  add(Conv(), "last", 1, {f32(wide), last});
  add(ConvTranspose(), "of_first", 3, {f32(wide), first});
  add(ConvTranspose(), "of_last", 1, {f32(thin), last});
  add(ConvWeightGradient(), "weights_of_first", 3, {f32(thin), f32(wide)});
  add(ConvWeightGradient(), "weights_of_last", 1, {f32(wide), f32(thin)});
}

std::vector<OpCase> convolutions() {
  std::vector<OpCase> cases;
  const Shape image = {2, 64, 16, 16}, half = {2, 64, 8, 8};
  for (const std::int64_t stride : {1, 2}) {
    const auto add = [&](auto op, const char* name, std::vector<InputRule> inputs) {
      op.strides = {stride, stride};
      if (stride == 1) op.pads = {1, 1, 1, 1};
      cases.push_back({fmt::format("{}_stride{}", name, stride), make_op(op), std::move(inputs)});
    };
    const std::int64_t taps = stride == 1 ? 3 : 2;
    const auto w = f32({64, 64, taps, taps}), bias = f32({64});
    Conv relu;
    relu.activation = "relu";
    ConvWeightGradient gradient;
    gradient.kernel_shape = {taps, taps};
    add(Conv(), "plain", {f32(image), w});
    add(relu, "finished", {f32(image), w, bias});
    add(ConvTranspose(), "plain", {f32(stride == 1 ? image : half), w});
    add(ConvTranspose(), "finished", {f32(stride == 1 ? image : half), w, bias});
    add(gradient, "weights", {f32(image), f32(stride == 1 ? image : half)});
  }
  add_thin(cases, {2, 1, 16, 16}, image);
  return cases;
}

/// The operands of a case for one kernel, stored channels last where it takes them so.
class Trial {
 public:
  Trial(const OpCase& test, const KernelEntry& entry) : test_(test), entry_(entry) {
    std::vector<TensorSpec> specs;
    for (const auto& input : inputs_) specs.push_back(input.spec());
    for (const auto& spec : specs) operands_.emplace_back(spec, false, 0);
    operands_.emplace_back(test.op->infer(specs).front(), false, 0);
    if (entry.channels_last == nullptr || !entry.accepts(query()).accepted) return;
    const auto takes = entry.channels_last(query());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const bool stored = i < takes.inputs.size() && takes.inputs[i];
      operands_[i] = Stored(inputs_[i].spec(), stored, stored ? takes.pad : 0);
      operands_[i].load(inputs_[i]);
      any_ |= stored;
    }
    operands_.back() = Stored(operands_.back().operand.spec, takes.output, 0);
    any_ |= takes.output;
  }

  bool is_stored() const { return any_; }
  void run(Device& device) {
    const auto asked = query();
    const auto kernel = entry_.prepare(asked, device);
    const auto scratch = device.allocate(kernel->scratch_bytes());
    std::vector<std::unique_ptr<DeviceBuffer>> memory;
    std::vector<const std::byte*> inputs;
    for (const auto& operand : operands_) {
      memory.push_back(device.allocate(operand.bytes.size()));
      device.upload(memory.back()->data(), operand.bytes.data(), operand.bytes.size());
      inputs.push_back(memory.back()->data());
    }
    inputs.pop_back();
    auto* output = memory.back()->data();
    const int segment = next_segment_id();
    device.submit(segment, [&](Stream* stream) {
      kernel->run({inputs, {&output, 1}, scratch->data(), stream});
    });
    device.synchronize();
    auto& result = operands_.back();
    device.download(result.bytes.data(), output, result.bytes.size());
    device.release(segment);
  }
  /// Every kernel rounds a result that is stored in bfloat16.
  std::string difference() const {
    const auto references = to_references(inputs_);
    const auto& result = operands_.back();
    const auto expected = run_on_reference(*test_.op, references, Contract::Bf16);
    const auto accuracy = result.operand.channels_last ? Accuracy::RoundedResult : entry_.accuracy;
    const auto allowed = tolerances(*test_.op, references, expected, Contract::Bf16, accuracy);
    if (!result.others_are_kept()) return "writes into another part of the concat";
    return first_difference(result.planes(), expected[0], allowed[0]);
  }

 private:
  KernelQuery query() {
    asked_.clear();
    for (const auto& operand : operands_) asked_.push_back(operand.operand);
    const std::span all(asked_);
    return {*test_.op, all.first(inputs_.size()), all.last(1), Contract::Bf16, constants_};
  }

  const OpCase& test_;
  const KernelEntry& entry_;
  std::vector<Tensor> inputs_ = make_inputs(test_);
  std::vector<const Tensor*> constants_ = std::vector<const Tensor*>(inputs_.size());
  std::vector<Stored> operands_;  ///< the output last
  std::vector<Operand> asked_;
  bool any_ = false;
};

TEST(StoredOnEveryBackend, convolutions_are_within_the_bound) {
  for (const Backend* backend : all_backends()) {
    const std::string name(backend->name());
    if (!backend->availability().available || !is_asked(name)) continue;
    const auto device = backend->open({.threads = 2});
    for (const auto& test : convolutions()) {
      int tried = 0;
      for (const auto& entry : device->kernels()) {
        if (entry.op != test.op->name()) continue;
        SCOPED_TRACE(fmt::format("{}, {} {} by {}", name, entry.op, test.name, entry.name));
        Trial trial(test, entry);
        if (!trial.is_stored()) continue;
        try {
          trial.run(*device);
          EXPECT_EQ(trial.difference(), "");
          ++tried;
        } catch (const UnsupportedError& error) {
          EXPECT_EQ(entry.role, KernelRole::Library) << error.what();
        }
      }
      EXPECT_GE(tried, name.starts_with("cuda") ? 1 : 0) << name << ", " << test.name;
    }
  }
}

}  // namespace
}  // namespace triptych::conformance
