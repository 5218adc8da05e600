// generate_package <root of the repository>: rewrites systolic/rtl/mmu_pkg.sv and the instruction
// tables of docs/reference/mmu.md.
// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "systolic/isa/package.h"

namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: generate_package <root of the repository>\n";
    return 2;
  }
  try {
    const std::filesystem::path root(argv[1]);
    const std::filesystem::path manual = root / "docs/reference/mmu.md";
    write_text(root / "systolic/rtl/mmu_pkg.sv", triptych::mmu::systemverilog_package());
    write_text(manual, triptych::mmu::with_manual_tables(read_text(manual)));
  } catch (const std::exception& error) {
    std::cerr << "generate_package: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
