// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/quantizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include "core/graph/passes/quantize.h"
#include "experiments/training/inference_graph.h"

namespace triptych::training {
namespace {

// Without its sign, the upper half of a float32: 8 bits of exponent and 7 of the fraction.
constexpr int kDroppedBits = 16;
constexpr std::size_t kBins = std::size_t{1} << (31 - kDroppedBits);

/// Ranges of all that int8 needs of the run's network, from one pass over the images.
Ranges calibrate(const DeviceSet& machine, const SavedRun& run,
                 std::span<const std::shared_ptr<const segmentation::Sample>> images,
                 double percentile) {
  std::map<std::string, Magnitudes, std::less<>> magnitudes;
  Predictor predictor(machine, run.config.model, run.states, {run.config.tile, run.config.margin});
  predictor.observe([&](const Executor& executor) {
    for (const auto& name : values_to_calibrate(executor.plan().graph)) {
      magnitudes[name].add(executor.output(name).as<float>());
    }
  });
  for (const auto& sample : images) {
    predictor.logits(segmentation::normalized(*sample, run.normalization),
                     {sample->height, sample->width});
  }
  Ranges ranges;
  for (const auto& [name, values] : magnitudes) ranges[name] = values.percentile(percentile);
  return ranges;
}

}  // namespace

Magnitudes::Magnitudes() : counts_(kBins, 0) {}

void Magnitudes::add(std::span<const float> values) {
  for (const float value : values) {
    // Magnitudes are ordered as their bits are. NaNs come last.
    const auto bits = std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
    ++counts_[bits >> kDroppedBits];
    largest_bits_ = std::max(largest_bits_, bits);
  }
  total_ += std::ssize(values);
}

float Magnitudes::percentile(double percent) const {
  if (percent >= 100) return std::bit_cast<float>(largest_bits_);
  const auto wanted = percent / 100 * static_cast<double>(total_);
  std::int64_t counted = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    counted += counts_[bin];
    if (counted == 0 || static_cast<double>(counted) < wanted) continue;
    const auto end = static_cast<std::uint32_t>((bin + 1) << kDroppedBits) - 1;
    return std::bit_cast<float>(std::min(end, largest_bits_));
  }
  return 0;
}

std::vector<std::shared_ptr<const segmentation::Sample>> spread_samples(
    const segmentation::Dataset& dataset, std::int64_t count) {
  const auto all = std::ssize(dataset.samples);
  const auto taken = std::min(count, all);
  std::vector<std::shared_ptr<const segmentation::Sample>> samples;
  for (std::int64_t i = 0; i < taken; ++i) {
    samples.push_back(dataset.whole(static_cast<std::size_t>(i * all / taken)));
  }
  return samples;
}

TensorMap quantize_run(const DeviceSet& machine, const SavedRun& run,
                       std::span<const std::shared_ptr<const segmentation::Sample>> images,
                       double percentile) {
  const auto side = run.config.model.size;
  const auto graph = frozen_graph(run.config.model, {side, side}, run.states, Contract::F32);
  values_to_calibrate(graph);  // refuses a model before the work on the images
  const auto quantized = quantize(graph, calibrate(machine, run, images, percentile));
  TensorMap states;
  for (const auto id : quantized.values_of(ValueKind::State)) {
    const auto& value = quantized.value(id);
    states.emplace(value.name, value.data->clone());
  }
  return states;
}

segmentation::Scores evaluate(Predictor& predictor, const SavedRun& run,
                              const segmentation::Dataset& samples) {
  const auto classes = run.config.model.classes;
  segmentation::Scorer scorer(std::max<std::int64_t>(2, classes));
  for (std::size_t i = 0; i < samples.samples.size(); ++i) {
    const auto sample = samples.whole(i);
    const auto logits = predictor.logits(segmentation::normalized(*sample, run.normalization),
                                         {sample->height, sample->width});
    scorer.add(segmentation::classes_from_logits(logits, classes), sample->labels);
  }
  return scorer.scores();
}

ExecutionConfig machine_for(const SavedRun& run, const std::filesystem::path& folder,
                            ExecutionConfig config, bool given) {
  const bool quantized = run.machine.contract == Contract::Int8;
  if (quantized && given && config.contract != Contract::Int8) {
    throw InvalidArgument(
        fmt::format("the weights in \"{}\" are int8; leave out the option contract, or give the "
                    "run they come from",
                    folder.string()));
  }
  if (!quantized && config.contract == Contract::Int8) {
    throw InvalidArgument(fmt::format(
        "the weights in \"{}\" are float32; give those that triptych quantize makes of them",
        folder.string()));
  }
  if (quantized) config.contract = Contract::Int8;
  return config;
}

}  // namespace triptych::training
