// Verilator's run time, half of what `triptych machine build` compiles. It lies, sealed and under a
// name that says what it comes from, in the user's cache; a bench has a cache of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "experiments/labs/bench.h"

namespace triptych::labs {

class KeptRuntime {
 public:
  /// Lends the bench what the user has. What cannot be copied is compiled there again.
  explicit KeptRuntime(Bench& bench);
  /// Keeps for the user what the bench has compiled; no student's code may have run there.
  void keep() const;
  /// Keeps a machine's library that the bench has built under another name, in the place of an
  /// older one. `seal` completes the file at this path.
  void keep(const std::string& built, const std::string& name,
            const std::function<void(const std::filesystem::path&)>& seal) const;

 private:
  void copy(const std::filesystem::path& folder,
            const std::function<void(const std::string& name)>& copy_one) const;

  Bench& bench_;
  std::filesystem::path user_;  ///< relative: the user has no cache
};

}  // namespace triptych::labs
