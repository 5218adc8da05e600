// PTX as text: the declarations of a module, and the instructions of its functions as written. A
// function is read at its first use: nvcc's modules are long, and few of their kernels run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace triptych::ptx {

/// Error of a module or a running kernel, or something that this machine does not know.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Space { Generic, Global, Shared, Local, Param };

/// Memory that a module or a function names.
struct Variable {
  std::string name;
  Space space = Space::Global;
  std::size_t alignment = 1;
  std::size_t bytes = 0;           ///< 0: as much shared memory as the launch asks for
  std::vector<std::byte> initial;  ///< shorter than `bytes`: zeros follow
};

/// One operand as it is written.
struct Term {
  enum class Kind { Register, Special, Number, Name, Address, List, Sink };
  Kind kind = Kind::Sink;
  bool negated = false;     ///< !%p
  int id = 0;               ///< Register: place in Function::registers
  std::uint64_t bits = 0;   ///< Number: an integer, or the bits of a float
  std::int64_t offset = 0;  ///< Address, Name: bytes behind it
  std::string name;         ///< Special, Name
  std::vector<Term> parts;  ///< List: elements. Address: base and coordinates
};

struct Instruction {
  std::string name;  ///< with all modifiers
  bool guarded = false;
  Term guard;
  std::vector<Term> terms;
  int line = 0;  ///< of the module
};

struct Register {
  int bytes = 0;  ///< of one lane. 0: a predicate
  std::string name;
};

struct Function {
  std::string name;
  std::uint64_t most_threads = 1024;  ///< of a block
  std::vector<Variable> parameters;
  std::vector<Variable> variables;  ///< shared and local
  std::vector<Register> registers;
  std::vector<Instruction> instructions;
  std::map<std::string, std::size_t> labels;  ///< the instruction that follows
};

/// Keeps a view of the text, which must outlive it.
class ModuleText {
 public:
  /// Throws Fault for directives that it does not know.
  explicit ModuleText(std::string_view text);

  const std::vector<Variable>& variables() const { return variables_; }
  std::vector<std::string> kernels() const;
  bool has(std::string_view kernel) const { return bodies_.contains(kernel); }
  /// Throws Fault with the line for text that it cannot read.
  Function read(std::string_view kernel) const;

 private:
  struct Body {
    std::size_t begin = 0;  ///< of the parameters
    int line = 0;
  };
  std::string_view text_;
  std::vector<Variable> variables_;
  std::map<std::string, Body, std::less<>> bodies_;
};

}  // namespace triptych::ptx
