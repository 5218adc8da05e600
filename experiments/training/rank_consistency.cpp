// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/rank_consistency.h"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "core/io/sha256.h"
#include "experiments/training/run_arrays.h"
#include "experiments/training/run_options.h"

namespace triptych::training {
namespace {

using Json = nlohmann::json;

void add_json(Facts& facts, const std::string& text) {
  const auto fields = Json::parse(text).flatten();
  for (const auto& [pointer, value] : fields.items()) {
    auto name = pointer.substr(1);
    std::ranges::replace(name, '/', '.');
    if (!is_per_process(name)) facts[name] = value.dump();
  }
}

/// Name of a fact: "parallel.order" for one of the ranks.
std::string fact_of(const RunOption& option) {
  const auto* prefix = option.group == OptionGroup::Ranks ? "parallel." : "";
  return prefix + std::string(option.field);
}

void add_machine(Facts& facts, ExecutionConfig config) {
  const bool exact = config.contract == Contract::Bf16Exact || config.contract == Contract::Int8;
  for (const auto& option : run_options()) {
    const auto value = value_in(option, config);
    const bool compared =
        option.ranks == RankPolicy::Same || (option.ranks == RankPolicy::SameBits && !exact);
    if (value && compared) facts[fact_of(option)] = text_of(*value);
  }
}

void add_dataset(Sha256& hash, const segmentation::Dataset& dataset,
                 const std::function<void()>& on_sample) {
  const auto add = [&hash](const auto& values) { hash.update(std::as_bytes(std::span(values))); };
  add(dataset.labels);
  if (dataset.arrays) add(sha256_of(*dataset.arrays));
  for (std::size_t i = 0; i < dataset.samples.size(); ++i) {
    const auto whole = dataset.whole(i);
    const auto& sample = *whole;
    on_sample();
    const std::int64_t sizes[] = {std::ssize(sample.name), sample.channels, sample.height,
                                  sample.width};
    add(sizes);
    add(sample.name);
    add(sample.image);
    add(sample.labels);
    if (dataset.arrays) add(std::array{sample.place});
  }
}

/// Value of a fact, or that it is not there.
std::string value_of(const Facts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? "nothing" : found->second.empty() ? "\"\"" : found->second;
}

/// Every fact that differs, as lines.
std::string differences(const Facts& first, const Facts& other) {
  std::set<std::string> names;
  for (const auto* facts : {&first, &other})
    for (const auto& [name, value] : *facts) names.insert(name);
  std::string lines;
  for (const auto& name : names) {
    if (value_of(first, name) == value_of(other, name)) continue;
    lines += fmt::format("\n  {}: {} on rank 0, {} there", name, value_of(first, name),
                         value_of(other, name));
  }
  return lines;
}

}  // namespace

Facts facts_of(const RunConfig& config, const ExecutionConfig& machine) {
  Facts facts;
  add_json(facts, to_json(config));
  add_machine(facts, machine);
  return facts;
}

std::string digest_of(const TrainingData& data, const std::function<void()>& on_sample) {
  Sha256 hash;
  add_dataset(hash, data.train, on_sample);
  hash.update(std::as_bytes(std::span("validation")));
  add_dataset(hash, data.validation, on_sample);
  return hash.finish();
}

void require_rank_consistency(parallel::Communicator& communicator, const Facts& own) {
  const auto texts = communicator.gather_texts(Json(own).dump(), "options");
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const auto lines =
        differences(Json::parse(texts[0]).get<Facts>(), Json::parse(texts[rank]).get<Facts>());
    throw InvalidArgument(fmt::format(
        "rank {} was started otherwise than rank 0; give all processes the same options, data and "
        "checkpoint:{}",
        rank, lines));
  }
}

}  // namespace triptych::training
