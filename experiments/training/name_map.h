// Names of weights here and elsewhere: PyTorch's modules are called otherwise than the presets'.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace triptych::training {

/// A list of pairs, this program's name first. For names with a "*", which stands for one text on
/// both sides ("down1.*" : "encoder.0.*"), and names without, the first pair that fits counts. A
/// name that no pair fits is the same on both sides.
class NameMap {
 public:
  NameMap() = default;
  /// From a JSON object of texts. Throws IoError, naming the file and the entry, for anything else,
  /// and for a name with more than one "*" or with one on one side alone.
  explicit NameMap(const std::filesystem::path& file);

  /// The name there of the weight that is `own` here.
  std::string there(const std::string& own) const;
  /// Names on this side of the pairs that none of `own` fits.
  std::vector<std::string> unused(const std::vector<std::string>& own) const;

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

}  // namespace triptych::training
