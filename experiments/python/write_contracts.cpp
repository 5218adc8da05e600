// The contract of each operator, as its header states it, for docstrings: the file _contracts.py.
//   write_contracts HEADER...    of core/ops, from the root of the sources
// SPDX-License-Identifier: Apache-2.0
#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "core/ops/all_ops.h"

namespace triptych::python {
namespace {

struct Contract {
  std::string header, text;
};

/// Adds the comments above the operators' structs, by the structs' names.
void read_header(const std::string& path, std::map<std::string, Contract>& contracts) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::string comment;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("/// ")) {
      comment += line.substr(4) + "\n";
      continue;
    }
    const auto base = line.find(" : ");
    if (line.starts_with("struct ") && base != std::string::npos &&
        (line.find("Of<", base) != std::string::npos || line.compare(base, 5, " : Op") == 0))
      contracts[line.substr(7, line.find(' ', 7) - 7)] = {path, comment};
    comment.clear();
  }
}

/// Name of the operator's struct: one of a family has the family's.
std::string struct_of(const Op& op) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(typeid(op).name(), nullptr, nullptr, nullptr), &std::free);
  const std::string full(name.get());
  return full.substr(full.rfind(':') + 1);
}

void print_contracts(const std::map<std::string, Contract>& contracts) {
  fmt::print("\"\"\"Each operator's header, and its contract there.\"\"\"\n");
  fmt::print("CONTRACTS: dict[str, tuple[str, str]] = {{\n");
  for (const auto& op : all_ops()) {
    const auto& found = contracts.at(struct_of(*op));
    fmt::print("    {:?}: ({:?}, {:?}),\n", op->name(), found.header, found.text);
  }
  fmt::print("}}\n");
}

}  // namespace
}  // namespace triptych::python

int main(int count, char** headers) {
  try {
    std::map<std::string, triptych::python::Contract> contracts;
    for (int i = 1; i < count; ++i) triptych::python::read_header(headers[i], contracts);
    triptych::python::print_contracts(contracts);
  } catch (const std::exception& error) {
    fmt::print(stderr, "write_contracts: {}\n", error.what());
    return 1;
  }
  return 0;
}
