// Random changes of training patches, as a list of kinds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/choice.h"

namespace triptych::training {

enum class Change : std::uint8_t {
  Flips,  ///< and transposition
  Rotate,
  Elastic,
  Scale,
  Blur,
  Brightness,
  Contrast,
  Gamma,
  Noise,
};

class Augmentation {
 public:
  /// None but random crops.
  constexpr Augmentation() = default;
  constexpr Augmentation(std::initializer_list<Change> changes) {
    for (const auto change : changes) bits_ |= bit(change);
  }
  /// "none", "flips", "all" (flips, rotate, elastic), "strong" (every change), or names of changes
  /// with commas between them. Throws InvalidArgument "must be ..." for another text.
  static Augmentation from_text(std::string_view text);

  bool has(Change change) const { return (bits_ & bit(change)) != 0; }
  /// The shortest text that says it: the same for equal sets.
  std::string text() const;

  bool operator==(const Augmentation&) const = default;

 private:
  static constexpr std::uint16_t bit(Change change) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(change));
  }

  std::uint16_t bits_ = 0;
};

}  // namespace triptych::training

namespace triptych {

template <>
inline constexpr auto kNamesOf<training::Change> =
    std::to_array<std::pair<training::Change, std::string_view>>(
        {{training::Change::Flips, "flips"},
         {training::Change::Rotate, "rotate"},
         {training::Change::Elastic, "elastic"},
         {training::Change::Scale, "scale"},
         {training::Change::Blur, "blur"},
         {training::Change::Brightness, "brightness"},
         {training::Change::Contrast, "contrast"},
         {training::Change::Gamma, "gamma"},
         {training::Change::Noise, "noise"}});

}  // namespace triptych
