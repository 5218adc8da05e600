// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/build_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "backends/cuda/plain/kernel_library.h"
#include "backends/cuda/plain/object_file.h"
#include "backends/cuda/plain/sources.h"
#include "core/base/error.h"
#include "experiments/kernels/line_calls.h"
#include "experiments/kernels/piece_table.h"
#include "experiments/kernels/ptx_calls.h"
#include "experiments/kernels/unwatched_code.h"
#include "systolic/sim/toolchain.h"

namespace triptych::kernels {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLines = 40;  // of a compiler's words
constexpr std::uintmax_t kMostSourceBytes = std::uintmax_t{64} << 20;

/// Optimisations that keep each result of the watched version, also where C++ leaves it undefined.
/// Functions of the C library are called, and not computed by the compiler.
constexpr std::string_view kUnwatchedOptions =
    "-O2 -fno-strict-aliasing -fwrapv -fno-finite-loops -fno-delete-null-pointer-checks "
    "-fstack-clash-protection -fno-builtin-sin -fno-builtin-cos -fno-builtin-tan -fno-builtin-pow "
    "-fno-builtin-exp -fno-builtin-exp2 -fno-builtin-exp10 -fno-builtin-log -fno-builtin-log2 "
    "-fno-builtin-log10 -fno-builtin-sinf -fno-builtin-cosf -fno-builtin-tanf -fno-builtin-powf "
    "-fno-builtin-expf -fno-builtin-exp2f -fno-builtin-exp10f -fno-builtin-logf "
    "-fno-builtin-log2f -fno-builtin-log10f -fno-builtin-printf";

/// Assembly without the processor's own reading of inline assembly, with file names relative to the
/// working directory.
constexpr std::string_view kReadByProgram = "-fno-integrated-as -fdwarf-directory-asm";

/// A fatal error that is a warning by default. clang reports no further error and counts none, so
/// that it keeps the whole tree of the program.
constexpr std::string_view kQuiet =
    "#pragma clang diagnostic push\n#pragma clang diagnostic fatal \"-W#warnings\"\n"
    "#warning one\n#warning two\n#pragma clang diagnostic pop\n";
/// With modules, functions of the host and of the device would be one.
constexpr std::string_view kKeepTree =
    "-c -Xclang -fallow-pch-with-compiler-errors -Xclang -fpch-instantiate-templates "
    "-Xclang -fno-cxx-modules -Xclang -emit-pch";
constexpr std::string_view kFromTree =
    "-Xclang -fpch-instantiate-templates -Xclang -fno-cxx-modules -include-pch";

}  // namespace

void append(Words& command, std::string_view words) {
  std::istringstream stream{std::string(words)};
  for (std::string word; stream >> word;) command.push_back(word);
}

void require_source(const fs::path& file) {
  if (!fs::is_regular_file(file)) {
    throw IoError(fmt::format("there is no file \"{}\"", file.string()));
  }
  if (const auto bytes = fs::file_size(file); bytes > kMostSourceBytes) {
    throw IoError(fmt::format("\"{}\": {} bytes, the limit for a source is {}", file.string(),
                              bytes, kMostSourceBytes));
  }
}

BuildFolder::BuildFolder(fs::path folder, Headers more, bool is_kept)
    : path_(std::move(folder)), headers_(path_) {
  for (const auto& file : cuda::plain::library_sources()) more.emplace(file.path, file.content);
  if (is_kept) kept_.emplace(more);
  if (kept_ && !kept_->folder().empty()) {
    headers_ = kept_->folder();
  } else {
    for (const auto& [name, content] : more) write(name, content);
  }
  for (const auto& part : cuda::plain::library_parts()) write(part.file, part.content);
}

Words BuildFolder::including(const Words& command, const fs::path& header) const {
  const auto file = kept_ ? kept_->precompiled(command, header) : std::nullopt;
  if (file && is_clang(command)) return {"-include-pch", file->string()};
  return {"-include", (headers_ / header).string()};
}

void BuildFolder::write(const fs::path& name, std::string_view content) const {
  const auto path = path_ / name;
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << content << std::flush;
  if (!file) throw IoError(fmt::format("cannot write \"{}\"", path.string()));
}

std::string BuildFolder::text_of(const fs::path& file) const {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return std::move(text).str();
}

std::string BuildFolder::words_of(const std::string& step) const {
  std::ifstream file(path_ / (step + ".log"));
  std::string text;
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("$ ")) continue;
    if (++lines == kMostLines) return text + "...\n";
    text += line + "\n";
  }
  return text;
}

void BuildFolder::run(Words command, const std::string& step, const std::string& what,
                      const fs::path& output) const {
  command.emplace_back("-o");
  command.push_back(output.empty() ? object(step) : output.string());
  const auto log = path_ / (step + ".log");
  int status = mmu::run_logged(command, log, path_);
  if (status != 0 && replace_refused(command, words_of(step))) {
    write(step + ".log", "");
    status = mmu::run_logged(command, log, path_);
  }
  if (status == 0) return;
  throw CompilerRefusal(fmt::format("{} does not compile ({}, status {}):\n{}", what, command[0],
                                    status, words_of(step)));
}

void BuildFolder::compile_kernels(const Words& command, const std::string& step,
                                  const std::string& what, bool debugs,
                                  std::optional<std::size_t> unit) const {
  const auto assembly = path_ / (step + "-compiled.s");
  const bool is_gcc = !is_clang(command);
  Words compile = command;
  compile.emplace_back("-S");
  if (!is_gcc) {
    append(compile, kReadByProgram);
    append(compile, "-ferror-limit=0 -fno-crash-diagnostics");
  }
  bool has_ptx = false;
  try {
    run(compile, step, what, assembly);
    has_ptx = !is_gcc && has_inline_ptx(text_of(assembly));
  } catch (const InvalidArgument&) {
    has_ptx = !is_gcc && refuses_only_operands(text_of(path_ / (step + ".log")));
    if (!has_ptx) throw;
  }
  if (has_ptx) {
    write(step + ".ll", with_ptx_calls(written_code(command, step, what)));
    Words instrument = {command.front()};
    append(instrument, "-x ir -w -O0 -S");
    append(instrument, kReadByProgram);
    append(instrument, kTargetOptions);
    append(instrument, kClangInstrumentation);
    instrument.push_back((path_ / (step + ".ll")).string());
    run(instrument, step, what, assembly);
  }
  const auto executable = text_of(assembly);
  const auto name = step + ".s";
  const auto complete = with_pieces(debugs ? with_line_calls(executable) : executable);
  write(name, unit ? with_local_names(complete, *unit) : complete);
  // The assembler's version of DWARF is another by default.
  run({command.front(), "-c", is_gcc ? "-Wa,--gdwarf-4" : "-gdwarf-4", (path_ / name).string()},
      step + "-assembly", what, object(step));
}

std::string BuildFolder::written_code(const Words& command, const std::string& step,
                                      const std::string& what) const {
  const auto written = path_ / (step + "-written.ll");
  Words read = command;
  append(read, "-ferror-limit=0 -S -emit-llvm -Xclang -disable-llvm-passes");
  try {
    run(read, step, what, written);
  } catch (const InvalidArgument&) {
    if (!refuses_only_operands(text_of(path_ / (step + ".log")))) throw;
    run_with_all_operands(std::move(read), step, what, written);
  }
  return text_of(written);
}

void BuildFolder::run_with_all_operands(Words command, const std::string& step,
                                        const std::string& what, const fs::path& output) const {
  const auto quiet = step + "-quiet.h", empty = step + "-empty.cu";
  write(quiet, kQuiet);
  write(empty, "");
  const auto tree = (path_ / (step + ".pch")).string();
  Words keep = {command.front(), "-include", (path_ / quiet).string()};
  Words finish = {command.front()};
  for (std::size_t i = 1; i < command.size(); ++i) {
    const auto& word = command[i];
    const bool chooses_output = word == "-S" || word == "-emit-llvm";
    // -w would hide the pragma's error.
    if (word != "-w" && !chooses_output) keep.push_back(word);
    if (word == "-include") {
      keep.push_back(command[++i]);
    } else {
      finish.push_back(word == what ? (path_ / empty).string() : word);
    }
  }
  append(keep, kKeepTree);
  run(keep, step + "-tree", what, tree);
  append(finish, kFromTree);
  finish.push_back(tree);
  run(finish, step, what, output);
}

bool BuildFolder::compile_unwatched(const Words& command, const std::string& step,
                                    const std::string& what, std::size_t unit) const {
  Words read = command;
  append(read, kUnwatchedOptions);
  const auto code = unwatched_code(with_ptx_calls(written_code(read, step, what)), unit);
  if (code.empty()) return false;
  write(step + ".ll", code);
  Words optimise = {command.front()};
  append(optimise, "-x ir -w -O2 -S");
  append(optimise, kReadByProgram);
  append(optimise, kTargetOptions);
  optimise.push_back((path_ / (step + ".ll")).string());
  run(optimise, step + "-optimised", what, path_ / (step + ".s"));
  run({command.front(), "-c", "-gdwarf-4", (path_ / (step + ".s")).string()}, step + "-assembly",
      what, object(step));
  return true;
}

void BuildFolder::add_ptx(Words& objects) const {
  const bool uses_ptx = std::ranges::any_of(objects, [](const auto& object) {
    const cuda::plain::ObjectFile file(object);
    return std::ranges::any_of(file.symbols(),
                               [](const auto& symbol) { return symbol.name == kPtxCall; });
  });
  if (!uses_ptx) return;
  for (const char* part : {"ptx", "ptx_matrices", "ptx_values"}) objects.push_back(object(part));
}

void BuildFolder::reserve_shared_memory(const Words& objects, const std::string& text) const {
  std::string assembly = fmt::format(
      "\t.section .tbss,\"awT\",%nobits\n\t.balign 16\n\t.globl {0}\n\t.type {0}, %tls_object\n"
      "{0}:\n",
      cuda::plain::kDynamicShared);
  std::set<std::string> names;
  for (const auto& object : objects) {
    const cuda::plain::ObjectFile file(object);
    for (const auto& symbol : file.symbols()) {
      if (symbol.kind != cuda::plain::Symbol::Kind::ThreadLocal || symbol.defined) continue;
      if (names.insert(symbol.name).second) {
        assembly += fmt::format("\t.globl {0}\n\t.hidden {0}\n\t.type {0}, %tls_object\n{0}:\n",
                                symbol.name);
      }
    }
  }
  assembly += fmt::format("\t.zero {}\n\t.section .note.GNU-stack,\"\",%progbits\n",
                          cuda::plain::kMostDynamicBytes);
  write("shared.s", assembly + text);
  run({"g++", "-c", (path_ / "shared.s").string()}, "shared", "shared memory");
}

}  // namespace triptych::kernels
