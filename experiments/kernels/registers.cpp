// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/registers.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <sstream>

#include "backends/cuda/plain/object_file.h"
#include "core/io/find_program.h"
#include "core/io/temporary_folder.h"
#include "systolic/sim/toolchain.h"

namespace triptych::kernels {
namespace {

/// "void tiled<16>(float*)" as the emulator names it: without type, parameters and blanks that only
/// some compilers write.
std::string kernel_of(const std::string& symbol) {
  auto name = cuda::plain::demangle(symbol);
  if (name.starts_with("void ")) name.erase(0, 5);
  int depth = 0;
  for (std::size_t at = 0; at < name.size(); ++at) {
    depth += name[at] == '<' ? 1 : name[at] == '>' ? -1 : 0;
    if (name[at] != '(' || depth > 0 || name.compare(at, 11, "(anonymous ") == 0) continue;
    name.resize(at);
  }
  return name;
}

/// A file that holds every kernel of the query's first file.
std::filesystem::path with_instances(const RegisterQuery& query,
                                     const std::filesystem::path& folder) {
  if (query.instances.empty()) return query.files.front();
  auto path = folder / "instances.cu";
  std::ofstream file(path, std::ios::binary);
  file << fmt::format("#include \"{}\"\n", std::filesystem::absolute(query.files[0]).string());
  for (std::size_t i = 0; i < query.instances.size(); ++i) {
    file << fmt::format("const void* triptych_instance_{} = (const void*)&{};\n", i,
                        query.instances[i]);
  }
  return path;
}

}  // namespace

std::map<std::string, int> read_registers(std::string_view messages) {
  constexpr std::string_view entry = "Compiling entry function '", used = ": Used ";
  std::map<std::string, int> result;
  std::string kernel;
  std::istringstream lines{std::string(messages)};
  for (std::string line; std::getline(lines, line);) {
    if (const auto at = line.find(entry); at != line.npos) {
      const auto begin = at + entry.size();
      kernel = kernel_of(line.substr(begin, line.find('\'', begin) - begin));
    }
    const auto at = line.find(used);
    if (at == line.npos || kernel.empty()) continue;
    int count = 0;
    std::from_chars(line.data() + at + used.size(), line.data() + line.size(), count);
    if (count > 0) result[kernel] = count;
  }
  return result;
}

std::map<std::string, int> find_registers(const RegisterQuery& query) {
  if (!find_program("nvcc")) return {};
  const TemporaryFolder folder("registers");
  std::map<std::string, int> result;
  for (std::size_t i = 0; i < query.files.size(); ++i) {
    std::vector<std::string> command = {"nvcc",
                                        "-cubin",
                                        "-Xptxas",
                                        "-v",
                                        fmt::format("-arch=sm_{}", query.architecture),
                                        query.contract ? "-fmad=true" : "-fmad=false"};
    command.insert(command.end(), query.options.begin(), query.options.end());
    command.insert(command.end(), {"-o", (folder.path() / "kernels.cubin").string()});
    const auto file = i == 0 ? with_instances(query, folder.path()) : query.files[i];
    if (file.extension() != ".cu") continue;
    command.push_back(std::filesystem::absolute(file).string());
    const auto log = folder.path() / fmt::format("{}.log", i);
    if (mmu::run_logged(command, log, std::filesystem::current_path()) != 0) continue;
    std::ostringstream text;
    text << std::ifstream(log).rdbuf();
    result.merge(read_registers(text.view()));
  }
  return result;
}

}  // namespace triptych::kernels
