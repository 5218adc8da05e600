// A device for tests: host memory of its own, a kernel table as restricted as the test likes, and
// kernels that call the operators' float64 references. Every pointer that reaches it is checked to
// lie in a buffer of this very device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "core/runtime/device.h"

namespace triptych::testing_device {

class ReferenceDevice : public Device {
 public:
  explicit ReferenceDevice(std::string name, std::vector<KernelEntry> kernels)
      : info_{.name = std::move(name), .time_kind = TimeKind::Simulated},
        kernels_(std::move(kernels)) {}

  const DeviceInfo& info() const override { return info_; }
  KernelTable own_kernels() const override { return kernels_; }

  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override {
    return std::make_unique<Buffer>(*this, bytes);
  }
  void upload(std::byte* target, const std::byte* source, std::size_t bytes) override {
    require_owned(target, bytes);
    std::memcpy(target, source, bytes);
    bytes_uploaded += bytes;
  }
  void download(std::byte* target, const std::byte* source, std::size_t bytes) override {
    require_owned(source, bytes);
    std::memcpy(target, source, bytes);
  }
  bool reads_host_memory() const override { return reads_host; }
  void submit(int segment, const std::function<void(Stream*)>& enqueue) override {
    ++submitted[segment];
    enqueue(nullptr);
  }
  void release(int segment) override { submitted.erase(segment); }
  void synchronize() override {}
  /// Every kernel takes a second.
  Duration elapsed() override { return {static_cast<double>(kernels_run), TimeKind::Simulated}; }

  void require_owned(const std::byte* address, std::size_t bytes) const {
    if (bytes == 0 || reads_host) return;
    auto after = buffers_.upper_bound(address);
    if (after == buffers_.begin()) throw std::logic_error("memory of another device");
    const auto& [start, size] = *std::prev(after);
    if (address + bytes > start + size) throw std::logic_error("memory of another device");
  }

  std::size_t allocated() const { return buffers_.size(); }

  std::map<int, int> submitted;  ///< per segment: how often. Released ones are gone
  std::size_t bytes_uploaded = 0;
  bool reads_host = false;  ///< reads_host_memory(). No pointer is checked then
  int kernels_run = 0;

 private:
  class Buffer : public DeviceBuffer {
   public:
    Buffer(ReferenceDevice& device, std::size_t bytes)
        : device_(device), memory_(allocate_aligned(bytes)), bytes_(bytes) {
      device_.buffers_[memory_.get()] = bytes;
    }
    ~Buffer() override { device_.buffers_.erase(memory_.get()); }
    std::byte* data() override { return memory_.get(); }
    std::size_t size() const override { return bytes_; }

   private:
    ReferenceDevice& device_;
    AlignedBytes memory_;
    std::size_t bytes_;
  };

  DeviceInfo info_;
  std::vector<KernelEntry> kernels_;
  std::map<const std::byte*, std::size_t> buffers_;
};

/// Elements from the first to behind the last of an operand.
inline std::size_t span_bytes(const Operand& operand) {
  const auto dense = operand.spec.bytes();
  if (operand.is_dense()) return dense;
  const auto rows = static_cast<std::size_t>(operand.spec.shape[0]);
  return (rows - 1) * static_cast<std::size_t>(operand.outer_stride) *
             dtype_size(operand.spec.dtype) +
         dense / rows;
}

/// Calls `visit(index in the dense tensor, bytes from the operand's begin)` for each row.
template <class Visit>
void for_each_row(const Operand& operand, const Visit& visit) {
  const auto& shape = operand.spec.shape;
  const auto rows = operand.is_dense() ? 1 : shape[0];
  const auto row = shape.elements() / rows;
  if (row == 0) return;
  for (std::int64_t i = 0; i < rows; ++i) {
    visit(static_cast<std::size_t>(i * row), static_cast<std::size_t>(row),
          static_cast<std::size_t>(i * operand.outer_stride) * dtype_size(operand.spec.dtype));
  }
}

/// Runs any operator by its reference. With `AnyStride`, on operands that are not dense, too.
template <bool AnyStride>
class ReferenceKernel : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    return AnyStride || query.dense() ? Verdict::yes() : Verdict::no("dense operands only");
  }

  ReferenceKernel(const KernelQuery& query, Device& device)
      : op_(query.op),
        device_(dynamic_cast<ReferenceDevice&>(device)),
        inputs_(query.inputs.begin(), query.inputs.end()),
        outputs_(query.outputs.begin(), query.outputs.end()) {}

  std::size_t scratch_bytes() const override { return 128; }

  void run(const KernelArgs& args) override {
    ++device_.kernels_run;
    device_.require_owned(args.scratch, scratch_bytes());
    std::vector<RefTensor> inputs;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs.push_back(read(inputs_[i], args.inputs[i]));
    }
    std::vector<RefTensor> outputs;
    for (const auto& operand : outputs_) outputs.push_back(empty(operand.spec));
    op_.reference(inputs, outputs);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      write(outputs_[i], outputs[i], args.outputs[i]);
    }
  }

 private:
  static RefTensor empty(const TensorSpec& spec) {
    return {spec, std::vector<double>(static_cast<std::size_t>(spec.shape.elements()))};
  }

  RefTensor read(const Operand& operand, const std::byte* source) const {
    device_.require_owned(source, span_bytes(operand));
    Tensor tensor(operand.spec);
    const auto size = dtype_size(operand.spec.dtype);
    for_each_row(operand, [&](std::size_t first, std::size_t count, std::size_t offset) {
      std::memcpy(tensor.bytes().data() + first * size, source + offset, count * size);
    });
    return {operand.spec, to_doubles(tensor)};
  }

  void write(const Operand& operand, const RefTensor& value, std::byte* target) const {
    device_.require_owned(target, span_bytes(operand));
    const auto tensor = from_doubles(operand.spec, value.values);
    const auto size = dtype_size(operand.spec.dtype);
    for_each_row(operand, [&](std::size_t first, std::size_t count, std::size_t offset) {
      std::memcpy(target + offset, tensor.bytes().data() + first * size, count * size);
    });
  }

  const Op& op_;
  ReferenceDevice& device_;
  std::vector<Operand> inputs_;
  std::vector<Operand> outputs_;
};

/// Entries named "reference" for these operators.
template <bool AnyStride = false>
std::vector<KernelEntry> reference_kernels(std::initializer_list<std::string_view> ops) {
  std::vector<KernelEntry> entries;
  for (const auto op : ops) {
    entries.push_back(kernel_entry<ReferenceKernel<AnyStride>>(op, "reference"));
  }
  return entries;
}

/// y = state + x, in place.
struct Accumulate : OpOf<Accumulate> {
  static constexpr std::string_view kName = "Accumulate";
  static constexpr std::string_view kSummary = "state += x";

  static void visit(auto&, auto&) {}
  std::vector<TensorSpec> infer(Specs inputs) const override { return {inputs[0]}; }
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override {
    std::ranges::transform(inputs[0].values, inputs[1].values, outputs[0].values.begin(),
                           std::plus<>{});
  }
  std::vector<std::pair<int, int>> updates(int) const override { return {{0, 0}}; }
};

inline Tensor filled(Shape shape, float first, float step = 0) {
  Tensor tensor(TensorSpec{DType::F32, std::move(shape)});
  float value = first;
  for (auto& element : tensor.as<float>()) {
    element = value;
    value += step;
  }
  return tensor;
}

/// The message of the E that `action` throws.
template <class E, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace triptych::testing_device
