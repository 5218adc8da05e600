// A folder in which a compiler makes the libraries of users' kernels, with the program's own
// headers and the parts that every library has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "experiments/kernels/kept_headers.h"

namespace triptych::kernels {

/// Adds words that are separated by blanks.
void append(Words& command, std::string_view words);

/// Throws IoError when there is no such file, or when it is larger than a source may be. Nothing of
/// it is read.
void require_source(const std::filesystem::path& file);

/// Options of g++ and clang that all parts of a library share.
inline constexpr std::string_view kTargetOptions =
    "-fPIC -fno-math-errno"
#if defined(__x86_64__)
    " -march=x86-64-v3"
#endif
    ;

/// Options of clang without optimisation: each load and store of the source is one call.
inline constexpr std::string_view kClangInstrumentation =
    "-fstack-clash-protection -fsanitize=thread -fsanitize=alignment,bounds "
    "-fsanitize-coverage=trace-pc,no-prune -mllvm -tsan-instrument-read-before-write "
    "-mllvm -tsan-distinguish-volatile -mllvm -tsan-instrument-func-entry-exit=0 "
    "-mllvm -tsan-handle-cxx-exceptions=0 -mllvm -tsan-instrument-atomics=0";

/// Further ones for the debugger: a call may stand between any two instructions, so that nothing
/// may lie below the stack pointer.
inline constexpr std::string_view kDebugOptions = "-g2 -gdwarf-4 -fstandalone-debug -mno-red-zone";

/// Refusal of a source by a compiler, which another version may accept.
class CompilerRefusal : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

class BuildFolder {
 public:
  /// Writes the objects "callbacks" (functions that instrumented code calls), "bridge", "copies"
  /// and those for inline PTX there, and the headers of backends/cuda with `more`, unless they are
  /// in the user's cache: `is_kept`.
  BuildFolder(std::filesystem::path folder, Headers more, bool is_kept);

  const std::filesystem::path& path() const { return path_; }
  /// The folder of the headers.
  const std::filesystem::path& headers() const { return headers_; }
  /// Words that include a header before anything else: its precompiled form for commands that begin
  /// like this one, where the headers are kept.
  Words including(const Words& command, const std::filesystem::path& header) const;
  void write(const std::filesystem::path& name, std::string_view content) const;
  std::string object(const std::string& step) const { return (path_ / (step + ".o")).string(); }
  /// The compiler's output in a step, without the lines that the log adds.
  std::string words_of(const std::string& step) const;

  /// Runs a compiler that writes `output`, by default the step's object file. If it fails, throws
  /// CompilerRefusal with the compiler's output. `what` names the source in the message.
  void run(Words command, const std::string& step, const std::string& what,
           const std::filesystem::path& output = {}) const;
  /// Compiles kernels to the object of the step, with a table of their pieces of code. The command
  /// has no output and neither -c nor -S. `debugs`: with calls at the beginning of lines. `unit`:
  /// with names for compile_unwatched.
  void compile_kernels(const Words& command, const std::string& step, const std::string& what,
                       bool debugs, std::optional<std::size_t> unit = {}) const;
  /// Compiles kernels without instrumentation, with clang, to the object of the step. False: they
  /// allow no such version.
  bool compile_unwatched(const Words& command, const std::string& step, const std::string& what,
                         std::size_t unit) const;
  std::string text_of(const std::filesystem::path& file) const;
  /// Adds the part that executes inline PTX, if the objects have such instructions.
  void add_ptx(Words& objects) const;
  /// Assembles the object "shared", which reserves the dynamic shared memory of a launch. `text` is
  /// appended to the assembly.
  void reserve_shared_memory(const Words& objects, const std::string& text) const;

 private:
  /// LLVM's assembly language for kernels, in front of all optimisations.
  std::string written_code(const Words& command, const std::string& step,
                           const std::string& what) const;
  /// Runs clang on inline assembly whose operands have a constraint of another processor ("f"),
  /// which is an error for it. All other errors have been looked for.
  void run_with_all_operands(Words command, const std::string& step, const std::string& what,
                             const std::filesystem::path& output) const;

  std::filesystem::path path_, headers_;
  std::optional<KeptHeaders> kept_;
};

/// The file among program_headers() in the place of a program's code for a GPU.
inline constexpr const char* kEmptyFatBinary = "empty.fatbin";

/// Headers that a whole program finds before those of the system, in "cuda".
Headers program_headers();

}  // namespace triptych::kernels
