// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/strategy.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "core/base/error.h"

namespace triptych::parallel {
namespace {

/// 0 when it is none.
int number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : 0;
}

/// The positive numbers behind the colon. None when something else is there.
std::vector<int> numbers_of(std::string_view text) {
  std::vector<int> numbers;
  auto rest = text.substr(std::min(text.size(), text.find(':')));
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const auto comma = std::min(rest.size(), rest.find(','));
    numbers.push_back(number_of(rest.substr(0, comma)));
    if (numbers.back() < 1) return {};
    rest.remove_prefix(comma);
  }
  return numbers;
}

/// "8", "8,1f1b" or "8,gpipe".
std::optional<Strategy> pipeline_from_string(std::string_view text) {
  const auto comma = std::min(text.size(), text.find(','));
  Strategy strategy = {.kind = Strategy::Kind::Pipeline,
                       .micro_batches = number_of(text.substr(0, comma))};
  if (strategy.micro_batches < 1) return std::nullopt;
  if (comma == text.size()) return strategy;
  for (const auto& [order, name] : kNamesOf<PipelineOrder>) {
    strategy.order = order;
    if (text.substr(comma + 1) == name) return strategy;
  }
  return std::nullopt;
}

std::string pipeline_text(const Strategy& strategy) {
  if (strategy.order == PipelineOrder::GPipe)
    return fmt::format("pipeline:{},{}", strategy.micro_batches, name_of(strategy.order));
  return strategy.micro_batches == 1 ? "layers"
                                     : fmt::format("pipeline:{}", strategy.micro_batches);
}

std::string async_text(const Strategy& strategy) {
  if (strategy.kind == Strategy::Kind::AsyncServer) {
    return strategy.bound == Strategy::kBound ? "ps-async"
                                              : fmt::format("ps-async:{}", strategy.bound);
  }
  if (strategy.bound != Strategy::kBound)
    return fmt::format("local-sgd-async:{},{}", strategy.period, strategy.bound);
  return strategy.period == Strategy::kAsyncPeriod
             ? "local-sgd-async"
             : fmt::format("local-sgd-async:{}", strategy.period);
}

}  // namespace

Strategy strategy_without_mesh(std::string_view text) {
  using Kind = Strategy::Kind;
  const auto arguments = numbers_of(text);
  if (text == "dp") return {};
  for (int stage = 1; stage <= 3; ++stage) {
    if (text != fmt::format("zero{}", stage)) continue;
    return {.kind = Kind::Sharded, .shard_stage = stage};
  }
  if (text == "tp") return {.kind = Kind::Tensor};
  if (text == "ddp2d") return {.kind = Kind::Hierarchical};
  if (text == "ps-sync") return {.kind = Kind::Server};
  if (text == "central") return {.kind = Kind::Central};
  if (text.starts_with("local-sgd:") && arguments.size() == 1)
    return {.kind = Kind::LocalSgd, .period = arguments[0]};
  if (text == "local-sgd-async")
    return {.kind = Kind::AsyncLocalSgd, .period = Strategy::kAsyncPeriod};
  if (text == "ps-async") return {.kind = Kind::AsyncServer};
  if (text.starts_with("ps-async:") && arguments.size() == 1)
    return {.kind = Kind::AsyncServer, .bound = arguments[0]};
  if (text.starts_with("local-sgd-async:") && (arguments.size() == 1 || arguments.size() == 2)) {
    return {.kind = Kind::AsyncLocalSgd,
            .period = arguments[0],
            .bound = arguments.size() == 2 ? arguments[1] : Strategy::kBound};
  }
  if (text == "layers") return {.kind = Kind::Pipeline};
  if (text.starts_with("pipeline:")) {
    if (const auto strategy = pipeline_from_string(text.substr(text.find(':') + 1)))
      return *strategy;
  }
  throw InvalidArgument(fmt::format(
      "no strategy \"{}\"; choose from: dp, zero1, zero2, zero3, layers, pipeline:MICRO-BATCHES, "
      "pipeline:MICRO-BATCHES,gpipe, tp, ps-sync, ps-async, ps-async:BOUND, central, "
      "local-sgd:STEPS, local-sgd-async, local-sgd-async:STEPS, local-sgd-async:STEPS,BOUND, ddp2d",
      text));
}

std::string to_string(const Strategy& strategy) {
  switch (strategy.kind) {
    case Strategy::Kind::Replicated:
      return "dp";
    case Strategy::Kind::Sharded:
      return fmt::format("zero{}", strategy.shard_stage);
    case Strategy::Kind::Pipeline:
      return pipeline_text(strategy);
    case Strategy::Kind::Server:
      return "ps-sync";
    case Strategy::Kind::Central:
      return "central";
    case Strategy::Kind::LocalSgd:
      return fmt::format("local-sgd:{}", strategy.period);
    case Strategy::Kind::Hierarchical:
      return "ddp2d";
    case Strategy::Kind::Tensor:
      return "tp";
    case Strategy::Kind::AsyncServer:
    case Strategy::Kind::AsyncLocalSgd:
      return async_text(strategy);
  }
  return "";
}

void validate(const Strategy& strategy) {
  using Kind = Strategy::Kind;
  std::vector<std::string_view> names;
  for (const auto& axis : strategy.mesh.axes()) names.push_back(axis.name);
  const auto has = [&](std::string_view a, std::string_view b) {
    return std::ranges::is_permutation(names, std::array{a, b});
  };
  const bool fits = strategy.kind == Kind::Pipeline       ? names.empty() || has("dp", "pp")
                    : strategy.kind == Kind::Tensor       ? names.empty() || has("dp", "tp")
                    : strategy.kind == Kind::Hierarchical ? has("node", "device")
                                                          : names.empty();
  if (fits) return;
  throw InvalidArgument(
      fmt::format("the strategy \"{}\" does not go with the mesh \"{}\"; pipelines go with "
                  "dp=2,pp=2, tp with dp=2,tp=2 and ddp2d with node=2,device=2",
                  to_string(strategy), to_string(strategy.mesh)));
}

Strategy strategy_from_string(std::string_view text, std::string_view mesh) {
  auto strategy = strategy_without_mesh(text);
  strategy.mesh = mesh_from_string(mesh);
  validate(strategy);
  return strategy;
}

bool asynchronous(const Strategy& strategy) {
  return strategy.kind == Strategy::Kind::AsyncServer ||
         strategy.kind == Strategy::Kind::AsyncLocalSgd;
}

}  // namespace triptych::parallel
