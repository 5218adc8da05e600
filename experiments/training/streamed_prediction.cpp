// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/streamed_prediction.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <span>

#include "core/base/error.h"
#include "core/io/tiff_stream.h"

namespace triptych::training {
namespace {

constexpr std::int64_t kRows = 256;  ///< of the band that statistics are computed from

/// One file while it grows.
struct Output {
  PredictionTarget target;
  OutputLedger::Draft file;
  std::unique_ptr<TiffStream> stream;
};

PictureForm form_of(PredictionFile kind, segmentation::Size size,
                    const std::vector<std::uint16_t>& values) {
  const bool floating = kind == PredictionFile::Probabilities;
  const int integer_bits = std::ranges::max(values) > 255 ? 16 : 8;
  return {.width = size.width,
          .height = size.height,
          .bits = floating ? 32 : integer_bits,
          .floating = floating};
}

std::vector<float> mask_of(const Segmentation& band, const std::vector<std::uint16_t>& values) {
  std::vector<float> samples(band.classes.size());
  std::ranges::transform(band.classes, samples.begin(),
                         [&](std::uint8_t label) { return static_cast<float>(values[label]); });
  return samples;
}

}  // namespace

StreamedPrediction::StreamedPrediction(Segmenter& segmenter, const SavedRun& run, PictureFile& file,
                                       std::int64_t page)
    : segmenter_(segmenter), run_(run), file_(file), page_(page) {}

segmentation::Size StreamedPrediction::size() const {
  return {file_.form(page_).height, file_.form(page_).width};
}

std::string StreamedPrediction::obstacle(const std::vector<PredictionTarget>& targets,
                                         const PredictionFileOptions& options,
                                         TestTime test_time) const {
  if (!file_.is_tiff()) return "only a TIFF can be read in parts";
  if (options.format != PictureFormat::Tiff)
    return "only TIFF files can be written in parts; give the option format tiff";
  if (test_time != TestTime::None) return "the option tta needs it whole; leave it out";
  for (const auto& target : targets) {
    if (target.kind == PredictionFile::Mask) continue;
    if (target.kind != PredictionFile::Probabilities)
      return fmt::format("{} need it whole; save mask and probabilities", name_of(target.kind));
    if (run_.config.model.classes > 1)
      return "probabilities of several classes are a page each, one after another; save the mask";
  }
  return {};
}

std::int64_t StreamedPrediction::bytes(std::size_t targets) const {
  const auto rows = kRows * size().width * 4;
  const auto written = static_cast<std::int64_t>(targets) * 2 * rows;
  return segmenter_.stream_bytes(size()) + rows * file_.form(page_).channels + written +
         file_.block_bytes(page_);
}

std::string StreamedPrediction::prepare() {
  const auto channels = run_.config.model.in_channels;
  const auto [height, width] = size();
  const auto how = run_.config.data.normalization();
  const auto visit = [&, height = height, width = width](const segmentation::TakeValues& take) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t top = 0; top < height; top += kRows) {
        const auto rows = std::min(kRows, height - top);
        const auto sample = segmentation::load_rows(file_, page_, channels, {top, rows});
        take(c, std::span(sample.image)
                    .subspan(static_cast<std::size_t>(c * rows * width),
                             static_cast<std::size_t>(rows * width)));
      }
    }
  };
  const auto values = segmentation::values_of(visit, channels, how);
  if (!how.by_itself()) return segmentation::range_warning(values, run_.normalization);
  own_ = values.normalization;
  return {};
}

void StreamedPrediction::write(const std::vector<PredictionTarget>& targets,
                               const PredictionFileOptions& options, OutputLedger& own) {
  const auto values = mask_values(run_.config, options.values);
  std::vector<Output> outputs;
  for (const auto& target : targets) {
    const auto form = form_of(target.kind, size(), values);
    auto file = own.begin(target.name);
    auto stream = std::make_unique<TiffStream>(*file, form, notes_for(file_.notes(), form, 1));
    outputs.push_back({target, std::move(file), std::move(stream)});
  }
  const bool by_itself = run_.config.data.normalization().by_itself();
  segmenter_.stream(
      size(),
      [&](const segmentation::Band& band) {
        auto sample = segmentation::load_rows(file_, page_, run_.config.model.in_channels, band);
        if (by_itself) sample.image = segmentation::normalized(sample, own_);
        return sample;
      },
      [&](const Segmentation& band) {
        for (auto& output : outputs) {
          const bool mask = output.target.kind == PredictionFile::Mask;
          output.stream->write_rows(mask ? mask_of(band, values) : band.probabilities);
        }
      });
  for (auto& output : outputs)
    own.finish(output.target.name, *output.file, output.stream->finish());
}

}  // namespace triptych::training
