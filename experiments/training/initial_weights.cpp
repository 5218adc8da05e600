// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/initial_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <span>

#include "core/base/error.h"
#include "experiments/training/bad_number.h"
#include "experiments/training/run_folder.h"
#include "experiments/training/tensors_hash.h"

namespace triptych::training {
namespace {

bool fits(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::string text_of(const TensorSpec& spec) {
  return fmt::format("{} [{}]", to_string(spec.dtype), fmt::join(spec.shape.dims(), ", "));
}

/// The tensor of `from` that a state with this name and spec is to become, called `there` in it.
const Tensor& namesake(const TensorMap& from, const std::string& name, const std::string& there,
                       const TensorSpec& spec) {
  const auto found = from.find(there);
  if (found == from.end()) {
    const auto called = name == there ? "" : fmt::format(" for \"{}\"", name);
    throw InvalidArgument(
        fmt::format("the weights to begin with have no \"{}\"{}; to begin it anew give it by the "
                    "option init-skip",
                    there, called));
  }
  if (found->second.spec() == spec) return found->second;
  throw InvalidArgument(fmt::format(
      "\"{0}\" is {1} in the weights to begin with and {2} in this model; give the model that they "
      "are of, or begin it anew by the option init-skip",
      name, text_of(found->second.spec()), text_of(spec)));
}

}  // namespace

InitialWeights load_initial_weights(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {load_safetensors(path).tensors};
  auto run = load_trained(path);
  return {std::move(run.states), std::move(run.notes)};
}

TakenWeights take_weights(TensorMap& states, const TensorMap& from, const WeightChoice& choice) {
  std::vector<std::string> unused = choice.skip, kept, names;
  TensorsHash hash;
  std::size_t taken = 0;
  for (auto& [name, state] : states) {
    if (choice.is_optimizers(name)) continue;
    names.push_back(name);
    const auto fits_name = [&name = name](const std::string& pattern) {
      return fits(pattern, name);
    };
    std::erase_if(unused, fits_name);
    if (std::ranges::any_of(choice.skip, fits_name)) {
      kept.push_back(name);
      continue;
    }
    const auto there = choice.names.there(name);
    state = namesake(from, name, there, state.spec()).clone();
    if (const auto bad = bad_number_in(state)) {
      throw InvalidArgument(fmt::format(
          "\"{}\" of \"{}\" holds {}, from which nothing can be trained; give other weights, or "
          "begin it anew by the option init-skip",
          there, choice.source, *bad));
    }
    hash.add(name, state);
    ++taken;
  }
  if (!unused.empty()) {
    throw InvalidArgument(fmt::format("the option init-skip: \"{}\" fits no parameter of the model",
                                      fmt::join(unused, "\", \"")));
  }
  if (const auto wrong = choice.names.unused(names); !wrong.empty()) {
    throw InvalidArgument(
        fmt::format("the option init-names: \"{}\" fits no parameter of the model",
                    fmt::join(wrong, "\", \"")));
  }
  auto text = fmt::format("{} parameters and statistics are taken, the optimiser is new", taken);
  if (!kept.empty()) text += fmt::format("; begun anew: {}", fmt::join(kept, ", "));
  return {std::move(text), hash.finish()};
}

}  // namespace triptych::training
