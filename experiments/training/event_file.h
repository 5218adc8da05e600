// Scalars for TensorBoard: an event file, which grows by a record per report and can be read while
// it grows. Records are framed as TFRecord: length, its CRC-32C, an Event (events.proto), its CRC.
// A resumed run begins another file. Its first record states the step from which it counts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io/file_descriptor.h"

namespace triptych::training {

/// Names with their values. "/" in a name makes a group.
using Scalars = std::vector<std::pair<std::string, double>>;

/// Begins the names of its files.
inline constexpr std::string_view kEventFilePrefix = "events.out.tfevents.";

class EventFile {
 public:
  /// Makes the first of FOLDER/events.out.tfevents.NNNNNN.triptych that is not there. Later records
  /// in earlier files, from `first_step` on, are no longer shown. Throws IoError.
  EventFile(const std::filesystem::path& folder, std::int64_t first_step);
  /// Appends, with one write. Throws IoError.
  void write(std::int64_t step, const Scalars& scalars);

 private:
  void append(std::string_view event);

  std::filesystem::path path_;
  internal::FileDescriptor descriptor_;
};

}  // namespace triptych::training
