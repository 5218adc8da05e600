// libtiff behind one small class: its reads and writes use our streams, and its reports become our
// errors, without its global handlers. No exception passes through it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tiffio.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <span>
#include <string>

#include "core/io/atomic_file.h"
#include "core/io/input_file.h"

namespace triptych::internal {

class TiffFile {
 public:
  /// Opens for reading. Throws IoError when it is no TIFF. `file` outlives this object.
  explicit TiffFile(const InputFile& file);
  /// Opens for writing into `output`, with 64-bit offsets if `big`.
  TiffFile(std::string& output, bool big);
  /// The same into a file, which outlives this object.
  TiffFile(AtomicFile& output, bool big);
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;
  ~TiffFile() { close(); }

  TIFF* get() const { return tiff_; }
  /// Throws IoError with libtiff's last words unless `succeeded`.
  void require(bool succeeded) const;
  bool failed() const { return message_[0] != '\0'; }
  /// Writes the rest. Further calls do nothing.
  void close();
  /// Bytes of the input, or bytes written so far.
  std::int64_t size() const;

 private:
  static int take_error(TIFF*, void* self, const char* module, const char* format, va_list values);
  static int take_warning(TIFF*, void* self, const char* module, const char* format,
                          va_list values);
  static tmsize_t read(thandle_t self, void* into, tmsize_t count);
  static tmsize_t write(thandle_t self, void* bytes, tmsize_t count);
  static toff_t seek(thandle_t self, toff_t offset, int whence);
  static toff_t size_of(thandle_t self);
  void read_here(std::span<std::byte> into) const;
  void write_here(std::span<const std::byte> bytes);
  void open(const char* mode);

  const InputFile* input_ = nullptr;
  std::string* output_ = nullptr;
  AtomicFile* file_ = nullptr;
  std::int64_t written_ = 0;  ///< bytes of file_
  std::int64_t position_ = 0;
  std::array<char, 200> message_ = {};
  bool out_of_memory_ = false;
  TIFF* tiff_ = nullptr;
};

}  // namespace triptych::internal
