// The equal GPUs of a program: the current one of each thread, their peers, and the values that
// variables of kernels have on each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/program/heap.h"

namespace triptych::cuda::program {

class Devices {
 public:
  /// The GPU of the calling thread's next calls.
  static int& current();

  /// False: it was so before.
  bool allow(int user, int owner) { return peers_.emplace(user, owner).second; }
  bool forbid(int user, int owner) { return peers_.erase({user, owner}) != 0; }
  /// Memory of a GPU's pool has permissions of its own.
  void set_pool_access(int user, int owner, bool is_allowed);
  /// True when kernels of a GPU may use the memory.
  bool may_use(int user, const Allocation& memory) const;
  /// The call that must come before kernels of this GPU may use the memory. Empty: they may.
  std::string remedy(int user, const Allocation& memory) const;

  /// A variable of kernels with its first value, which every GPU has of its own.
  void add_variable(std::span<std::byte> bytes);
  /// Gives all variables the values of the current GPU. To be called before each use.
  void select_variables();

 private:
  struct Variable {
    std::span<std::byte> bytes;  ///< on the GPU that is the holder
    std::vector<std::byte> initial;
    std::map<int, std::vector<std::byte>> others;
  };

  std::set<std::pair<int, int>> peers_, pool_users_;  ///< user and owner
  std::vector<Variable> variables_;
  int holder_ = 0;
};

}  // namespace triptych::cuda::program
