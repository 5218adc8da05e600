"""Every operator of Triptych's table as a function: `ops.conv`, or by ONNX's name, `ops.Conv`.

With arrays it runs at once, on the machine that `backend` names, and returns a `Result`. With a
value of a graph among its inputs it adds a node to that graph, and returns the node's value, or a
tuple of values. Both have a shape, a dtype and arithmetic, and several outputs are unpacked alike.
Attributes are keyword arguments, with ONNX's names.
"""
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import html
import inspect
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy

from . import _triptych
from ._contracts import CONTRACTS
from .data import DLPack
from .drawing import bars_html
from .indexing import indexed, transposed


@dataclass(frozen=True, eq=False)
class Result:
    """Outputs of one operator, with its time and counters.

    A result with one output has a shape, a dtype and arithmetic, like a value of a graph. A result
    with several outputs is a sequence of results, which unpacks into its parts.
    """

    outputs: tuple
    device: str
    kernel: str  #: of several nodes, where a composite was expanded, joined by " + "
    seconds: float
    time_kind: str  #: measured, simulated, modelled or recorded
    counters: dict = field(default_factory=dict)  #: by how much this run raised the device's

    @property
    def value(self):
        """The first output."""
        return self.outputs[0]

    @property
    def shape(self):
        """The shape of the only output."""
        return self._only("shape").shape

    @property
    def dtype(self):
        """The name of the only output's dtype, "f32"."""
        return _triptych.dtype_name(self._only("dtype").dtype)

    def _only(self, wanted):
        if len(self.outputs) == 1:
            return self.value
        raise _triptych.BadInput(f"{self!r} has {len(self.outputs)} outputs; take one of them for its {wanted}")

    def _each(self, wanted):
        if len(self.outputs) == 1:
            raise TypeError(f"{self!r} has one output, and no {wanted}; its numbers are in .value")
        return [Result((output,), *self._costs()) for output in self.outputs]

    def _costs(self):
        return (self.device, self.kernel, self.seconds, self.time_kind, self.counters)

    def __iter__(self):
        return iter(self._each("parts"))

    def __len__(self):
        return len(self._each("length"))

    def __getitem__(self, key):
        """The part of that number, or x[key] of the only output x."""
        if len(self.outputs) > 1:
            return self._each("elements")[key]
        return indexed(sys.modules[__name__], self, key)

    @property
    def T(self):
        """The only output with its axes in reverse."""
        return transposed(sys.modules[__name__], self)

    def __bool__(self):
        return bool(numpy.asarray(self._only("truth")))

    def __array__(self, dtype=None, copy=None):
        return numpy.asarray(self._only("numbers"), dtype)

    def __dlpack__(self, **options):
        return DLPack(self.value).__dlpack__(**options)

    def __dlpack_device__(self):
        return DLPack(self.value).__dlpack_device__()

    def _repr_html_(self):
        return f"<p>{html.escape(repr(self))}</p>{bars_html(self.counters)}"

    def __repr__(self):
        shapes = ", ".join(f"{o.dtype}{list(o.shape)}" for o in self.outputs)
        return (
            f"Result({shapes}; {self.device}, kernel {self.kernel}, "
            f"{self.seconds * 1e6:.4g} us {self.time_kind})"
        )


def python_name(name):
    """Name of the function of an operator: MatMul and ReduceSum are matmul and reduce_sum."""
    return _triptych.python_name(name)


def _value_of(inputs):
    for value in inputs:
        if isinstance(value, _triptych.Value):
            return value
    return None


def _make(name, formula, defaults, composite, differentiable):
    words = {k: _triptych.python_word(k) for k in defaults}
    keywords = {word: k for k, word in words.items() if word != k}

    def operator(*inputs, backend="cpu", contract="f32", options=None, **attributes):
        inputs = tuple(i._only("numbers") if isinstance(i, Result) else i for i in inputs)
        if keywords:
            attributes = {keywords.get(k, k): v for k, v in attributes.items()}
        traced = _value_of(inputs)
        if traced is not None:
            values = traced.graph.emit(name, inputs, attributes)
            return values[0] if len(values) == 1 else tuple(values)
        machine = {"backend": backend, "contract": contract, **(options or {})}
        return Result(*_triptych.run_operator(name, inputs, attributes, machine))

    operator.__name__ = operator.__qualname__ = python_name(name)
    operator.__module__ = __name__
    kind = "composite: defined by other operators" if composite else "primitive"
    header, contract = CONTRACTS[name]
    operator.__doc__ = (
        f"{formula}\n\n{contract}\n"
        f"ONNX's name: {name}. {kind.capitalize()}; "
        f"{'has a gradient' if differentiable else 'has no gradient'}.\n"
        f"Attributes: {', '.join(f'{k}={v!r}' for k, v in defaults.items()) or 'none'}.\n"
        f"Source: {header}.\n\n"
        "backend, contract: the machine and the numeric contract. options: more of the command\n"
        "line's options of a machine, for example {'fallback': 'cpu', 'machine': 'mmu16'}."
    )
    only = inspect.Parameter.KEYWORD_ONLY
    operator.__signature__ = inspect.Signature(
        [inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL)]
        + [inspect.Parameter(words[k], only, default=v) for k, v in defaults.items()]
        + [
            inspect.Parameter("backend", only, default="cpu"),
            inspect.Parameter("contract", only, default="f32"),
            inspect.Parameter("options", only, default=None),
        ]
    )
    return operator


_OF_TWO = {"add": "Add", "sub": "Sub", "mul": "Mul", "truediv": "Div", "pow": "Pow", "matmul": "MatMul"}
_COMPARISONS = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}


def add_operators(kind):
    """Gives a type Python's operators, as those of the table: arithmetic, comparisons, minus."""

    def of_two(name, swapped=False):
        def method(self, other):
            return globals()[name](*((other, self) if swapped else (self, other)))

        return method

    for method, name in _OF_TWO.items():
        setattr(kind, f"__{method}__", of_two(name))
        setattr(kind, f"__r{method}__", of_two(name, swapped=True))
    for method, name in _COMPARISONS.items():
        setattr(kind, f"__{method}__", of_two(name))
    setattr(kind, "__ne__", lambda self, other: globals()["Not"](self == other))
    setattr(kind, "__neg__", lambda self: globals()["Neg"](self))
    setattr(kind, "__hash__", object.__hash__)


def _define(*row: Any) -> str:
    """Defines an operator under both of its names; returns Python's."""
    function = _make(*row)
    globals().update({row[0]: function, function.__name__: function})
    name: str = function.__name__
    return name


def quantized_matmul(a, b, *, scales=None, backend="cpu", contract="int8", options=None):
    """Product of int8 matrices a [m, k] and b [k, n]: their int32 sums, or int8 results.

    scales: those of a, b and the result, whose value is scale * integer. The sums are then rounded to
    the scale of the result and cut to [-128, 127]. It is QuantizedConv over m positions of k channels.

    backend, contract, options: as of every operator, for example {'machine': 'tpu-v1'}.
    """
    a, b = numpy.asarray(a), numpy.asarray(b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise _triptych.BadInput(f"a is {list(a.shape)}, b is {list(b.shape)}; give [m, k] and [k, n]")
    x = numpy.ascontiguousarray(a.T)[None, :, :, None]
    weights = numpy.ascontiguousarray(b.T)[:, :, None, None]
    inputs = [x, weights]
    if scales is not None:
        inputs += requantization(scales, b.shape[1])
    result = globals()["QuantizedConv"](*inputs, backend=backend, contract=contract, options=options)
    outputs = (numpy.ascontiguousarray(result.outputs[0][0, :, :, 0].T),)
    return dataclasses.replace(result, outputs=outputs)


def requantization(scales, channels):
    """The inputs bias, multiplier and shift of QuantizedConv for the scales of x, weights and result."""
    x, weights, result = scales
    multiplier, shift = _triptych.requantization(float(x) * float(weights) / float(result))
    return [numpy.full(channels, value, numpy.int32) for value in (0, multiplier, shift)]


__all__ = [
    "Result",
    *(_define(*row) for row in _triptych.operators()),
    "quantized_matmul",
    "requantization",
]
add_operators(Result)
setattr(Result, "__array_ufunc__", None)  # NumPy leaves array + result to the result
