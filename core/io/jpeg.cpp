// SPDX-License-Identifier: Apache-2.0
#include "core/io/jpeg.h"

#include <fmt/core.h>

#include <jerror.h>
#include <jpeglib.h>
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>

#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/io/orientation.h"

namespace triptych {
namespace {

/// Scans of a progressive file: each costs a pass over the picture, and a few bytes ask for one.
constexpr int kMaxScans = 500;

// libjpeg reports an error by longjmp. So that no destructor is jumped over, it is called only
// inside JpegReader::guarded, by callables that own nothing.
struct JpegState {
  jpeg_error_mgr errors;  // libjpeg casts between this struct and its first member
  jpeg_progress_mgr progress;
  std::jmp_buf jump;
  std::array<char, JMSG_LENGTH_MAX> message = {};
  bool damaged = false;
};

JpegState& state_of(j_common_ptr jpeg) { return *static_cast<JpegState*>(jpeg->client_data); }

void stop(j_common_ptr jpeg) {
  auto& state = state_of(jpeg);
  jpeg->err->format_message(jpeg, state.message.data());
  std::longjmp(state.jump, 1);
}

/// Keeps the first warning. Level -1 is data that had to be made up.
void take_message(j_common_ptr jpeg, int level) {
  const auto code = jpeg->err->msg_code;
  auto& state = state_of(jpeg);
  if (level >= 0 || code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || state.damaged) {
    return;
  }
  jpeg->err->format_message(jpeg, state.message.data());
  state.damaged = true;
}

void print_nothing(j_common_ptr) {}

void count_scans(j_common_ptr jpeg) {
  const auto* reader = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (reader->input_scan_number > kMaxScans) ERREXIT(jpeg, JERR_CANT_SUSPEND);
}

class JpegReader {
 public:
  JpegReader(std::span<const std::byte> file, const ImageLimits& limits)
      : file_(file), limits_(limits) {
    jpeg_.err = jpeg_std_error(&state_.errors);
    state_.errors.error_exit = stop;
    state_.errors.emit_message = take_message;
    state_.errors.output_message = print_nothing;
    jpeg_.client_data = &state_;
    state_.progress.progress_monitor = count_scans;
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }

  Image read_header() {
    require(guarded([this] { begin(); }));
    Image image;
    image.width = jpeg_.image_width;
    image.height = jpeg_.image_height;
    image.channels = jpeg_.num_components == 1 ? 1 : 3;
    image.orientation = jpeg_orientation(file_);
    if (jpeg_.num_components != 1 && jpeg_.num_components != 3) {
      throw IoError(fmt::format("the JPEG has {} channels, only grey and RGB can be read",
                                jpeg_.num_components));
    }
    if (std::max(image.width, image.height) > limits_.max_side) {
      throw IoError(fmt::format("the picture has {} x {} pixels, the limit is {} a side",
                                image.width, image.height, limits_.max_side));
    }
    if (image.pixels() > limits_.max_pixels) {
      throw IoError(
          fmt::format("the picture has {} x {} pixels, the limit is {} in all; cut it into parts",
                      image.width, image.height, limits_.max_pixels));
    }
    return image;
  }

  Image read() {
    auto image = read_header();
    const auto row_size = static_cast<std::size_t>(image.width * image.channels);
    internal::allocate_samples(image, row_size * static_cast<std::size_t>(image.height));
    auto* bytes = internal::bytes_within(image.samples);
    const MemoryReservation coefficients(coefficient_bytes(), "the JPEG, decoded scan by scan,");
    require(guarded([&] {
      jpeg_.out_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
      jpeg_start_decompress(&jpeg_);
      while (jpeg_.output_scanline < jpeg_.output_height) {
        auto* row = bytes + row_size * jpeg_.output_scanline;
        jpeg_read_scanlines(&jpeg_, &row, 1);
      }
      jpeg_finish_decompress(&jpeg_);
    }));
    internal::widen_bytes(image.samples);
    return image;
  }

 private:
  /// Memory of libjpeg for a file in several scans, else 0.
  std::size_t coefficient_bytes() {
    if (!jpeg_has_multiple_scans(&jpeg_)) return 0;
    std::size_t blocks = 0;
    for (int i = 0; i < jpeg_.num_components; ++i) {
      const auto& component = jpeg_.comp_info[i];
      blocks += static_cast<std::size_t>(component.width_in_blocks + component.h_samp_factor) *
                static_cast<std::size_t>(component.height_in_blocks + component.v_samp_factor);
    }
    return blocks * sizeof(JBLOCK);
  }

  void begin() {
    jpeg_create_decompress(&jpeg_);
    jpeg_.progress = &state_.progress;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file_.data()), file_.size());
    jpeg_read_header(&jpeg_, TRUE);
  }

  template <class Call>
  bool guarded(const Call& call) {
    if (setjmp(state_.jump) != 0) return false;
    call();
    return true;
  }

  void require(bool succeeded) const {
    if (succeeded && !state_.damaged) return;
    throw IoError(fmt::format("the JPEG cannot be read: {}", state_.message.data()));
  }

  std::span<const std::byte> file_;
  ImageLimits limits_;
  JpegState state_ = {};
  jpeg_decompress_struct jpeg_ = {};
};

}  // namespace

bool is_jpeg(std::span<const std::byte> file) {
  return file.size() >= 3 && file[0] == std::byte{0xFF} && file[1] == std::byte{0xD8} &&
         file[2] == std::byte{0xFF};
}

Image decode_jpeg_header(std::span<const std::byte> file, const ImageLimits& limits) {
  if (!is_jpeg(file)) throw IoError("not a JPEG");
  return JpegReader(file, limits).read_header();
}

Image decode_jpeg(std::span<const std::byte> file, const ImageLimits& limits) {
  if (!is_jpeg(file)) throw IoError("not a JPEG");
  return JpegReader(file, limits).read();
}

}  // namespace triptych
