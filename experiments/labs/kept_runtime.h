// Verilator's run time, half of the compilation of `triptych machine build`. The user's cache holds
// it, sealed, under a name with the digest of its sources. A bench has a cache of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "experiments/labs/bench.h"

namespace triptych::labs {

class KeptRuntime {
 public:
  /// Copies the user's library to the bench. The bench compiles files that cannot be copied.
  explicit KeptRuntime(Bench& bench);
  /// Stores the bench's compiled library in the user's cache. No student's code may have run there.
  void keep() const;
  /// Keeps a machine's library that the bench has built under another name, in the place of an
  /// older one, and removes the log of an earlier failure. `seal` completes the file at this path.
  void keep(const std::string& built, const std::string& name,
            const std::function<void(const std::filesystem::path&)>& seal) const;
  /// Stores the log of a failed build of the library `name` in its folder. Returns `message` with
  /// that file's path, or unchanged when there is no log or no place for it.
  std::string keep_log(const std::string& message, const std::string& name) const;

 private:
  std::filesystem::path log_of(const std::string& name) const;
  void copy(const std::filesystem::path& folder,
            const std::function<void(const std::string& name)>& copy_one) const;

  Bench& bench_;
  std::filesystem::path user_;  ///< relative: the user has no cache
};

/// Commands of a bench whose model is in the folder `model` and has the top module lab_bench.
struct ModelCommands {
  std::vector<std::string> verilate;  ///< without the sources
  std::vector<std::string> make;      ///< without targets
  Limits limits;                      ///< of each
};

/// Copies objects of the run time, two thirds of the compilation of a small model, to the bench,
/// where Verilator has written the model. They are the same for all models. The user's cache holds
/// them, each with a checksum, under names with the tools' versions. The makefile compiles those
/// that are missing. The first call compiles them, on a bench of its own.
void put_verilator_runtime(Bench& bench, const ModelCommands& commands);

}  // namespace triptych::labs
