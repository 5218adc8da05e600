// Pictures of any kind: any bytes are refused, or each page is read.
// SPDX-License-Identifier: Apache-2.0
#include "core/io/picture.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/io/image.h"
#include "core/io/input_file.h"
#include "core/io/temporary_folder.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/io/jpeg_samples.h"
#include "tests/unit/io/tiff_samples.h"

namespace triptych::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> list;
  for (const int channels : {1, 3}) {
    Image image;
    image.width = 5;
    image.height = 3;
    image.channels = channels;
    image.samples.assign(static_cast<std::size_t>(15 * channels), 100);
    list.push_back(encode_png(image));
  }
  const TemporaryFolder folder("seeds");
  std::vector<test::TiffLayout> layouts(4);
  layouts[1].compression = COMPRESSION_LZW;
  layouts[1].tiled = true;
  layouts[2].compression = COMPRESSION_ADOBE_DEFLATE;
  layouts[2].bits = 16;
  layouts[3].channels = 3;
  layouts[3].photometric = PHOTOMETRIC_RGB;
  layouts[3].separate = true;
  for (const auto& layout : layouts) {
    test::put_tiff(folder.path() / "t.tif", {layout});
    list.push_back(read_file(folder.path() / "t.tif"));
  }
  test::put_tiff(folder.path() / "t.tif", layouts);
  list.push_back(read_file(folder.path() / "t.tif"));
  list.push_back(test::jpeg_of(9, {100}));
  list.push_back(test::jpeg_of(9, {100, 50, 7}, /*progressive=*/true));
  return list;
}

}  // namespace triptych::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace triptych;  // NOLINT: a function outside of the namespace
  try {
    PictureLimits limits;
    limits.image.max_pixels = 1 << 16;
    PictureFile file(fuzz::file_of(data, size), Palette::Colours, limits);
    for (std::int64_t page = 0; page < std::min<std::int64_t>(file.pages(), 4); ++page)
      file.read(page);
  } catch (const Error&) {
  }
  return 0;
}
