// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/event_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <bit>
#include <boost/crc.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/base/error.h"
#include "events.pb.h"

namespace triptych::training {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

/// CRC-32C, masked as TFRecord wants it, because a CRC of data that holds CRCs says little.
std::uint32_t masked_crc(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return std::rotr(crc.checksum(), 15) + 0xa282ead8U;
}

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

tensorboard::Event event_at(std::int64_t step) {
  tensorboard::Event event;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  event.set_wall_time(std::chrono::duration<double>(now).count());
  event.set_step(step);
  return event;
}

int make(const fs::path& path) {
  return internal::retry_interrupted([&] {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  });
}

}  // namespace

EventFile::EventFile(const fs::path& folder, std::int64_t first_step) {
  int file = -1;
  for (int number = 1; file < 0; ++number) {
    path_ = folder / fmt::format("{}{:06}.triptych", kEventFilePrefix, number);
    file = make(path_);
    if (file < 0 && errno != EEXIST) internal::throw_errno("write", path_);
  }
  descriptor_ = internal::FileDescriptor(file);
  auto version = event_at(0);
  version.set_file_version("brain.Event:2");
  append(version.SerializeAsString());
  auto start = event_at(first_step);
  start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  append(start.SerializeAsString());
}

void EventFile::write(std::int64_t step, const Scalars& scalars) {
  auto event = event_at(step);
  for (const auto& [name, value] : scalars) {
    auto& added = *event.mutable_summary()->add_value();
    added.set_tag(name);
    added.set_simple_value(static_cast<float>(value));
  }
  append(event.SerializeAsString());
}

void EventFile::append(std::string_view event) {
  const auto length = bytes_of(static_cast<std::uint64_t>(event.size()));
  const auto record = fmt::format("{}{}{}{}", length, bytes_of(masked_crc(length)), event,
                                  bytes_of(masked_crc(event)));
  const auto count = internal::retry_interrupted(
      [&] { return ::write(descriptor_.get(), record.data(), record.size()); });
  if (count != std::ssize(record)) internal::throw_errno("write", path_);
}

}  // namespace triptych::training
