// SPDX-License-Identifier: Apache-2.0
#include "core/base/nearest_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

namespace triptych {
namespace {

/// Words of other programs, each with a name of this one. Of several names for one word the first
/// that is known counts.
constexpr auto kSynonyms = std::to_array<std::pair<std::string_view, std::string_view>>({
    // options
    {"batchsize", "batch"},
    {"batch-size", "batch"},
    {"bs", "batch"},
    {"checkpoint", "resume"},
    {"ckpt", "resume"},
    {"clobber", "overwrite"},
    {"continue", "resume"},
    {"dataset", "data"},
    {"dataset", "input"},
    {"data-dir", "data"},
    {"device", "backend"},
    {"devices", "backends"},
    {"dtype", "contract"},
    {"force", "overwrite"},
    {"gpu", "backend"},
    {"hardware", "backend"},
    {"image-size", "size"},
    {"img-size", "size"},
    {"imgsz", "size"},
    {"criterion", "loss"},
    {"jobs", "threads"},
    {"labels-dir", "masks"},
    {"learning-rate", "lr"},
    {"log-level", "verbose"},
    {"max-epochs", "epochs"},
    {"max-steps", "steps"},
    {"n-epochs", "epochs"},
    {"no-color", "color"},
    {"no-colour", "color"},
    {"colour", "color"},
    {"nproc", "ranks"},
    {"np", "ranks"},
    {"num-classes", "classes"},
    {"num-epochs", "epochs"},
    {"num-threads", "threads"},
    {"num-workers", "threads"},
    {"optim", "optimizer"},
    {"optimiser", "optimizer"},
    {"output", "out"},
    {"output-file", "out"},
    {"output-dir", "out"},
    {"outdir", "out"},
    {"parallel", "strategy"},
    {"precision", "contract"},
    {"pretrained", "init"},
    {"processes", "ranks"},
    {"save-dir", "out"},
    {"save-every", "checkpoint-every"},
    {"scheduler", "schedule"},
    {"silent", "quiet"},
    {"train-images", "images"},
    {"val-fraction", "validation"},
    {"val-split", "validation"},
    {"wd", "weight-decay"},
    {"weights", "init"},
    {"workers", "threads"},
    {"world-size", "ranks"},
    // commands
    {"autotune", "calibrate"},
    {"benchmark", "bench"},
    {"convert", "export"},
    {"crossval", "cross-validate"},
    {"cv", "cross-validate"},
    {"diff", "compare"},
    {"eval", "evaluate"},
    {"fit", "train"},
    {"generate", "synthesize"},
    {"info", "doctor"},
    {"infer", "run"},
    {"inference", "run"},
    {"kfold", "cross-validate"},
    {"list", "devices"},
    {"lr-find", "find-lr"},
    {"lr-finder", "find-lr"},
    {"mpirun", "launch"},
    {"predict", "run"},
    {"profile", "bench"},
    {"quantise", "quantize"},
    {"report", "page"},
    {"score", "evaluate"},
    {"segment", "run"},
    {"simulate", "trace"},
    {"synthesise", "synthesize"},
    {"test", "evaluate"},
    {"time", "bench"},
    {"torchrun", "launch"},
    {"validate", "evaluate"},
    // values
    {"bfloat16", "bf16"},
    {"emulated", "cuda-emulated"},
    {"float", "f32"},
    {"float32", "f32"},
    {"fp32", "f32"},
    {"gpu", "cuda"},
    {"host", "cpu"},
    {"nvidia", "cuda"},
    {"tpu", "systolic"},
    {"unet", "unet-s"},
    {"x86", "cpu"},
});

std::string_view without_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

/// The word as names are written.
std::string plain(std::string_view word) {
  std::string text(without_dashes(word));
  for (char& letter : text) {
    letter = letter == '_' || letter == ' '
                 ? '-'
                 : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

/// Insertions, deletions, substitutions and transpositions of neighbours (optimal string
/// alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t other = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + other});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

/// Edits up to which a word of that length is a misspelt name.
std::size_t most_edits(std::size_t length) {
  return length < 2 ? 0 : length < 5 ? 1 : length < 9 ? 2 : 3;
}

/// Fewer edits first. Then the same letters, the same first letter, and the same length.
using Cost = std::tuple<std::size_t, bool, bool, std::size_t>;

std::optional<Cost> cost_of(const std::string& word, const std::string& name) {
  auto letters = word, others = name;
  std::ranges::sort(letters);
  std::ranges::sort(others);
  const auto longer = std::max(word.size(), name.size()) - std::min(word.size(), name.size());
  const bool begins = word.size() > 2 && name.starts_with(word);
  const auto edits = begins ? std::min<std::size_t>(1, longer) : distance(word, name);
  if (edits > most_edits(word.size())) return std::nullopt;
  return Cost(edits, letters != others, !name.starts_with(word.front()), longer);
}

std::string synonym(std::string_view word, const std::vector<std::string>& names) {
  for (const auto& [other, own] : kSynonyms) {
    if (other != word) continue;
    const auto name = std::ranges::find(names, own, without_dashes);
    if (name != names.end()) return *name;
  }
  return {};
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  if (std::ranges::count(names, word) > 0) return std::string(word);
  const auto asked = plain(word);
  const auto same = std::ranges::find(names, asked, plain);
  if (same != names.end()) return *same;
  if (auto meant = synonym(asked, names); !meant.empty()) return meant;
  std::string nearest;
  std::optional<Cost> best;
  for (const auto& name : names) {
    const auto cost = cost_of(asked, plain(name));
    if (!cost || (best && *cost >= *best)) continue;
    best = cost;
    nearest = name;
  }
  return nearest;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  const auto name = nearest_name(word, names);
  return name.empty() ? std::string() : fmt::format("; did you mean \"{}\"?", name);
}

}  // namespace triptych
