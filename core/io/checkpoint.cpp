// SPDX-License-Identifier: Apache-2.0
#include "core/io/checkpoint.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <span>
#include <vector>

#include "core/base/folder.h"
#include "core/io/atomic_file.h"
#include "core/io/beneath.h"
#include "core/io/checkpoint_metadata.h"
#include "core/io/sha256.h"
#include "core/io/temporaries.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;
using internal::CheckpointEntry;
using internal::kTensorPrefix;
using internal::kTensorSuffix;

constexpr std::int64_t kMaxMetadataBytes = std::int64_t{16} << 20;
constexpr std::int64_t kMaxTensorBytes = std::int64_t{1} << 42;
constexpr std::string_view kMetadataPrefix = "checkpoint-";
constexpr std::string_view kMetadataSuffix = ".json";
constexpr std::int64_t kMaxSerial = 1'000'000'000'000;

/// The metadata file of one checkpoint.
struct Place {
  std::string file;
  std::int64_t serial = 0;  ///< ascending with each save

  bool operator==(const Place&) const = default;
};

std::string metadata_name(std::int64_t serial) {
  return fmt::format("{}{:06}{}", kMetadataPrefix, serial, kMetadataSuffix);
}

/// The serial number in the name of a metadata file. Nothing for another file.
std::optional<std::int64_t> serial_of(std::string_view name) {
  if (!name.starts_with(kMetadataPrefix) || !name.ends_with(kMetadataSuffix)) return std::nullopt;
  std::int64_t serial = 0;
  const auto* last = name.data() + name.size() - kMetadataSuffix.size();
  const auto [end, error] = std::from_chars(name.data() + kMetadataPrefix.size(), last, serial);
  const bool valid = error == std::errc{} && end == last && serial >= 1 && serial < kMaxSerial &&
                     name == metadata_name(serial);
  return valid ? std::optional(serial) : std::nullopt;
}

/// The newest first.
std::vector<Place> places_in(const fs::path& folder) {
  std::vector<Place> places;
  std::error_code ignored;
  for (const auto& name : names_in(folder, ignored)) {
    if (const auto serial = serial_of(name)) places.push_back({name, *serial});
  }
  std::ranges::sort(places, std::ranges::greater{}, &Place::serial);
  return places;
}

CheckpointEntry read_entry(const fs::path& metadata) {
  const InputFile file(metadata, kMaxMetadataBytes);
  const auto text = file.read_text(0, file.size());
  return file.named([&] { return internal::parse_checkpoint(text); });
}

/// The same, or nothing when the file cannot be read or was edited.
std::optional<CheckpointEntry> readable_entry(const fs::path& metadata) {
  try {
    return read_entry(metadata);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Never a name in use: metadata written earlier may point at it.
std::string unused_tensor_name(const fs::path& folder, std::int64_t step) {
  auto name = fmt::format("{}{:09}{}", kTensorPrefix, step, kTensorSuffix);
  for (int copy = 2; fs::exists(fs::symlink_status(folder / name)); ++copy) {
    name = fmt::format("{}{:09}-{}{}", kTensorPrefix, step, copy, kTensorSuffix);
  }
  return name;
}

/// The newest of `places` with readable metadata, and its tensor file.
std::optional<std::pair<Place, std::string>> newest_readable(const fs::path& folder,
                                                             const std::vector<Place>& places) {
  for (const auto& place : places) {
    if (const auto entry = readable_entry(folder / place.file))
      return std::pair(place, entry->file);
  }
  return std::nullopt;
}

/// The newest readable one after the first, or else the second: damaged metadata stays where it is.
std::size_t previous_of(const fs::path& folder, const std::vector<Place>& places) {
  for (std::size_t i = 1; i < places.size(); ++i)
    if (readable_entry(folder / places[i].file)) return i;
  return 1;
}

/// Whether the tensors of `entry` are unchanged, or nothing when they cannot be read now.
std::optional<bool> unchanged(int folder, const CheckpointEntry& entry) {
  auto file = internal::open_beneath(folder, entry.file, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (file.get() < 0 && (errno == ENOENT || errno == ELOOP)) return false;
  if (file.get() < 0) return std::nullopt;
  try {
    const InputFile tensors(std::move(file), entry.file, kMaxTensorBytes);
    return sha256_of(tensors) == entry.sha256;
  } catch (const IoError&) {
    return std::nullopt;
  }
}

/// Removes the tensors of `entry` if nobody changed them, unless they are in `needed`. False when
/// that fails: the next save tries again.
bool remove_tensors(int folder, const CheckpointEntry& entry,
                    const std::vector<std::string>& needed) {
  if (std::ranges::count(needed, entry.file) > 0) return true;
  const auto same = unchanged(folder, entry);
  return same && (!*same || internal::unlink_beneath(folder, entry.file) == 0);
}

/// Removes the files of killed saves except `needed`. The tensors go before the metadata that lists
/// them, so that the next save finds both after a kill between the two.
void remove_killed_saves(int folder, const fs::path& path, const std::vector<std::string>& needed) {
  remove_temporaries(path, [&](const fs::path& metadata) {
    const auto entry = readable_entry(metadata);
    return !entry || remove_tensors(folder, *entry, needed);
  });
}

/// Removes the files of killed saves, and those that neither the new checkpoint nor the one before
/// it needs, in the same order. Only unchanged files that metadata lists are removed, because all
/// others are the user's. A file that cannot be removed does not fail a save that is complete.
void remove_outdated(const fs::path& path, const std::vector<std::string>& needed) {
  const auto folder = internal::open_folder(path);
  remove_killed_saves(folder.get(), path, needed);
  std::error_code ignored;
  for (const auto& name : names_in(path, ignored)) {
    if (std::ranges::count(needed, name) > 0 || !serial_of(name)) continue;
    const auto entry = readable_entry(path / name);
    if (entry && remove_tensors(folder.get(), *entry, needed))
      internal::unlink_beneath(folder.get(), name);
  }
}

Checkpoint load_from(const fs::path& folder, const std::vector<Place>& places, CheckpointAge age,
                     std::int64_t max_bytes) {
  if (places.empty()) {
    throw IoError(fmt::format("\"{}\" holds no checkpoint", folder.string()));
  }
  const auto position = age == CheckpointAge::Newest ? 0 : previous_of(folder, places);
  if (position >= places.size())
    throw IoError(fmt::format("\"{}\" holds no earlier checkpoint", folder.string()));
  const auto entry = read_entry(folder / places[position].file);
  const InputFile file(folder / entry.file, max_bytes);
  if (sha256_of(file) != entry.sha256) {
    file.refuse(fmt::format("its SHA-256 is not the one in {}: the file was damaged or replaced",
                            places[position].file));
  }
  return {entry.info, read_safetensors(file).tensors};
}

}  // namespace

bool has_checkpoint(const fs::path& folder) { return !places_in(folder).empty(); }

void save_checkpoint(const fs::path& folder, const TensorMap& tensors, const CheckpointInfo& info) {
  save_checkpoint_from(folder, sources_of(tensors), info);
}

void save_checkpoint_from(const fs::path& folder, const TensorSources& sources,
                          const CheckpointInfo& info) {
  if (info.step < 0 || info.epoch < 0 || info.samples_drawn < 0) {
    throw InvalidArgument("step, epoch and samples_drawn of a checkpoint must not be negative");
  }
  make_folder(folder);
  const auto before = places_in(folder);
  CheckpointEntry entry{info, unused_tensor_name(folder, info.step), ""};
  to_text(entry);  // refuses a bad configuration before anything is written
  AtomicFile tensors(folder / entry.file);
  entry.sha256 = write_safetensors(tensors, sources);
  const auto name = metadata_name(before.empty() ? 1 : before.front().serial + 1);
  AtomicFile metadata(folder / name);
  const auto text = to_text(entry);
  metadata.write(std::as_bytes(std::span(text)));
  // The metadata is there under its temporary name: after a kill between the two it tells that
  // these tensors belong to no checkpoint. A stop signal waits until both have their names.
  const EndOfProcessWaits together;
  try {
    tensors.commit();
    metadata.commit();
  } catch (const IoError&) {
    if (!fs::exists(folder / name)) fs::remove(folder / entry.file);
    throw;
  }
  const auto kept = newest_readable(folder, before);
  if (!kept && !before.empty()) return;  // a damaged file may still be repaired by hand
  std::vector<std::string> needed = {name, entry.file};
  if (kept) needed.insert(needed.end(), {kept->first.file, kept->second});
  remove_outdated(folder, needed);
}

void remove_killed_saves(const fs::path& folder) {
  std::vector<std::string> needed;
  for (const auto& place : places_in(folder))
    if (const auto entry = readable_entry(folder / place.file)) needed.push_back(entry->file);
  const auto open = internal::open_folder(folder);
  if (open.get() >= 0) remove_killed_saves(open.get(), folder, needed);
}

std::set<std::string> left_by_killed_saves(const fs::path& folder) {
  std::set<std::string> left;
  remove_temporaries(folder, [&](const fs::path& metadata) {
    if (const auto entry = readable_entry(metadata)) left.insert(entry->file);
    return false;
  });
  return left;
}

Checkpoint load_checkpoint(const fs::path& folder, CheckpointAge age, std::int64_t max_bytes) {
  constexpr int tries = 100;
  for (int tried = 1;; ++tried) {
    const auto places = places_in(folder);
    try {
      return load_from(folder, places, age, max_bytes);
    } catch (const IoError&) {
      // A save may have removed these files meanwhile: the list is then another one.
      if (tried == tries || places_in(folder) == places) throw;
    }
  }
}

}  // namespace triptych
