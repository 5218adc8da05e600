// Trials of kernels for one node: their times, and whether they compute the same.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "core/base/error.h"
#include "core/base/float16.h"
#include "core/base/random.h"
#include "core/runtime/formats.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/kernel_values.h"
#include "core/runtime/segment_id.h"

namespace triptych {
namespace {

constexpr double kSampleSeconds = 1e-3;
constexpr int kSamples = 5;
constexpr int kMostRuns = 1000;
constexpr std::size_t kUploadBytes = std::size_t{1} << 25;
constexpr std::size_t kPatternElements = std::size_t{1} << 18;

/// Device memory for the operands of one node.
class Operands {
 public:
  Operands(const KernelQuery& query, Device& device) {
    for (std::size_t i = 0; i < query.inputs.size(); ++i) {
      const auto& spec = query.inputs[i].spec;
      buffers_.push_back(device.allocate(bytes_of(query.inputs[i])));
      inputs_.push_back(buffers_.back()->data());
      const Tensor* constant = i < query.constants.size() ? query.constants[i] : nullptr;
      if (constant != nullptr) {
        device.upload(buffers_.back()->data(), constant->bytes().data(), constant->bytes().size());
      } else if (spec.dtype == DType::F32) {
        query.inputs[i].channels_last ? fill<BFloat16>(device, *buffers_.back(), i)
                                      : fill<float>(device, *buffers_.back(), i);
      }
    }
    for (const auto& output : query.outputs) {
      buffers_.push_back(device.allocate(bytes_of(output)));
      outputs_.push_back(buffers_.back()->data());
    }
  }

  KernelArgs args(std::byte* scratch, Stream* stream) const {
    return {inputs_, outputs_, scratch, stream};
  }

  /// Fills the sampled elements with NaN or -1, so that elements that a kernel does not write show.
  void spoil(const KernelQuery& query, Device& device) const {
    std::vector<std::byte> ones;
    for_each_piece(query, [&](std::size_t output, std::size_t first, std::size_t bytes) {
      ones.resize(std::max(ones.size(), bytes), std::byte{0xFF});
      device.upload(outputs_[output] + first, ones.data(), bytes);
    });
  }
  KernelValues values(const KernelQuery& query, Device& device) const {
    KernelValues values;
    std::size_t filled = 0;
    for_each_piece(query, [&](std::size_t output, std::size_t first, std::size_t bytes) {
      if (output == values.size()) {
        const auto& operand = query.outputs[output];
        std::int64_t elements = 0;
        for (const auto& piece : sample_of(elements_of(operand))) elements += piece.count;
        values.emplace_back(TensorSpec{operand.spec.dtype, {elements}});
        filled = 0;
      }
      device.download(values.back().bytes().data() + filled, outputs_[output] + first, bytes);
      filled += bytes;
    });
    return values;
  }

 private:
  /// Calls visit(output, its byte, bytes) for each sample.
  template <class Visit>
  static void for_each_piece(const KernelQuery& query, const Visit& visit) {
    for (std::size_t i = 0; i < query.outputs.size(); ++i) {
      const auto size = dtype_size(query.outputs[i].spec.dtype);
      for (const auto& piece : sample_of(elements_of(query.outputs[i]))) {
        visit(i, static_cast<std::size_t>(piece.first) * size,
              static_cast<std::size_t>(piece.count) * size);
      }
    }
  }
  /// The gaps between rows included.
  static std::int64_t elements_of(const Operand& operand) {
    const auto& shape = operand.spec.shape;
    return shape.rank() == 0 || shape[0] == 0
               ? shape.elements()
               : std::max(shape.elements(), operand.outer_stride * shape[0]);
  }
  static std::size_t bytes_of(const Operand& operand) {
    const auto& format = operand.channels_last;
    if (format) return triptych::bytes_of(operand.spec.shape, *format);
    return static_cast<std::size_t>(elements_of(operand)) * dtype_size(operand.spec.dtype);
  }

  /// A pattern of noise, again and again, in few large uploads.
  template <class T>
  static void fill(Device& device, DeviceBuffer& buffer, std::uint64_t seed) {
    RandomStream random(1, seed);
    std::vector<T> noise(std::min(buffer.size(), kUploadBytes) / sizeof(T));
    const auto pattern = std::min(noise.size(), kPatternElements);
    for (std::size_t i = 0; i < pattern; ++i) noise[i] = T(2 * random.uniform() - 1);
    for (std::size_t i = pattern; i < noise.size(); ++i) noise[i] = noise[i - pattern];
    const auto bytes = noise.size() * sizeof(T);
    for (std::size_t done = 0; done < buffer.size(); done += bytes) {
      device.upload(buffer.data() + done, reinterpret_cast<const std::byte*>(noise.data()),
                    std::min(bytes, buffer.size() - done));
    }
  }

  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

/// `runs` runs of a kernel as one segment of work.
class Repetition {
 public:
  Repetition(Device& device, const std::function<void(Stream*)>& run, int runs)
      : Repetition(device, [&run, runs](Stream* stream) {
          for (int i = 0; i < runs; ++i) run(stream);
        }) {
    // A device may load kernels in the first run, and record the segment in the second.
    seconds();
    seconds();
  }
  ~Repetition() { device_.release(id_); }
  Repetition(const Repetition&) = delete;
  Repetition& operator=(const Repetition&) = delete;

  double seconds() {
    device_.synchronize();
    const double start = device_.elapsed().seconds;
    device_.submit(id_, enqueue_);
    device_.synchronize();
    return device_.elapsed().seconds - start;
  }

 private:
  /// Complete before anything runs: the segment is released even if the first run fails.
  Repetition(Device& device, std::function<void(Stream*)> enqueue)
      : device_(device), id_(next_segment_id()), enqueue_(std::move(enqueue)) {}

  Device& device_;
  int id_;
  std::function<void(Stream*)> enqueue_;
};

/// Seconds of one run: of the fastest of several samples.
double seconds_of(Device& device, const std::function<void(Stream*)>& run) {
  const double once = Repetition(device, run, 1).seconds();
  const int runs =
      once * kMostRuns <= kSampleSeconds
          ? kMostRuns
          : static_cast<int>(std::clamp(kSampleSeconds / once, 1.0, double{kMostRuns}));
  Repetition repetition(device, run, runs);
  double best = repetition.seconds();
  for (int sample = 1; sample < kSamples; ++sample) best = std::min(best, repetition.seconds());
  return best / runs;
}

/// The operands of a node as a plan would store them for a kernel, as far as the plan may.
class StoredOperands {
 public:
  StoredOperands(const ChoiceQuery& query, const KernelEntry& entry)
      : query_(query),
        inputs_(query.inputs.begin(), query.inputs.end()),
        outputs_(query.outputs.begin(), query.outputs.end()) {
    if (entry.channels_last == nullptr) return;
    const auto takes = entry.channels_last(query);
    for (std::size_t i = 0; i < std::min(takes.inputs.size(), query.storable.inputs.size()); ++i) {
      if (takes.inputs[i] && query.storable.inputs[i]) store(inputs_[i], takes.pad);
    }
    if (takes.output && query.storable.output) store(outputs_[0], 0);
  }

  bool any() const { return any_; }
  KernelQuery query() const {
    return {query_.op, inputs_, outputs_, query_.contract, query_.constants, query_.collectives};
  }

 private:
  void store(Operand& operand, std::int64_t pad) {
    auto format = channels_last_format(operand.spec);
    if (!format) return;
    format->pad = pad;
    operand.channels_last = format;
    any_ = true;
  }

  const ChoiceQuery& query_;
  std::vector<Operand> inputs_, outputs_;
  bool any_ = false;
};

/// The kernels of one node on one device.
class Trials {
 public:
  Trials(const ChoiceQuery& query, Device& device)
      : query_(query), device_(device), operands_(query, device) {}

  /// The first that computes anything is the one that is trusted.
  KernelTrial run(const KernelEntry& entry) {
    try {
      return time(entry);
    } catch (const UnsupportedError& error) {
      return {.problem = error.what()};
    } catch (const std::exception& error) {
      require_device(entry, error.what());
      return {.problem = error.what(), .lasting = false};
    }
  }

 private:
  KernelTrial time(const KernelEntry& entry) {
    const auto kernel = entry.prepare(query_, device_);
    const auto scratch = device_.allocate(kernel->scratch_bytes());
    const std::function<void(Stream*)> run = [&](Stream* stream) {
      kernel->run(operands_.args(scratch->data(), stream));
    };
    operands_.spoil(query_, device_);
    { const Repetition computes(device_, run, 1); }
    auto values = operands_.values(query_, device_);
    if (!trusted_) {
      trusted_ = {std::string(entry.name), std::move(values)};
    } else if (const auto where = first_disagreement(query_, values, trusted_->second);
               !where.empty()) {
      return {.problem = fmt::format("computes something else than {}: {}", trusted_->first, where),
              .wrong = true,
              .lasting = false};
    }
    const StoredOperands stored(query_, entry);
    return {.seconds =
                stored.any() ? seconds_as_stored(entry, stored.query()) : seconds_of(device_, run)};
  }

  double seconds_as_stored(const KernelEntry& entry, const KernelQuery& query) {
    const auto kernel = entry.prepare(query, device_);
    const auto scratch = device_.allocate(kernel->scratch_bytes());
    const Operands operands(query, device_);
    return seconds_of(device_,
                      [&](Stream* stream) { kernel->run(operands.args(scratch->data(), stream)); });
  }

  /// A kernel may have broken more than itself: then nothing that follows means anything.
  void require_device(const KernelEntry& entry, const char* problem) {
    try {
      device_.synchronize();
    } catch (const std::exception& error) {
      throw DeviceError(fmt::format(
          "{}: the kernel {} failed ({}) and left the device unusable ({}); the option "
          "choice table, or another kernel by the option kernel, keeps it from being tried",
          to_string(query_.op), entry.name, problem, error.what()));
    }
  }

  const ChoiceQuery& query_;
  Device& device_;
  Operands operands_;
  std::optional<std::pair<std::string, KernelValues>> trusted_;
};

/// The numbers of the candidates in the order of trust: our own before libraries', and among ours
/// the simplest first, which is last in the table.
std::vector<std::size_t> by_trust(std::span<const KernelEntry* const> candidates) {
  std::vector<std::size_t> order;
  for (auto i = candidates.size(); i-- > 0;) order.push_back(i);
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t i) { return candidates[i]->role != KernelRole::Library; });
  return order;
}

}  // namespace

std::vector<KernelTrial> DeviceStopwatch::time(std::span<const KernelEntry* const> candidates,
                                               const ChoiceQuery& query, Device& device) {
  Trials trials(query, device);
  std::vector<KernelTrial> results(candidates.size());
  for (const auto i : by_trust(candidates)) results[i] = trials.run(*candidates[i]);
  return results;
}

}  // namespace triptych
