// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/program_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <string_view>

#include "backends/cuda/program/program.h"
#include "core/base/error.h"
#include "core/io/find_program.h"
#include "core/io/temporary_folder.h"
#include "experiments/kernels/build_folder.h"
#include "experiments/kernels/clang.h"

namespace triptych::kernels {
namespace {

namespace fs = std::filesystem;

/// Options of clang's CUDA front end for this processor: no files of a CUDA installation, and the
/// launch sequence that hands a kernel's arguments on one by one.
constexpr std::string_view kFrontEnd =
    "-x cuda --cuda-host-only -std=gnu++20 -nocudainc -nocudalib -Wno-unknown-cuda-version "
    "-Xclang -target-sdk-version=9.0 -Xclang -fcuda-allow-variadic-functions";
constexpr std::string_view kAllFiles =
    "-Wno-deprecated-declarations -Wno-register -Wno-c++11-narrowing "
    "-Wno-reserved-user-defined-literal -g1 -gdwarf-4 -gcolumn-info "
    "-fno-omit-frame-pointer";
constexpr std::string_view kHostOptimisation = "-O1 -fno-delete-null-pointer-checks";

/// Older C, which GCC before version 14 accepts with a warning, as the compiler of nvcc's host
/// part.
constexpr std::string_view kC =
    "-x c -std=gnu17 -Wno-error=implicit-function-declaration -Wno-error=implicit-int "
    "-Wno-error=int-conversion";

/// A table without kernels: those of a program are found by the host's code.
constexpr const char* kNoEntries =
    "\t.section .rodata\n\t.balign 8\n\t.globl triptych_kernels\ntriptych_kernels:\n"
    "\t.globl triptych_kernel_count\ntriptych_kernel_count:\n\t.quad 0\n";

/// Steps through C++ without its comments and texts.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}

  /// The next character of code, with blanks. 0: the end.
  char next() {
    while (!rest_.empty()) {
      if (rest_.starts_with("//")) {
        skip_to("\n", 0);
      } else if (rest_.starts_with("/*")) {
        skip_to("*/", 2);
      } else if (rest_.starts_with("R\"") && !std::isalnum(static_cast<unsigned char>(last_))) {
        skip_raw_text();
      } else if (rest_.front() == '"' ||
                 (rest_.front() == '\'' && !std::isalnum(static_cast<unsigned char>(last_)))) {
        skip_text(rest_.front());
      } else {
        last_ = rest_.front();
        rest_.remove_prefix(1);
        return last_;
      }
      last_ = ' ';
    }
    return 0;
  }
  std::string_view rest() const { return rest_; }

 private:
  void skip_to(std::string_view end, std::size_t behind) {
    const auto at = rest_.find(end, behind);
    rest_.remove_prefix(at == rest_.npos ? rest_.size() : at + behind);
  }
  void skip_text(char quote) {
    std::size_t at = 1;
    while (at < rest_.size() && rest_[at] != quote && rest_[at] != '\n') {
      at += rest_[at] == '\\' ? 2 : 1;
    }
    rest_.remove_prefix(std::min(at + 1, rest_.size()));
  }
  void skip_raw_text() {
    const auto open = rest_.find('(');
    if (open == rest_.npos) return rest_.remove_prefix(rest_.size());
    const auto end = ")" + std::string(rest_.substr(2, open - 2)) + "\"";
    skip_to(end, end.size());
  }

  std::string_view rest_;
  char last_ = ' ';
};

enum class Language : std::uint8_t { Cuda, Cpp, C };

/// As nvcc and hipcc tell them apart.
Language language_of(const fs::path& file) {
  const auto suffix = file.extension();
  if (suffix == ".c") return Language::C;
  return suffix == ".cpp" || suffix == ".cc" || suffix == ".cxx" ? Language::Cpp : Language::Cuda;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// A program's build: three libraries from any number of files.
class ProgramBuild {
 public:
  ProgramBuild(const ProgramSource& source, const fs::path& folder, std::string compiler)
      : source_(source),
        folder_(folder, program_headers(), /*is_kept=*/true),
        compiler_(std::move(compiler)) {}

  /// False: a header is missing, or says that it is not emulated.
  bool is_preprocessed(std::size_t file) const {
    Words command = front_end(file);
    append(command, "-w -E");
    try {
      folder_.run(command, step("preprocessed", file), source_.files[file].string(), "/dev/null");
    } catch (const CompilerRefusal&) {
      return false;
    }
    return true;
  }

  void compile_host(std::size_t file) const {
    Words command = front_end(file);
    append(command, kHostOptimisation);
    command.emplace_back("-c");
    if (has_kernels(file)) {
      append(command, "-Xclang -fcuda-include-gpubinary -Xclang");
      command.push_back((folder_.headers() / kEmptyFatBinary).string());
    }
    folder_.run(command, step("host", file), source_.files[file].string());
  }

  /// False for C and C++, as nvcc has it.
  bool has_kernels(std::size_t file) const {
    return language_of(source_.files[file]) == Language::Cuda;
  }

  void compile_kernels(std::size_t file) const {
    Words command = kernel_command(file);
    append(command, "-O0");
    append(command, kClangInstrumentation);
    if (source_.debugs) append(command, kDebugOptions);
    std::optional<std::size_t> unit;
    if (source_.has_unwatched) unit = file;
    folder_.compile_kernels(command, step("kernels", file), source_.files[file].string(),
                            source_.debugs, unit);
  }

  /// The second version. Without it, blocks that only run use the first one, which is slower.
  void compile_unwatched(std::size_t file) {
    Words command = kernel_command(file);
    command.emplace_back("-DTRIPTYCH_COMPILES_UNWATCHED");
    const auto name = source_.files[file].string();
    try {
      if (folder_.compile_unwatched(command, step("unwatched", file), name, file)) {
        unwatched_.push_back(folder_.object(step("unwatched", file)));
      } else {
        note_one_version(name);
      }
    } catch (const InvalidArgument&) {  // a mistake of the user is one of the first version, too
      note_one_version(name);
    }
  }

  void link(const fs::path& folder) {
    const auto kernels = objects("kernels", false);
    folder_.reserve_shared_memory(kernels, kNoEntries);
    auto both = kernels;
    both.insert(both.end(), unwatched_.begin(), unwatched_.end());
    try {
      link_kernels(both, folder);
    } catch (const InvalidArgument&) {
      if (unwatched_.empty()) throw;
      note_one_version(source_.files[0].string());
      link_kernels(kernels, folder);
    }
    link_host(folder);
  }

  std::string warnings() const {
    std::string text = notes_;
    for (std::size_t i = 0; i < source_.files.size(); ++i)
      text += folder_.words_of(step("host", i));
    return text;
  }

 private:
  void note_one_version(const std::string& file) {
    notes_ += fmt::format(
        "{}: its kernels could not be compiled without instrumentation, so blocks outside the "
        "sample run slower\n",
        file);
  }

  void link_kernels(Words kernels, const fs::path& folder) const {
    folder_.add_ptx(kernels);
    Words command = {"g++", "-shared", "-Wl,-Bsymbolic"};
    command.insert(command.end(), kernels.begin(), kernels.end());
    // The objects' functions stand before those of the C library.
    for (const char* part : {"callbacks", "copies", "shared"}) {
      command.push_back(folder_.object(part));
    }
    command.emplace_back("-lm");
    folder_.run(command, "kernel-library", source_.files[0].string(),
                folder / cuda::program::kKernelLibrary);
  }

  void link_host(const fs::path& folder) const {
    // Modules find the bridge by this name, whose library the program has opened.
    folder_.run({"g++", "-shared", "-Wl,-z,defs", "-Wl,-soname,triptych-bridge.so",
                 folder_.object("bridge")},
                "bridge-library", "the bridge", folder / cuda::program::kBridgeLibrary);
    Words command = {"g++", "-shared", "-Wl,-z,defs"};
    for (const char* name : {"exit", "abort", "__assert_fail"}) {
      command.push_back(fmt::format("-Wl,--wrap={}", name));
    }
    const auto host = objects("host", true);
    command.insert(command.end(), host.begin(), host.end());
    command.push_back((folder / cuda::program::kBridgeLibrary).string());
    append(command, "-lpthread -lm -Wl,--as-needed -lgomp");
    folder_.run(command, "host-library", source_.files[0].string(),
                folder / cuda::program::kHostLibrary);
  }

  static std::string step(const char* part, std::size_t file) {
    return fmt::format("{}-{}", part, file);
  }
  Words objects(const char* part, bool all) const {
    Words list;
    for (std::size_t i = 0; i < source_.files.size(); ++i) {
      if (all || has_kernels(i)) list.push_back(folder_.object(step(part, i)));
    }
    return list;
  }

  Words kernel_command(std::size_t file) const {
    Words command = front_end(file);
    append(command, "-w -Xclang -fcuda-is-device -fvisibility=hidden");
    command.emplace_back(source_.contract ? "-ffp-contract=on" : "-ffp-contract=off");
    command.push_back(fmt::format("-DTRIPTYCH_COMPILES_KERNELS={}", source_.architecture));
    return command;
  }

  Words front_end(std::size_t file) const {
    const auto language = language_of(source_.files[file]);
    Words command = {compiler_};
    append(command, language == Language::Cuda  ? kFrontEnd
                    : language == Language::Cpp ? "-x c++ -std=gnu++20"
                                                : kC);
    append(command, kAllFiles);
    append(command, kTargetOptions);
    // In this order, since <cuda/barrier> is not the <barrier> of the first folder.
    command.push_back("-I" + (folder_.headers() / "cuda").string());
    command.push_back("-I" + folder_.headers().string());
    if (language == Language::Cuda) {
      // Not precompiled: the host's and the device's operator new would be one for clang.
      command.emplace_back("-include");
      command.push_back((folder_.headers() / "backends/cuda/program/prelude.h").string());
    }
    command.insert(command.end(), source_.options.begin(), source_.options.end());
    command.push_back(source_.files[file].string());
    return command;
  }

  const ProgramSource& source_;
  BuildFolder folder_;
  std::string compiler_;
  Words unwatched_;    ///< objects
  std::string notes_;  ///< for the user
};

void check(const ProgramSource& source) {
  for (const auto& file : source.files) require_source(file);
  if (!find_program("g++")) {
    throw DeviceError(
        "programs are linked by g++, which is not on the PATH; add it: apt-get "
        "install g++");
  }
}

}  // namespace

bool is_whole_program(const fs::path& file) {
  require_source(file);
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  Tokens tokens(text);
  std::string word;
  for (char c = tokens.next(); c != 0; c = tokens.next()) {
    if (c == '<' && tokens.rest().starts_with("<<")) return true;
    if (is_word(c)) {
      word += c;
    } else if (c == '(' && word == "main") {
      return true;
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0 || tokens.rest().empty() ||
               is_word(tokens.rest().front())) {
      word.clear();
    }
  }
  return false;
}

namespace {

/// Returns the compiler's warnings.
std::string compile_with(const std::string& compiler, const ProgramSource& source,
                         const fs::path& folder) {
  const TemporaryFolder temporary("program");
  ProgramBuild build(source, temporary.path(), compiler);
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    auto kernels = std::async(std::launch::async, [&, i] {
      if (build.has_kernels(i)) build.compile_kernels(i);
    });
    build.compile_host(i);
    if (source.has_unwatched && build.has_kernels(i)) build.compile_unwatched(i);
    kernels.get();
  }
  build.link(folder);
  return build.warnings();
}

/// False: this compiler refuses the program, too, as its preprocessor finds out soon.
bool may_compile(const std::string& compiler, const ProgramSource& source) {
  const TemporaryFolder temporary("program");
  const ProgramBuild build(source, temporary.path(), compiler);
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    if (!build.is_preprocessed(i)) return false;
  }
  return true;
}

}  // namespace

std::string compile_program(const ProgramSource& source, const fs::path& folder) {
  check(source);
  const auto compiler = find_clang("whole programs");
  try {
    return compile_with(compiler, source, folder);
  } catch (const CompilerRefusal&) {
    const auto newer = newer_clang(compiler);
    if (!newer || !may_compile(*newer, source)) throw;
    try {
      const auto warnings = compile_with(*newer, source, folder);
      return fmt::format("{} is compiled by {}: {} refuses it\n{}", source.files.front().string(),
                         *newer, compiler, warnings);
    } catch (const InvalidArgument&) {  // a mistake for both
    }
    throw;
  }
}

}  // namespace triptych::kernels
