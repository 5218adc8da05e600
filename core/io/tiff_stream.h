// TIFF files that are written in parts, for pictures larger than memory: one page in bands of rows,
// or several pages, one after another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/picture.h"

namespace triptych {

namespace internal {
class TiffFile;
}  // namespace internal

class TiffStream {
 public:
  static constexpr std::int64_t kTile = 256;  ///< side of a tile

  /// Samples as encode_tiff stores them. BigTIFF from 2 GiB on. `file` outlives this object.
  TiffStream(AtomicFile& file, const PictureForm& form, const PictureNotes& notes = {});
  ~TiffStream();
  TiffStream(const TiffStream&) = delete;
  TiffStream& operator=(const TiffStream&) = delete;

  /// The next rows, any number, interleaved. They fit the form. Keeps kTile rows at most.
  void write_rows(std::span<const float> samples);
  /// Bytes of the file, which holds all now. Throws InvalidArgument when rows lack.
  std::int64_t finish();

 private:
  void write_tiles();

  PictureForm form_;
  std::unique_ptr<internal::TiffFile> tiff_;
  std::vector<float> waiting_;
  std::int64_t rows_ = 0;
};

/// Pages written one by one, each as encode_tiff writes it.
class TiffPages {
 public:
  /// BigTIFF when `most_bytes` of samples are 2 GiB or more. `file` outlives this object.
  TiffPages(AtomicFile& file, std::int64_t most_bytes);
  ~TiffPages();
  TiffPages(const TiffPages&) = delete;
  TiffPages& operator=(const TiffPages&) = delete;

  void write(const Picture& page, const PictureNotes& notes = {});
  /// Bytes of the file, which is then complete. Throws InvalidArgument without a page.
  std::int64_t finish();

 private:
  std::unique_ptr<internal::TiffFile> tiff_;
  std::int64_t pages_ = 0;
};

}  // namespace triptych
