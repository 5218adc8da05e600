// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kernel_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace triptych {
namespace {

using Json = nlohmann::json;

/// storable: true where a plan may store the operand channels last.
std::string list_of(std::span<const Operand> operands, const std::vector<bool>& storable) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto& operand = operands[i];
    list.push_back(operand.is_dense()
                       ? to_string(operand.spec)
                       : fmt::format("{} by {}", to_string(operand.spec), operand.outer_stride));
    if (i < storable.size() && storable[i]) list.back() += " storable";
  }
  return fmt::format("{}", fmt::join(list, ", "));
}

/// Seconds by kernel, or the reason why it has none.
Json words_of(std::span<const KernelEntry* const> candidates,
              const std::vector<KernelTrial>& trials) {
  Json times = Json::object();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    auto& time = times[std::string(candidates[i]->name)];
    if (trials[i].problem.empty()) {
      time = trials[i].seconds;
    } else {
      time = trials[i].problem;
    }
  }
  return times;
}

/// True when a text from the cache holds a time or a reason for each candidate.
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

KernelChoice MeasuringChooser::choose(const ChoiceQuery& query, Device& device,
                                      std::span<const KernelEntry* const> candidates) {
  if (candidates.size() == 1) return {candidates.front(), ""};
  const auto key = measurement_key(query, device, candidates);
  const auto kept = cache_.find(key);
  Json times = kept ? Json::parse(*kept, nullptr, /*allow_exceptions=*/false) : Json();
  const bool known = is_complete(times, candidates);
  bool failed = false;
  if (!known) {
    const auto trials = stopwatch_.time(candidates, query, device);
    times = words_of(candidates, trials);
    failed = !std::ranges::all_of(trials, &KernelTrial::lasting);
    if (!failed) cache_.insert(key, times.dump());
    for (std::size_t i = 0; i < trials.size(); ++i) {
      if (!trials[i].wrong || !tell_) continue;
      tell_(fmt::format("{}: the kernel {} is left out: {}", to_string(query.op),
                        candidates[i]->name, trials[i].problem));
    }
  }
  const auto words = words_for(times, candidates);
  const auto* best = fastest(times, candidates);
  if (best == nullptr) {
    const auto message = fmt::format("{}: no kernel can run: {}", to_string(query.op), words);
    if (failed) throw DeviceError(message);
    throw UnsupportedError(message);
  }
  return {best, fmt::format("{}: {}", known ? "measured before" : "measured now", words)};
}

std::string measurement_key(const ChoiceQuery& query, const Device& device,
                            std::span<const KernelEntry* const> candidates) {
  std::vector<std::string_view> names;
  for (const auto* entry : candidates) names.push_back(entry->name);
  const auto& info = device.info();
  const auto backend = info.name.substr(0, info.name.find(':'));
  const auto& storable = query.storable;
  return fmt::format(
      "kernel times as stored, values compared | {} | {} {} | {} | {} -> {} | {} | {}", backend,
      info.description, to_properties(info.facts), to_string(query.op),
      list_of(query.inputs, storable.inputs), list_of(query.outputs, {storable.output}),
      to_string(query.contract), fmt::join(names, ", "));
}

}  // namespace triptych
