// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/kernel_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <istream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cuda/plain/kernel_library.h"
#include "backends/cuda/plain/object_file.h"
#include "core/base/error.h"
#include "core/io/find_program.h"
#include "core/io/temporary_folder.h"
#include "experiments/kernels/build_folder.h"
#include "experiments/kernels/clang.h"

namespace triptych::kernels {
namespace {

// Alignments of the types that a source accesses, from the assembly that g++ writes with
// -fsanitize=alignment: each check has a record of its place and the alignment.

/// A record is a file's label, a line, a column, a type's label and the logarithm.
constexpr std::size_t kFields = 5;
constexpr unsigned kMostLogarithm = 16;

struct Assembly {
  std::map<std::string, std::string> texts;       ///< by label
  std::vector<std::vector<std::string>> records;  ///< operands
};

/// "\t.quad\t.LC0" as "quad" and ".LC0".
std::pair<std::string, std::string> directive_in(const std::string& line) {
  const auto begin = line.find_first_not_of(" \t");
  if (begin == line.npos || line[begin] != '.') return {};
  const auto end = line.find_first_of(" \t", begin);
  if (end == line.npos) return {line.substr(begin + 1), ""};
  return {line.substr(begin + 1, end - begin - 1), line.substr(end + 1)};
}

Assembly read(std::istream& stream) {
  Assembly assembly;
  std::string label;
  bool in_record = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with(':')) {
      label = line.substr(0, line.size() - 1);
      in_record = label.starts_with(".Lubsan_data");
      if (in_record) assembly.records.emplace_back();
      continue;
    }
    const auto [word, operand] = directive_in(line);
    if (word == "string" && operand.size() >= 2) {
      assembly.texts[label] = operand.substr(1, operand.size() - 2);
    } else if (in_record && assembly.records.back().size() < kFields) {
      assembly.records.back().push_back(operand);
    }
  }
  return assembly;
}

unsigned number_in(const std::string& text) {
  unsigned number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// A line "4 12 7 my.cu" for each record: bytes, line, column and the file's name without folders.
std::string alignments_in(std::istream& assembly) {
  const auto [texts, records] = read(assembly);
  std::string lines;
  for (const auto& record : records) {
    if (record.size() < kFields) continue;
    const auto file = texts.find(record[0]);
    const auto logarithm = number_in(record[4]);
    if (file == texts.end() || logarithm > kMostLogarithm) continue;
    const auto name = file->second.substr(file->second.rfind('/') + 1);
    lines += fmt::format("{} {} {} {}\n", 1U << logarithm, number_in(record[1]),
                         number_in(record[2]), name);
  }
  return lines;
}

namespace fs = std::filesystem;
using cuda::plain::ObjectFile;

/// Headers that CUDA programs include for declarations that are always available here.
constexpr const char* kEmptyHeaders[] = {"cuda_runtime.h", "cuda_runtime_api.h",
                                         "cuda.h",         "device_launch_parameters.h",
                                         "vector_types.h", "sm_35_intrinsics.h"};

/// Headers of libraries that are not available.
constexpr std::pair<const char*, const char*> kMissingHeaders[] = {
    {"cuda_fp16.h", "half precision"},
    {"cuda_bf16.h", "bfloat16"},
    {"cooperative_groups.h", "cooperative groups"},
    {"mma.h", "tensor cores (mma.h)"},
    {"curand_kernel.h", "cuRAND"}};

constexpr const char* kLaunchRemedy =
    "a launch (<<< >>>) is for nvcc: put the host's part into another file, or between #ifdef "
    "__CUDACC__ and #endif\n";

/// The expression that names a kernel in C++, of a function as the linker knows it:
/// "void ns::tiled<16>(float*)".
std::string expression_of(const std::string& symbol) {
  auto name = cuda::plain::demangle(symbol);
  if (name.ends_with(')')) {
    auto at = name.size();
    for (int depth = 0; at > 0;) {
      --at;
      depth += name[at] == ')' ? 1 : name[at] == '(' ? -1 : 0;
      if (depth == 0) break;
    }
    name.resize(at);
  }
  if (name.starts_with("void ")) name.erase(0, 5);
  const std::string_view unnamed = "(anonymous namespace)::";
  for (auto at = name.find(unnamed); at != name.npos; at = name.find(unnamed)) {
    name.erase(at, unnamed.size());
  }
  return name;
}

/// Headers of CUDA, as far as plain kernels need them.
Headers cuda_headers() {
  const fs::path folder = "cuda";
  Headers files;
  for (const char* header : kEmptyHeaders) files[folder / header] = "";
  for (const auto& [header, what] : kMissingHeaders) {
    files[folder / header] =
        fmt::format("#error \"{}: not in the emulation of plain kernels\"\n", what);
  }
  return files;
}

/// One source on its way.
class Build {
 public:
  Build(const KernelSource& source, const fs::path& folder)
      : source_(source), folder_(folder, cuda_headers(), has_only_folders(source.options)) {}

  /// Names of the kernels. Leaves the compiler's warnings in its log.
  Words find_kernels() const {
    Words command = student();
    append(command, "-O0 -Wall");
    add_words(command);
    command.emplace_back("-c");
    command.push_back(source_.file.string());
    run(command, "names", source_.file.string());
    Words names;
    for (const auto& symbol : ObjectFile(folder_.object("names")).noted_functions()) {
      names.push_back(expression_of(symbol.name));
    }
    return names;
  }
  std::string warnings() const { return folder_.words_of("names"); }

  void compile(const Words& kernels) const {
    const auto absolute = fs::absolute(source_.file);
    std::string text = fmt::format(
        "#include \"{}\"\n#include \"backends/cuda/plain/entry.h\"\n"
        "extern \"C\" __attribute__((visibility(\"default\"))) "
        "const triptych::cuda::plain::KernelEntry triptych_kernels[] = {{\n",
        absolute.string());
    for (const auto& name : kernels) {
      text += fmt::format("    triptych::cuda::plain::Described<&{0}>::entry(\"{0}\"),\n", name);
    }
    text += fmt::format(
        "}};\nextern \"C\" __attribute__((visibility(\"default\"))) "
        "const unsigned triptych_kernel_count = {};\n",
        kernels.size());
    folder_.write("kernels.cpp", text);
    Words command = student(source_.debugs ? find_clang("kernels for the debugger") : "g++");
    append(command,
           source_.debugs ? "-w -O0 -gcolumn-info -fno-omit-frame-pointer" : kInstrumentation);
    if (source_.debugs) append(command, kClangInstrumentation);
    if (source_.debugs) append(command, kDebugOptions);
    command.emplace_back(!source_.contract ? "-ffp-contract=off"
                         : source_.debugs  ? "-ffp-contract=on"
                                           : "-ffp-contract=fast");
    add_words(command);
    command.push_back(fmt::format("-ffile-prefix-map={}/={}", absolute.parent_path().string(),
                                  (source_.file.parent_path() / "").string()));
    command.push_back((folder_.path() / "kernels.cpp").string());
    with_remedy("kernels", [&] {
      folder_.compile_kernels(command, "kernels", source_.file.string(), source_.debugs);
    });
  }

  /// Lines of the section kAlignments. The instrumentation of accesses does not tell the alignment
  /// of a type. That of misaligned ones does, in the data of its messages.
  std::string alignments() const {
    const ObjectFile kernels(folder_.object("kernels"));
    const bool copies_types = std::ranges::any_of(kernels.symbols(), [](const auto& symbol) {
      return symbol.name.ends_with("_range") || symbol.name.ends_with("16");
    });
    if (!copies_types || source_.debugs) return {};
    Words command = student();
    append(command, "-O0 -w -fsanitize=alignment");
    add_words(command);
    command.emplace_back("-S");
    command.push_back((folder_.path() / "kernels.cpp").string());
    const auto assembly = folder_.path() / "alignments.s";
    run(command, "alignments", source_.file.string(), assembly);
    std::ifstream file(assembly);
    return kernels::alignments_in(file);
  }

  void link(const fs::path& library) const {
    std::string text = fmt::format("\t.section {},\"\",%progbits\n", cuda::plain::kAlignments);
    std::istringstream lines(alignments());
    for (std::string line; std::getline(lines, line);) {
      text += fmt::format("\t.ascii \"{}\\n\"\n", line);
    }
    folder_.reserve_shared_memory({folder_.object("kernels")}, text);
    // The callbacks' functions stand before those of the C library.
    Words command = {"g++",
                     "-shared",
                     "-Wl,-z,defs",
                     "-Wl,-Bsymbolic",
                     folder_.object("kernels"),
                     folder_.object("callbacks")};
    if (source_.debugs) command.push_back(folder_.object("copies"));  // calls of clang
    for (const auto& word : {folder_.object("shared"), std::string("-lm")}) command.push_back(word);
    run(command, "library", source_.file.string(), library);
  }

 private:
  /// Options that make each load and store of the source one call: the passes that would
  /// merge, move or copy them are left out, those that contract multiply-adds are not. A frame
  /// larger than a page touches each of its pages, so that none steps over a stack's closed one.
  static constexpr std::string_view kInstrumentation =
      "-w -g1 -gdwarf-4 -O1 -fexpensive-optimizations -fno-tree-fre -fno-tree-pre "
      "-fno-tree-sra -fno-ipa-sra -fno-tree-dominator-opts -fno-tree-loop-optimize -fno-tree-ch "
      "-fno-tree-sink -fno-tree-dse -fno-tree-phiprop -fno-ssa-phiopt -fno-thread-jumps "
      "-fno-code-hoisting -fstack-clash-protection -fno-omit-frame-pointer -fsanitize=thread "
      "-fsanitize=bounds-strict "
      "-fsanitize-coverage=trace-pc --param tsan-instrument-func-entry-exit=0 "
      "--param tsan-distinguish-volatile=1";

  Words student(const std::string& compiler = "g++") const {
    Words command = {compiler};
    append(command, "-x c++ -std=c++20 -fvisibility=hidden");
    if (compiler == "g++") append(command, "-fno-gnu-unique -fno-extern-tls-init");
    append(command, kTargetOptions);
    command.push_back("-I" + folder_.headers().string());
    command.push_back("-I" + (folder_.headers() / "cuda").string());
    append(command, "-Wno-unknown-pragmas -Wno-attributes -Wno-sign-compare");
    return command;
  }
  /// False for options that may change what the headers declare.
  static bool has_only_folders(const Words& options) {
    return std::ranges::all_of(options, [](const auto& word) { return word.starts_with("-I"); });
  }
  /// CUDA's words and the user's options, behind those of the step.
  void add_words(Words& command) const {
    const auto words = folder_.including(command, "backends/cuda/plain/words.h");
    command.insert(command.end(), words.begin(), words.end());
    command.insert(command.end(), source_.options.begin(), source_.options.end());
  }

  void run(const Words& command, const std::string& step, const std::string& what,
           const fs::path& output = {}) const {
    with_remedy(step, [&] { folder_.run(command, step, what, output); });
  }
  template <class Step>
  void with_remedy(const std::string& step, const Step& run_step) const {
    try {
      run_step();
    } catch (const InvalidArgument&) {
      if (folder_.words_of(step).find("<<<") == std::string::npos) throw;
      throw InvalidArgument(fmt::format("{} does not compile (g++):\n{}{}", source_.file.string(),
                                        folder_.words_of(step), kLaunchRemedy));
    }
  }

  const KernelSource& source_;
  BuildFolder folder_;
};

/// The kernels in the file, and the additional instances.
Words with_instances(Words kernels, const KernelSource& source) {
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (std::count(kernels.begin(), kernels.end(), kernels[i]) > 1) {
      throw InvalidArgument(
          fmt::format("{} has two kernels of the name {}: give them different "
                      "names",
                      source.file.string(), kernels[i]));
    }
  }
  for (const auto& name : source.instances) {
    if (std::ranges::count(kernels, name) == 0) kernels.push_back(name);
  }
  if (kernels.empty()) {
    throw InvalidArgument(
        fmt::format("{} has no kernel: no function is marked __global__ (one of "
                    "a template is named with its arguments: tiled<16>)",
                    source.file.string()));
  }
  return kernels;
}

}  // namespace

std::string compile_kernels(const KernelSource& source, const fs::path& library) {
  require_source(source.file);
  if (!find_program("g++")) {
    throw DeviceError(
        "kernels are compiled by g++, which is not on the PATH; add it: "
        "apt-get install g++");
  }
  const TemporaryFolder folder("kernel");
  const Build build(source, folder.path());
  const auto kernels = with_instances(build.find_kernels(), source);
  build.compile(kernels);
  build.link(library);
  return build.warnings();
}

}  // namespace triptych::kernels
