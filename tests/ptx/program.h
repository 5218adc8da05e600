// A kernel ready to run: every instruction as one step, with places in memory as operands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/ptx/text.h"

namespace triptych::ptx {

inline constexpr int kLanes = 32;

/// Where the 32 lanes of a register lie, one after another. A predicate is one word, a bit a lane.
struct Slot {
  std::uint32_t offset = 0;  ///< in bytes, in a warp's registers or among the kernel's constants
  std::uint8_t bytes = 0;    ///< of one lane. 0: a predicate
  bool constant = false;
  bool negated = false;
};

class Warp;
struct Step;
/// Does a step for the lanes of `mask`.
using Handler = void (*)(Warp& warp, const Step& step, std::uint32_t mask);

/// Which lanes of a warp must have come to a step before it happens.
enum class Gathers : std::uint8_t { Nobody, Members, All };

struct Step {
  Handler run = nullptr;
  std::array<Slot, 5> at;
  Slot guard;
  bool guarded = false;
  Gathers gathers = Gathers::Nobody;  ///< Members: those with their mask in at[4]
  Space space = Space::Generic;
  std::uint32_t list = 0, list_size = 0;     ///< further operands: Program::list
  std::array<std::int32_t, 3> offsets = {};  ///< behind the addresses in at[0], at[1], at[2]
  std::int64_t number = 0;                   ///< a label, a count: given by the step
  std::uint32_t float_control = 0;  ///< MXCSR: rounding, and whether subnormals are flushed
};

/// The registers that every thread has, before its kernel's own.
enum class Special {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  Count
};

struct Parameter {
  std::size_t offset, bytes;
};

struct Program {
  std::string name;
  std::vector<Step> steps;
  std::vector<Slot> list;
  std::vector<std::byte> constants;
  std::uint64_t most_threads = 0;  ///< of a block
  std::vector<Parameter> parameters;
  std::size_t parameter_bytes = 0;
  std::size_t register_bytes = 0;
  std::size_t static_shared_bytes = 0;
  std::size_t local_bytes = 0;     ///< of a thread
  std::vector<std::string> names;  ///< of the steps' instructions
  std::vector<int> lines;
  mutable std::vector<std::uint64_t> runs;  ///< how often each step ran
};

/// Addresses of a module's names.
using GlobalAddresses = std::map<std::string, std::uint64_t>;

/// Throws Fault, with line and name, for an instruction that is not known.
std::unique_ptr<Program> make_program(const Function& function, const GlobalAddresses& globals);

/// All instructions that can be read, without modifiers, for documents.
std::vector<std::string> known_instructions();

}  // namespace triptych::ptx
