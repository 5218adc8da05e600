// SPDX-License-Identifier: Apache-2.0
#include "core/io/tiff_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>

#include "core/base/error.h"
#include "core/base/memory_budget.h"

namespace triptych::internal {
namespace {

/// Bytes of one table in a file: offsets of its strips, a description.
constexpr tmsize_t kMaxTableBytes = tmsize_t{1} << 30;

TiffFile& self_of(thandle_t handle) { return *static_cast<TiffFile*>(handle); }

int keep_open(thandle_t) { return 0; }
int map_nothing(thandle_t, void**, toff_t*) { return 0; }
void unmap_nothing(thandle_t, void*, toff_t) {}

}  // namespace

TiffFile::TiffFile(const InputFile& file) : input_(&file) { open("r"); }

TiffFile::TiffFile(std::string& output, bool big) : output_(&output) { open(big ? "w8" : "w4"); }

TiffFile::TiffFile(AtomicFile& output, bool big) : file_(&output) { open(big ? "w8" : "w4"); }

void TiffFile::open(const char* mode) {
  auto* options = TIFFOpenOptionsAlloc();
  if (options == nullptr) throw std::bad_alloc();
  const auto half = static_cast<tmsize_t>(memory_budget().left() / 2);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, std::clamp<tmsize_t>(half, 1, kMaxTableBytes));
  TIFFOpenOptionsSetErrorHandlerExtR(options, take_error, this);
  TIFFOpenOptionsSetWarningHandlerExtR(options, take_warning, this);
  tiff_ = TIFFClientOpenExt("", mode, this, read, write, seek, keep_open, size_of, map_nothing,
                            unmap_nothing, options);
  TIFFOpenOptionsFree(options);
  require(tiff_ != nullptr);
}

void TiffFile::close() {
  if (tiff_ != nullptr) TIFFClose(tiff_);
  tiff_ = nullptr;
}

void TiffFile::require(bool succeeded) const {
  if (out_of_memory_) throw std::bad_alloc();
  if (succeeded) return;
  throw IoError(fmt::format("the TIFF cannot be {}: {}", input_ == nullptr ? "written" : "read",
                            message_[0] == '\0' ? "it is damaged" : message_.data()));
}

/// Keeps the first words: those that follow are consequences.
int TiffFile::take_error(TIFF*, void* self, const char*, const char* format, va_list values) {
  auto& message = static_cast<TiffFile*>(self)->message_;
  if (message[0] != '\0') return 1;
  std::vsnprintf(message.data(), message.size(), format, values);
  // Some begin with the name of the file, which is empty here.
  const std::string_view text = message.data();
  if (text.starts_with(": ")) std::memmove(message.data(), message.data() + 2, text.size() - 1);
  return 1;
}

/// A JPEG strip that ends early is only a warning to libtiff, which makes its pixels up.
int TiffFile::take_warning(TIFF* tiff, void* self, const char* module, const char* format,
                           va_list values) {
  const bool damage = module != nullptr && std::string_view(module) == "JPEGLib";
  return damage ? take_error(tiff, self, module, format, values) : 1;
}

std::int64_t TiffFile::size() const {
  if (input_ != nullptr) return input_->size();
  return output_ != nullptr ? std::ssize(*output_) : written_;
}

void TiffFile::read_here(std::span<std::byte> into) const {
  if (input_ != nullptr) return input_->read(position_, into);
  if (file_ != nullptr) return file_->read_at(position_, into);
  std::memcpy(into.data(), output_->data() + position_, into.size());
}

void TiffFile::write_here(std::span<const std::byte> bytes) {
  const auto end = position_ + std::ssize(bytes);
  if (file_ != nullptr) {
    file_->write_at(position_, bytes);
    written_ = std::max(written_, end);
    return;
  }
  if (std::ssize(*output_) < end) output_->resize(static_cast<std::size_t>(end));
  std::memcpy(output_->data() + position_, bytes.data(), bytes.size());
}

tmsize_t TiffFile::read(thandle_t handle, void* into, tmsize_t count) {
  auto& self = self_of(handle);
  const auto there = std::clamp<std::int64_t>(self.size() - self.position_, 0, count);
  if (there == 0) return 0;
  try {
    self.read_here({static_cast<std::byte*>(into), static_cast<std::size_t>(there)});
  } catch (const IoError& error) {
    std::snprintf(self.message_.data(), self.message_.size(), "%s", error.what());
    return -1;
  }
  self.position_ += there;
  return there;
}

tmsize_t TiffFile::write(thandle_t handle, void* bytes, tmsize_t count) {
  auto& self = self_of(handle);
  if (self.input_ != nullptr) return -1;
  try {
    self.write_here({static_cast<const std::byte*>(bytes), static_cast<std::size_t>(count)});
  } catch (const std::bad_alloc&) {
    self.out_of_memory_ = true;
    return -1;
  } catch (const IoError& error) {
    std::snprintf(self.message_.data(), self.message_.size(), "%s", error.what());
    return -1;
  }
  self.position_ += count;
  return count;
}

toff_t TiffFile::seek(thandle_t handle, toff_t offset, int whence) {
  auto& self = self_of(handle);
  // libtiff's offsets are unsigned. Additions wrap as those of signed numbers would.
  auto target = offset;
  if (whence == SEEK_CUR) target += static_cast<toff_t>(self.position_);
  if (whence == SEEK_END) target += size_of(handle);
  if (target > static_cast<toff_t>(std::numeric_limits<std::int64_t>::max())) {
    return static_cast<toff_t>(-1);
  }
  self.position_ = static_cast<std::int64_t>(target);
  return target;
}

toff_t TiffFile::size_of(thandle_t handle) { return static_cast<toff_t>(self_of(handle).size()); }

}  // namespace triptych::internal
