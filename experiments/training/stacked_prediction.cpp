// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/stacked_prediction.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace triptych::training {
namespace {

/// Upper bound of the bytes of samples in one file: four per value.
std::int64_t most_bytes(const PictureFile& input, std::int64_t classes) {
  constexpr std::int64_t colours = 3;
  std::int64_t pixels = 0;
  for (std::int64_t page = 0; page < input.pages(); ++page) pixels += input.form(page).pixels();
  return 4 * std::max(colours, classes) * pixels;
}

}  // namespace

StackedPrediction::StackedPrediction(const std::vector<PredictionTarget>& targets,
                                     const RunConfig& config, const PictureFile& input,
                                     const PredictionFileOptions& options, OutputLedger& own)
    : config_(config), input_(input), options_(options), own_(own) {
  const auto bytes = most_bytes(input, config.model.classes);
  for (const auto& target : targets) {
    auto file = own.begin(target.name);
    auto pages = std::make_unique<TiffPages>(*file, bytes);
    outputs_.push_back({target, std::move(file), std::move(pages)});
  }
}

PictureNotes StackedPrediction::first_notes(const Picture& page,
                                            std::int64_t pages_of_section) const {
  return notes_for(options_.notes, page.form, input_.pages() * pages_of_section);
}

void StackedPrediction::add(const segmentation::Sample& sample, const Segmentation& predicted) {
  for (auto& output : outputs_) {
    const auto pages = tiff_pages(output.target.kind, sample, predicted, config_, options_);
    for (const auto& page : pages) {
      const bool first = output.bits == 0;
      if (!first && output.bits != page.form.bits) {
        throw InvalidArgument(
            fmt::format("its sections need {} and {} bits to number their objects, and a stack has "
                        "one depth; leave out the option stack",
                        output.bits, page.form.bits));
      }
      output.pages->write(page, first ? first_notes(page, std::ssize(pages)) : PictureNotes());
      output.bits = page.form.bits;
    }
  }
}

void StackedPrediction::finish() {
  for (auto& output : outputs_)
    own_.finish(output.target.name, *output.file, output.pages->finish());
}

}  // namespace triptych::training
