// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kernel_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/random.h"
#include "core/runtime/segment_id.h"

namespace triptych {
namespace {

using Json = nlohmann::json;

constexpr double kSampleSeconds = 1e-3;
constexpr int kSamples = 5;
constexpr int kMostRuns = 1000;
constexpr std::size_t kPatternBytes = std::size_t{1} << 20;

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
        fill(device, *buffers_.back(), i);
      }
    }
    for (const auto& output : query.outputs) {
      buffers_.push_back(device.allocate(bytes_of(output)));
      outputs_.push_back(buffers_.back()->data());
    }
  }

  void add_scratch(Device& device, std::size_t bytes) {
    buffers_.push_back(device.allocate(bytes));
    scratch_ = buffers_.back()->data();
  }

  KernelArgs args(Stream* stream) const { return {inputs_, outputs_, scratch_, stream}; }

 private:
  static std::size_t bytes_of(const Operand& operand) {
    const auto& shape = operand.spec.shape;
    const auto elements = shape.rank() == 0 || shape[0] == 0
                              ? shape.elements()
                              : std::max(shape.elements(), operand.outer_stride * shape[0]);
    return static_cast<std::size_t>(elements) * dtype_size(operand.spec.dtype);
  }

  /// A pattern of noise, again and again.
  static void fill(Device& device, DeviceBuffer& buffer, std::uint64_t seed) {
    RandomStream random(1, seed);
    std::vector<float> pattern(std::min(buffer.size(), kPatternBytes) / sizeof(float));
    for (auto& value : pattern) value = 2 * random.uniform() - 1;
    const auto bytes = pattern.size() * sizeof(float);
    for (std::size_t done = 0; bytes > 0 && done + sizeof(float) <= buffer.size(); done += bytes) {
      device.upload(buffer.data() + done, reinterpret_cast<const std::byte*>(pattern.data()),
                    std::min(bytes, buffer.size() - done));
    }
  }

  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  std::byte* scratch_ = nullptr;
};

/// `runs` runs of a kernel as one segment of work.
class Repetition {
 public:
  Repetition(Device& device, Kernel& kernel, const Operands& operands, int runs)
      : device_(device), id_(next_segment_id()), enqueue_([&kernel, &operands, runs](Stream* s) {
          for (int i = 0; i < runs; ++i) kernel.run(operands.args(s));
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
  Device& device_;
  int id_;
  std::function<void(Stream*)> enqueue_;
};

std::string list_of(std::span<const Operand> operands) {
  std::vector<std::string> list;
  for (const auto& operand : operands) {
    list.push_back(operand.is_dense()
                       ? to_string(operand.spec)
                       : fmt::format("{} by {}", to_string(operand.spec), operand.outer_stride));
  }
  return fmt::format("{}", fmt::join(list, ", "));
}

/// Seconds by kernel, or the reason why it has none.
Json measure(KernelStopwatch& stopwatch, const KernelQuery& query, Device& device,
             std::span<const KernelEntry* const> candidates) {
  Json times = Json::object();
  for (const auto* entry : candidates) {
    try {
      times[std::string(entry->name)] = stopwatch.time(*entry, query, device);
    } catch (const UnsupportedError& error) {
      times[std::string(entry->name)] = error.what();
    }
  }
  return times;
}

/// Does a text from the cache hold a time or a reason for each candidate?
bool is_complete(const Json& times, std::span<const KernelEntry* const> candidates) {
  return times.is_object() && std::ranges::all_of(candidates, [&](const KernelEntry* entry) {
           const auto found = times.find(std::string(entry->name));
           return found != times.end() && (found->is_string() || found->is_number());
         });
}

std::string words_for(const Json& times, std::span<const KernelEntry* const> candidates) {
  std::vector<std::string> words;
  for (const auto* entry : candidates) {
    const auto& time = times.at(std::string(entry->name));
    words.push_back(time.is_string()
                        ? fmt::format("{}: {}", entry->name, time.get<std::string>())
                        : fmt::format("{} {:.4g} us", entry->name, time.get<double>() * 1e6));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

const KernelEntry* fastest(const Json& times, std::span<const KernelEntry* const> candidates) {
  const KernelEntry* best = nullptr;
  for (const auto* entry : candidates) {
    const auto& time = times.at(std::string(entry->name));
    if (!time.is_number()) continue;
    if (best == nullptr || time < times.at(std::string(best->name))) best = entry;
  }
  return best;
}

}  // namespace

double DeviceStopwatch::time(const KernelEntry& entry, const KernelQuery& query, Device& device) {
  const auto kernel = entry.prepare(query, device);
  Operands operands(query, device);
  operands.add_scratch(device, kernel->scratch_bytes());
  const double once = Repetition(device, *kernel, operands, 1).seconds();
  const int runs =
      once * kMostRuns <= kSampleSeconds
          ? kMostRuns
          : static_cast<int>(std::clamp(kSampleSeconds / once, 1.0, double{kMostRuns}));
  Repetition repetition(device, *kernel, operands, runs);
  double best = repetition.seconds();
  for (int sample = 1; sample < kSamples; ++sample) best = std::min(best, repetition.seconds());
  return best / runs;
}

KernelChoice MeasuringChooser::choose(const KernelQuery& query, Device& device,
                                      std::span<const KernelEntry* const> candidates) {
  if (candidates.size() == 1) return {candidates.front(), ""};
  const auto key = measurement_key(query, device, candidates);
  const auto kept = cache_.find(key);
  Json times = kept ? Json::parse(*kept, nullptr, /*allow_exceptions=*/false) : Json();
  const bool known = is_complete(times, candidates);
  if (!known) {
    times = measure(stopwatch_, query, device, candidates);
    cache_.insert(key, times.dump());
  }
  const auto words = words_for(times, candidates);
  const auto* best = fastest(times, candidates);
  if (best == nullptr) {
    throw UnsupportedError(
        fmt::format("{}: no kernel could be prepared: {}", to_string(query.op), words));
  }
  return {best, fmt::format("{}: {}", known ? "measured before" : "measured now", words)};
}

std::string measurement_key(const KernelQuery& query, const Device& device,
                            std::span<const KernelEntry* const> candidates) {
  std::vector<std::string_view> names;
  for (const auto* entry : candidates) names.push_back(entry->name);
  const auto& info = device.info();
  const auto backend = info.name.substr(0, info.name.find(':'));
  return fmt::format("kernel times | {} | {} {} | {} | {} -> {} | {} | {}", backend,
                     info.description, info.properties, to_string(query.op), list_of(query.inputs),
                     list_of(query.outputs), to_string(query.contract), fmt::join(names, ", "));
}

}  // namespace triptych
