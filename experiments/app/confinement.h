// The option --confine, and a command of this program that runs again, confined, on copies of the
// files that it reads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/choice.h"
#include "experiments/app/command_line.h"
#include "experiments/labs/bench.h"
#include "experiments/page/json.h"

namespace triptych::app {

enum class Confinement : std::uint8_t {
  None,
  Available,  ///< with the layers that the system offers
  Required,   ///< with all that matter, or not at all
};

/// Adds --confine, which means Available where it stands alone.
Option add_confine_option(Command& command, Confinement& confinement, const std::string& help);

/// Throws DeviceError when a required layer is missing. Notes which others are missing.
void require_confinement(Confinement confinement);

/// [{"layer": "files", "active": true, "mechanism": "Landlock 7"}, ...]
page::Json confinement_json();

/// A command of this program, run confined. Each file that it reads is copied to the one folder
/// that it has, under the same name where that is a relative one.
class ConfinedCommand {
 public:
  explicit ConfinedCommand(std::vector<std::string> words);

  void add(std::vector<std::string> words);
  /// The copy's name. A word that names no regular file stays as it is.
  std::string copy_of(const std::string& file);
  /// The same for a folder, with the regular files in it and below. At most 64 MiB.
  std::string copy_of_folder(const std::string& folder);
  /// Returns the standard output. Throws the error of an exit code above 1, except `also_good`,
  /// with the command's own message, changed by `reword`. Throws Error when the command was
  /// stopped.
  std::string run(int also_good, const std::function<std::string(const std::string&)>& reword = {});
  int status() const { return status_; }
  labs::Bench& bench() { return bench_; }

 private:
  std::string place_of(const std::string& path);

  labs::Bench bench_;
  std::vector<std::string> words_;
  int copies_ = 0, status_ = 0;
};

}  // namespace triptych::app

template <>
inline constexpr auto triptych::kNamesOf<triptych::app::Confinement> =
    std::to_array<std::pair<triptych::app::Confinement, std::string_view>>(
        {{triptych::app::Confinement::Available, "available"},
         {triptych::app::Confinement::Required, "required"}});
