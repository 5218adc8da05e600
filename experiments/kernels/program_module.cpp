// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/program_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>

#include "backends/cuda/plain/kernel_library.h"
#include "backends/cuda/program/program.h"
#include "core/base/error.h"
#include "core/io/base64.h"
#include "core/io/input_file.h"
#include "core/io/temporary_folder.h"

namespace triptych::kernels {
namespace {

namespace fs = std::filesystem;
using cuda::program::ModuleBuild, cuda::program::ModuleFiles, cuda::program::ModuleRequest;

constexpr std::string_view kBegin =
    "// Triptych module 1: code for the emulator of `triptych kernel run`, neither PTX nor cubin\n";
constexpr std::size_t kMostLine = 4096;
/// Magic numbers of machine code for a GPU.
constexpr std::string_view kElf =
                               "\x7f"
                               "ELF",
                           kFatBinary = "\x50\xed\x55\xba";

void write(const fs::path& file, std::string_view content) {
  fs::create_directories(file.parent_path());
  std::ofstream stream(file, std::ios::binary);
  stream << content << std::flush;
  if (!stream) throw IoError(fmt::format("cannot write \"{}\"", file.string()));
}

std::string build_command(const std::string& file) {
  return fmt::format("triptych kernel build FILE.cu --module --out {}", file);
}

std::string image_of(const fs::path& folder, const std::string& name, int architecture) {
  const auto kernels = base64(read_file(folder / cuda::program::kKernelLibrary));
  const auto host = base64(read_file(folder / cuda::program::kHostLibrary));
  return fmt::format("{}// source {}\n// architecture {}\n// characters {} {}\n{}\n{}\n", kBegin,
                     name, architecture, kernels.size(), host.size(), kernels, host);
}

/// The bytes of a text of base64().
std::string decoded(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (value < 0) break;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

/// Reads the lines of an image. Its end is where its own lengths say.
class ImageReader {
 public:
  explicit ImageReader(const char* text) : at_(text) {}

  /// The rest of a line that begins with the word.
  std::string line(std::string_view word) {
    std::string text;
    while (*at_ != '\0' && *at_ != '\n' && text.size() < kMostLine) text += *at_++;
    if (*at_ != '\n' || !text.starts_with(word)) damaged();
    ++at_;
    return text.substr(word.size());
  }
  std::string_view characters(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (at_[i] == '\0') damaged();
    }
    const std::string_view text(at_, count);
    at_ += count;
    line("");
    return text;
  }
  [[noreturn]] static void damaged() {
    throw InvalidArgument("the module is damaged; build it again: " + build_command("NAME"));
  }

 private:
  const char* at_;
};

std::size_t number_of(std::string_view text) {
  std::size_t number = 0;
  const auto end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number).ptr != end) ImageReader::damaged();
  return number;
}

void require_module(const char* image) {
  const auto begins = [&](std::string_view text) {
    return std::equal(text.begin(), text.end(), image);
  };
  const bool is_code = begins(kElf) || begins(kFatBinary);
  if (!is_code && std::string_view(image, ::strnlen(image, kBegin.size())) == kBegin) return;
  throw InvalidArgument(fmt::format(
      "the image is {}, which the emulator does not run; build its source as a module, and load "
      "that instead: {}",
      is_code ? "machine code for a GPU" : "no module of Triptych, but PTX or another text",
      build_command("NAME")));
}

class Builder : public cuda::program::ModuleBuilder {
 public:
  ModuleBuild build(const ModuleRequest& request) override;
  ModuleFiles unpack(const char* image) override;
  std::string command_for(const std::string& file) const override { return build_command(file); }

 private:
  std::vector<std::unique_ptr<TemporaryFolder>> folders_;  ///< of libraries that are open
};

/// "matmul.cu" in place of a name that leaves the folder.
fs::path inside(const fs::path& name) {
  const bool leaves = name.is_absolute() || std::ranges::count(name, "..") != 0;
  return leaves ? name.filename() : name;
}

/// Kernels and variables, whose addresses the last lines name, behind the source.
std::string with_expressions(const ModuleRequest& request) {
  auto text = fmt::format("#line 1 \"{}\"\n", request.name);
  if (request.for_both) text = "#pragma clang force_cuda_host_device begin\n" + text;
  text += request.source;
  if (request.for_both) text += "\n#pragma clang force_cuda_host_device end";
  text += "\n#line 1 \"nvrtcAddNameExpression\"\n";
  for (std::size_t i = 0; i < request.expressions.size(); ++i) {
    std::string_view name = request.expressions[i];
    if (name.starts_with('&')) name.remove_prefix(1);
    // The host's part, too, so that it registers an instance of a template.
    text += fmt::format(
        "__attribute__((used)) static const void* triptych_stub_{0} = (const void*)&({1});\n"
        "extern \"C\" __device__ __attribute__((used)) const void* triptych_name_{0} = "
        "(const void*)&({1});\n",
        i, name);
  }
  return text;
}

/// The linker's names of what the expressions of a module stand for.
std::vector<std::string> symbols_of(const fs::path& folder, std::size_t count) {
  std::vector<std::string> symbols;
  if (count == 0) return symbols;
  const cuda::plain::KernelLibrary library(folder / cuda::program::kKernelLibrary);
  for (std::size_t i = 0; i < count; ++i) {
    const auto place = library.address_of(fmt::format("triptych_name_{}", i));
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a symbol's value
    const auto* pointer = reinterpret_cast<const std::uintptr_t*>(place);
    symbols.push_back(pointer == nullptr ? "" : library.symbol_at(*pointer));
  }
  return symbols;
}

ModuleBuild Builder::build(const ModuleRequest& request) {
  const TemporaryFolder folder("module");
  const auto file = folder.path() / "module.cu";
  write(file, with_expressions(request));
  ProgramSource source = {.files = {file}, .contract = request.contract};
  source.architecture = 10 * request.architecture;
  source.has_unwatched = request.has_unwatched;
  source.options = {"-D__CUDACC_RTC__=1", "-I" + (folder.path() / "headers").string()};
  for (const auto& [name, text] : request.headers) {
    write(folder.path() / "headers" / inside(name), text);
  }
  source.options.insert(source.options.end(), request.options.begin(), request.options.end());
  source.options.push_back("-I" + fs::absolute(request.name).parent_path().string());
  ModuleBuild build;
  try {
    build.log = compile_program(source, folder.path());
    build.symbols = symbols_of(folder.path(), request.expressions.size());
    build.image =
        image_of(folder.path(), fs::path(request.name).filename().string(), request.architecture);
  } catch (const InvalidArgument& error) {
    // The first line names the temporary file.
    const std::string text = error.what();
    build.log = text.substr(std::min(text.size(), text.find('\n') + 1));
  }
  return build;
}

ModuleFiles Builder::unpack(const char* image) {
  require_module(image);
  ImageReader reader(image + kBegin.size());
  ModuleFiles files;
  files.name = reader.line("// source ");
  files.architecture = static_cast<int>(number_of(reader.line("// architecture ")));
  const auto sizes = reader.line("// characters ");
  const auto blank = sizes.find(' ');
  if (blank == sizes.npos) ImageReader::damaged();
  const auto kernels = reader.characters(number_of(sizes.substr(0, blank)));
  const auto host = reader.characters(number_of(sizes.substr(blank + 1)));
  folders_.push_back(std::make_unique<TemporaryFolder>("module"));
  files.folder = folders_.back()->path();
  write(files.folder / cuda::program::kKernelLibrary, decoded(kernels));
  write(files.folder / cuda::program::kHostLibrary, decoded(host));
  return files;
}

}  // namespace

Module compile_module(const ProgramSource& source) {
  const TemporaryFolder folder("module");
  Module module;
  module.compiler_warnings = compile_program(source, folder.path());
  module.image =
      image_of(folder.path(), source.files.front().filename().string(), source.architecture / 10);
  return module;
}

std::unique_ptr<cuda::program::ModuleBuilder> module_builder() {
  return std::make_unique<Builder>();
}

}  // namespace triptych::kernels
