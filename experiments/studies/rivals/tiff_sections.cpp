// Sections of 1024 x 1024 pixels from TIFF stacks, as training reads them (float planes) and by
// libtiff alone (bytes). Bytes per second are those of the decoded file, of one thread.
//   tiff_sections_bench [--benchmark_filter=REGEX]
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <tiffio.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/base/random.h"
#include "core/io/picture.h"
#include "core/io/temporary_folder.h"

namespace {

constexpr std::uint32_t kSide = 1024, kRows = 64;
constexpr int kSections = 16;

/// Blobs with noise of a few grey levels, so that they compress about as micrographs do.
std::vector<std::uint8_t> section(std::uint64_t seed) {
  triptych::RandomStream random(seed, 0);
  std::vector<std::uint8_t> pixels;
  pixels.reserve(std::size_t{kSide} * kSide);
  for (std::uint32_t y = 0; y < kSide; ++y) {
    for (std::uint32_t x = 0; x < kSide; ++x) {
      const auto blob = (x / 32 * 5 + y / 32 * 3 + seed) % 7 * 25;
      pixels.push_back(
          static_cast<std::uint8_t>(blob + static_cast<std::uint64_t>(random.below(8))));
    }
  }
  return pixels;
}

void write_stack(const std::filesystem::path& path, int compression) {
  TIFF* tiff = TIFFOpen(path.c_str(), "w");
  for (int page = 0; page < kSections; ++page) {
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, kSide);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, kSide);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, compression);
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, kRows);
    auto pixels = section(static_cast<std::uint64_t>(page));
    for (std::uint32_t strip = 0; strip < kSide / kRows; ++strip)
      TIFFWriteEncodedStrip(tiff, strip, pixels.data() + strip * kRows * kSide, kRows * kSide);
    TIFFWriteDirectory(tiff);
  }
  TIFFClose(tiff);
}

void count(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * kSections * kSide * kSide);
}

void here(benchmark::State& state, int compression) {
  const triptych::TemporaryFolder folder("bench");
  write_stack(folder.path() / "stack.tif", compression);
  triptych::PictureFile file(folder.path() / "stack.tif");
  for (auto _ : state) {
    for (int page = 0; page < kSections; ++page)
      benchmark::DoNotOptimize(triptych::to_planes(file.read(page), 1).data());
  }
  count(state);
}

void libtiff(benchmark::State& state, int compression) {
  const triptych::TemporaryFolder folder("bench");
  write_stack(folder.path() / "stack.tif", compression);
  TIFF* tiff = TIFFOpen((folder.path() / "stack.tif").c_str(), "rm");
  std::vector<std::uint8_t> pixels(std::size_t{kSide} * kSide);
  for (auto _ : state) {
    TIFFSetDirectory(tiff, 0);
    do {
      for (std::uint32_t strip = 0; strip < kSide / kRows; ++strip) {
        TIFFReadEncodedStrip(tiff, strip, pixels.data() + strip * kRows * kSide, kRows * kSide);
      }
      benchmark::DoNotOptimize(pixels.data());
    } while (TIFFReadDirectory(tiff) == 1);
  }
  TIFFClose(tiff);
  count(state);
}

BENCHMARK_CAPTURE(here, uncompressed, COMPRESSION_NONE);
BENCHMARK_CAPTURE(libtiff, uncompressed, COMPRESSION_NONE);
BENCHMARK_CAPTURE(here, lzw, COMPRESSION_LZW);
BENCHMARK_CAPTURE(libtiff, lzw, COMPRESSION_LZW);
BENCHMARK_CAPTURE(here, deflate, COMPRESSION_ADOBE_DEFLATE);
BENCHMARK_CAPTURE(libtiff, deflate, COMPRESSION_ADOBE_DEFLATE);

}  // namespace

BENCHMARK_MAIN();
