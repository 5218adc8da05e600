// Types of the module's functions of operators, from the operator table: the file ops.pyi.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <exception>

#include "core/ops/all_ops.h"
#include "experiments/python/python_names.h"

namespace triptych::python {
namespace {

std::string_view type_of(const AttributeValue& value) {
  static constexpr std::string_view types[] = {"int", "float", "str", "Sequence[int]",
                                               "Sequence[float]"};
  return types[value.index()];
}

/// The keyword arguments: attributes, then the machine.
std::string keywords(const Op& op) {
  std::string text;
  for (const auto& attribute : op.attributes())
    text += fmt::format("{}: {} = ..., ", python_word(attribute.name), type_of(attribute.value));
  return text + "backend: str = ..., contract: str = ..., options: Options = ...";
}

void print_operator(const Op& op) {
  const auto name = python_name(op.name());
  const auto arguments = keywords(op);
  fmt::print(R"(@overload
def {0}(x: Value, /, *inputs: Value | ArrayLike, {1}) -> Any: ...
@overload
def {0}(*inputs: ArrayLike, {1}) -> Result: ...
)",
             name, arguments);
  if (name != op.name()) fmt::print("{} = {}\n", op.name(), name);
}

/// Python's operators of two, as ops.py gives them to Result.
std::string arithmetic() {
  std::string text;
  for (const auto* name : {"add", "sub", "mul", "truediv", "pow", "matmul"}) {
    text += fmt::format("    def __{0}__(self, other: Any) -> Any: ...\n", name);
    text += fmt::format("    def __r{0}__(self, other: Any) -> Any: ...\n", name);
  }
  for (const auto* name : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    text += fmt::format("    def __{}__(self, other: Any) -> Any: ...\n", name);
  }
  return text;
}

void print_stub() {
  fmt::print(R"(from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from numpy import ndarray
from numpy.typing import ArrayLike

from ._triptych import Value

Options = Mapping[str, Any] | None

@dataclass(frozen=True, eq=False)
class Result:
    outputs: tuple[ndarray[Any, Any], ...]
    device: str
    kernel: str
    seconds: float
    time_kind: str
    counters: dict[str, float] = ...
    @property
    def value(self) -> ndarray[Any, Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    def __iter__(self) -> Iterator[Result]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any) -> Result: ...
    @property
    def T(self) -> Result: ...
    def __bool__(self) -> bool: ...
{}    def __neg__(self) -> Result: ...
    def __array__(self, dtype: Any = ..., copy: bool | None = ...) -> ndarray[Any, Any]: ...
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def _repr_html_(self) -> str: ...

def add_operators(kind: type) -> None: ...
def python_name(name: str) -> str: ...
def quantized_matmul(
    a: ArrayLike, b: ArrayLike, *, scales: Sequence[float] | None = ..., backend: str = ...,
    contract: str = ..., options: Options = ...
) -> Result: ...
def requantization(scales: Sequence[float], channels: int) -> list[ndarray[Any, Any]]: ...
)",
             arithmetic());
  for (const auto& op : all_ops()) print_operator(*op);
}

}  // namespace
}  // namespace triptych::python

int main() {
  try {
    triptych::python::print_stub();
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    return 1;
  }
  return 0;
}
