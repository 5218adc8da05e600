// Conv, ConvTranspose and ConvWeightGradient by cuDNN: on operands as they lie (f32), on copies
// with the channels innermost, rounded where the contract says so, or on bfloat16 (bf16).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "backends/cuda/device/gpu_device.h"
#include "backends/cuda/kernels/repack.h"
#include "backends/cuda/library/conv_problem.h"
#include "backends/cuda/library/cudnn_planner.h"
#include "backends/cuda/library/library_kernels.h"
#include "core/base/float16.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"

namespace triptych::cuda {
namespace {

using cudnn::ConvPlan;
using cudnn::ConvProblem;
using cudnn::Descriptor;
using cudnn::Layout;
using cudnn::Pass;
using gpu::GpuDevice;

/// cuDNN on one device.
class Library {
 public:
  explicit Library(GpuDevice& device)
      : cache_(device.cache()), handle_(open()), planner_(handle_, cache_.get()) {}
  ~Library() { cudnn::calls().destroy(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  cudnnHandle_t handle() const { return handle_; }
  cudnn::Planner& planner() { return planner_; }

  /// Work goes to this stream from now on. cuDNN learns of it only when the stream changes: the
  /// first, plain run of a segment sets it, and the effect on a stream in recording is not
  /// documented.
  void use(cudaStream_t stream) {
    if (stream_ == stream) return;
    cudnn::check(cudnn::calls().set_stream(handle_, stream), "choosing the stream");
    stream_ = stream;
  }

 private:
  static cudnnHandle_t open() {
    cudnnHandle_t handle = nullptr;
    cudnn::check(cudnn::calls().create(&handle), "opening the library");
    return handle;
  }
  std::shared_ptr<TextCache> cache_;
  cudnnHandle_t handle_;
  cudaStream_t stream_ = nullptr;
  cudnn::Planner planner_;
};

struct Pointer {
  cudnn::TensorId tensor;
  const void* data;
};

/// A plan that can run.
class Execution {
 public:
  Execution(Library& library, const ConvPlan& plan) : library_(library) {
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, library.handle());
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, plan.json);
    plan_.finalize("loading a plan");
    workspace_bytes_ =
        static_cast<std::size_t>(plan_.get_int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  }

  std::size_t workspace_bytes() const { return workspace_bytes_; }

  /// The pointers of a plan's node are the same in every run: the first run prepares all that cuDNN
  /// needs of them.
  void run(std::span<const Pointer> pointers, void* workspace, cudaStream_t stream) {
    if (!arguments_ || !std::ranges::equal(pointers, known_, {}, &Pointer::data, &Pointer::data) ||
        workspace != workspace_) {
      describe(pointers, workspace);
    }
    library_.use(stream);
    cudnn::check(cudnn::calls().execute(library_.handle(), plan_.get(), arguments_->get()),
                 "running a plan");
  }

 private:
  void describe(std::span<const Pointer> pointers, void* workspace) {
    std::vector<std::int64_t> names;
    std::vector<const void*> data;
    for (const auto& pointer : pointers) {
      names.push_back(pointer.tensor);
      data.push_back(pointer.data);
    }
    Descriptor arguments(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    arguments.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names);
    arguments.set_list(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                       std::span<const void* const>(data));
    arguments.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    arguments.finalize("naming the operands");
    arguments_ = std::move(arguments);
    known_.assign(pointers.begin(), pointers.end());
    workspace_ = workspace;
  }

  Library& library_;
  Descriptor plan_{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
  std::size_t workspace_bytes_ = 0;
  std::optional<Descriptor> arguments_;
  std::vector<Pointer> known_;
  void* workspace_ = nullptr;
};

Library& library_of(Device& device) { return dynamic_cast<GpuDevice&>(device).shared<Library>(); }

cudaStream_t stream_of(const KernelArgs& args) {
  return static_cast<gpu::GpuStream*>(args.stream)->get();
}

/// An operand [N, C, ...] as it lies in memory.
ImageBlock block_of(const Operand& operand) {
  const auto& shape = operand.spec.shape;
  return {shape[0], shape[1], shape.elements() / (shape[0] * shape[1]), operand.outer_stride};
}

Verdict accepted(const KernelQuery& query, Layout layout) {
  if (!cudnn::library_problem().empty()) return Verdict::no(cudnn::library_problem());
  return cudnn::accepts_conv(query, layout);
}

ChannelFinish channel_finish(const cudnn::Finish& finish, const KernelArgs& args) {
  return {finish.bias ? args.in<float>(2) : nullptr, finish.relu};
}

/// Bytes of a part of scratch memory, so that the next one is aligned.
std::size_t aligned(std::int64_t bytes) {
  return static_cast<std::size_t>((bytes + 255) / 256 * 256);
}

/// On operands in their own layout, f32 only.
class InPlaceConv : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) { return accepted(query, Layout::Nchw); }

  InPlaceConv(const KernelQuery& query, Device& device)
      : problem_(cudnn::conv_problem(query, Layout::Nchw)),
        relu_(cudnn::finish_of(query).relu),
        adds_bias_(cudnn::finish_of(query).bias && !problem_.bias),
        y_(block_of(query.outputs[0])),
        execution_(library_of(device),
                   library_of(device).planner().plan(problem_, query.contract)) {}

  std::size_t scratch_bytes() const override { return execution_.workspace_bytes(); }

  void run(const KernelArgs& args) override {
    const auto tensors = cudnn::conv_tensors(problem_.pass);
    const Pointer pointers[] = {{tensors.inputs[0], args.inputs[0]},
                                {tensors.inputs[1], args.inputs[1]},
                                {tensors.output, args.outputs[0]},
                                {cudnn::kBias, problem_.bias ? args.inputs[2] : nullptr}};
    execution_.run(std::span(pointers).first(problem_.bias ? 4 : 3), args.scratch, stream_of(args));
    if (adds_bias_ || relu_) {
      gpu::repacking().finish(args.stream, args.out<float>(0), y_,
                              {adds_bias_ ? args.in<float>(2) : nullptr, relu_});
    }
  }

 private:
  ConvProblem problem_;
  bool relu_, adds_bias_;
  ImageBlock y_;
  Execution execution_;
};

/// On copies with the channels innermost. Under bf16 they are rounded to bfloat16 and stored in
/// float32, so that TF32 multiplies them exactly: cuDNN has no ready-made engine with bfloat16
/// operands and a float32 result.
class ChannelsLastConv : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) { return accepted(query, Layout::Nhwc); }

  ChannelsLastConv(const KernelQuery& query, Device& device)
      : problem_(cudnn::conv_problem(query, Layout::Nhwc)),
        finish_(cudnn::finish_of(query)),
        round_(query.contract == Contract::Bf16),
        inputs_{block_of(query.inputs[0]), block_of(query.inputs[1])},
        output_(block_of(query.outputs[0])),
        execution_(library_of(device),
                   library_of(device).planner().plan(problem_, query.contract)) {}

  std::size_t scratch_bytes() const override {
    return packed_bytes(0) + packed_bytes(1) + result_bytes() + execution_.workspace_bytes();
  }

  void run(const KernelArgs& args) override {
    const auto& f = gpu::repacking();
    std::byte* packed[] = {args.scratch, args.scratch + packed_bytes(0)};
    std::byte* result = packed[1] + packed_bytes(1);
    for (const int i : {0, 1}) {
      f.pack(args.stream, args.in<float>(static_cast<std::size_t>(i)),
             reinterpret_cast<float*>(packed[i]), inputs_[i], round_);
    }
    const auto tensors = cudnn::conv_tensors(problem_.pass);
    const Pointer pointers[] = {
        {tensors.inputs[0], packed[0]}, {tensors.inputs[1], packed[1]}, {tensors.output, result}};
    execution_.run(pointers, result + result_bytes(), stream_of(args));
    f.unpack(args.stream, reinterpret_cast<const float*>(result), args.out<float>(0), output_,
             channel_finish(finish_, args));
  }

 private:
  std::size_t packed_bytes(int input) const { return aligned(inputs_[input].elements() * 4); }
  std::size_t result_bytes() const { return aligned(output_.elements() * 4); }

  ConvProblem problem_;
  cudnn::Finish finish_;
  bool round_;
  ImageBlock inputs_[2];
  ImageBlock output_;
  Execution execution_;
};

/// On bfloat16 with the channels innermost. It reads and writes images that are stored so in
/// place. Other operands are rounded into scratch memory. A result that is not stored in
/// bfloat16 is widened.
class Bf16Conv : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) { return accepted(query, Layout::NhwcBf16); }

  static ChannelsLastOperands channels_last(const KernelQuery& query) {
    const auto is_image = [&](const Operand& operand) {
      constexpr std::int64_t kWholePieces = 8;  // of 16 bytes, as cuDNN aligns them
      const auto& shape = operand.spec.shape;
      return query.contract == Contract::Bf16 && shape.rank() == 4 && shape[1] % kWholePieces == 0;
    };
    if (query.op.name() == ConvWeightGradient::kName) {
      return {.inputs = {is_image(query.inputs[0]), is_image(query.inputs[1])}};
    }
    return {.inputs = {is_image(query.inputs[0])}, .output = is_image(query.outputs[0])};
  }

  Bf16Conv(const KernelQuery& query, Device& device)
      : problem_(cudnn::conv_problem(query, Layout::NhwcBf16)),
        finish_(cudnn::finish_of(query)),
        inputs_{query.inputs[0], query.inputs[1]},
        output_(query.outputs[0]),
        execution_(library_of(device),
                   library_of(device).planner().plan(problem_, query.contract)) {}

  std::size_t scratch_bytes() const override {
    return packed_bytes(0) + packed_bytes(1) + result_bytes() + execution_.workspace_bytes();
  }

  void run(const KernelArgs& args) override {
    std::byte* const scratch[] = {args.scratch, args.scratch + packed_bytes(0)};
    std::byte* const workspace = scratch[1] + packed_bytes(1) + result_bytes();
    std::byte* const result = writes_in_place() ? args.outputs[0] : scratch[1] + packed_bytes(1);
    const void* operands[2];
    for (const std::size_t i : {0, 1}) {
      operands[i] = inputs_[i].channels_last ? args.inputs[i] : scratch[i];
      if (inputs_[i].channels_last) continue;
      gpu::repacking().pack_bf16(args.stream, args.in<float>(i), scratch[i], block_of(inputs_[i]));
    }
    const auto tensors = cudnn::conv_tensors(problem_.pass);
    const Pointer pointers[] = {{tensors.inputs[0], operands[0]},
                                {tensors.inputs[1], operands[1]},
                                {tensors.output, result}};
    execution_.run(pointers, workspace, stream_of(args));
    if (!writes_in_place()) finish(args, result);
  }

 private:
  bool writes_in_place() const { return output_.channels_last && !finish_.any(); }
  std::size_t packed_bytes(int input) const {
    return inputs_[input].channels_last ? 0 : bytes_of(inputs_[input]);
  }
  std::size_t result_bytes() const { return writes_in_place() ? 0 : bytes_of(output_); }
  static std::size_t bytes_of(const Operand& operand) {
    return aligned(operand.spec.shape.elements() * static_cast<std::int64_t>(sizeof(BFloat16)));
  }

  void finish(const KernelArgs& args, const std::byte* result) const {
    const auto block = block_of(output_);
    const auto finish = channel_finish(finish_, args);
    if (output_.channels_last) {
      gpu::repacking().place_bf16(
          args.stream, result, args.outputs[0],
          {block.images * block.plane, block.channels, output_.channels_last->pitch}, finish);
    } else {
      gpu::repacking().unpack_bf16(args.stream, result, args.out<float>(0), block, finish);
    }
  }

  ConvProblem problem_;
  cudnn::Finish finish_;
  Operand inputs_[2];
  Operand output_;
  Execution execution_;
};

}  // namespace

void add_cudnn_kernels(std::vector<KernelEntry>& list) {
  for (const auto op : {Conv::kName, ConvTranspose::kName, ConvWeightGradient::kName}) {
    list.push_back(kernel_entry<InPlaceConv>(op, "cudnn", KernelRole::Library));
    list.push_back(kernel_entry<ChannelsLastConv>(op, "cudnn-nhwc", KernelRole::Library));
    auto bf16 = kernel_entry<Bf16Conv>(op, "cudnn-bf16", KernelRole::Library);
    bf16.channels_last = &Bf16Conv::channels_last;
    bf16.accuracy = Accuracy::RoundedResult;
    list.push_back(bf16);
  }
}

}  // namespace triptych::cuda
