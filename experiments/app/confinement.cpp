// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/confinement.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/folder.h"
#include "core/io/beneath.h"
#include "core/io/input_file.h"
#include "experiments/app/options.h"
#include "experiments/confine/layers.h"

namespace triptych::app {
namespace {

namespace fs = std::filesystem;

/// A kernel under the emulator may take minutes.
constexpr confine::Limits kLimits = {.seconds = 600, .bytes = std::int64_t{8} << 30};
constexpr std::int64_t kMostOfAFolder = std::int64_t{64} << 20;

[[noreturn]] void throw_error_of(int status, const std::string& message) {
  if (status == kNoDevice) throw DeviceError(message);
  if (status == kUnsupported) throw UnsupportedError(message);
  if (status == kNumeric) throw NumericError(message);
  throw InvalidArgument(message);
}

/// Names of the regular files below `folder`, as paths from there on.
std::vector<fs::path> regular_files_in(const fs::path& folder, int deepest = 16) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& name : names_in(folder, error)) {
    const auto type = fs::symlink_status(folder / name, error).type();
    if (type == fs::file_type::regular) found.emplace_back(name);
    if (type != fs::file_type::directory || deepest == 0) continue;
    for (const auto& below : regular_files_in(folder / name, deepest - 1))
      found.push_back(name / below);
  }
  if (error) throw IoError(fmt::format("cannot list \"{}\"", folder.string()));
  return found;
}

}  // namespace

Option add_confine_option(Command& command, Confinement& confinement, const std::string& help) {
  return command.add_option("--confine", confinement, help)
      .alone_means("available", {"required"})
      .without_default();
}

void require_confinement(Confinement confinement) {
  if (confinement == Confinement::Required) confine::require_layers();
  const auto missing = confine::missing_layers();
  if (!missing.empty()) say_note("the confinement is incomplete. " + missing);
}

page::Json confinement_json() {
  auto list = page::Json::array();
  for (const auto& layer : confine::layers())
    list.push_back({{"layer", layer.name},
                    {"active", layer.active()},
                    {"mechanism", layer.active() ? page::Json(layer.mechanism) : page::Json()}});
  return list;
}

ConfinedCommand::ConfinedCommand(std::vector<std::string> words) : words_{"triptych"} {
  add(std::move(words));
}

void ConfinedCommand::add(std::vector<std::string> words) {
  words_.insert(words_.end(), words.begin(), words.end());
}

std::string ConfinedCommand::place_of(const std::string& path) {
  const auto plain = fs::path(path).lexically_normal();
  const bool inside = plain.is_relative() && !plain.empty() && *plain.begin() != ".." &&
                      *plain.begin() != "." && !plain.string().starts_with('.');
  if (inside) return plain.string();
  return fmt::format("inputs/{}/{}", ++copies_, plain.filename().string());
}

std::string ConfinedCommand::copy_of(const std::string& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return file;
  auto place = place_of(file);
  bench_.put(place, read_file(file));
  return place;
}

std::string ConfinedCommand::copy_of_folder(const std::string& folder) {
  const auto place = place_of(fs::path(folder) / "x");
  const auto above = fs::path(place).parent_path();
  std::int64_t bytes = 0;
  for (const auto& name : regular_files_in(folder)) {
    const auto text = read_beneath(folder, name.string(), kMostOfAFolder);
    bytes += static_cast<std::int64_t>(text.size());
    if (bytes > kMostOfAFolder)
      throw InvalidArgument(fmt::format(
          "the folder \"{}\" has more than {} MiB, which a confined command may not read", folder,
          kMostOfAFolder >> 20));
    bench_.put((above / name).string(), text);
  }
  return above.empty() ? "." : above.string();
}

std::string ConfinedCommand::run(int also_good,
                                 const std::function<std::string(const std::string&)>& reword) {
  const auto ending = bench_.run(words_, kLimits);
  status_ = ending.status;
  if (ending.cause != confine::Cause::Exited)
    throw Error(fmt::format("the confined command {}", ending.said(kLimits)));
  if (status_ > kCheckFailed && status_ != also_good) {
    const auto message = bench_.why(ending, kLimits);
    throw_error_of(status_, reword ? reword(message) : message);
  }
  if (!ending.error.empty()) say_note(labs::first_lines(ending.error, 40, {}));
  return ending.output;
}

}  // namespace triptych::app
