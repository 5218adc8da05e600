"""Graphs, traced from ordinary Python, and plans of them on a machine."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, cast

from . import _triptych, ops
from ._triptych import BadInput, Value
from .data import Array
from .drawing import graph_svg
from .indexing import indexed, transposed
from .table import Table

Shape = tuple[int, ...] | list[int]


class Graph:
    """A static graph: each run sets inputs, states persist between runs, nodes compute.

    with triptych.Graph() as g:
        x = g.input("x", (1, 3, 8, 8))
        w = g.parameter("w", weights)
        g.output("y", triptych.ops.relu(triptych.ops.conv(x, w)))
    plan = g.plan("systolic", "bf16-exact")
    plan.run(x=picture)["y"]
    """

    def __init__(self, _native: Any = None) -> None:
        self._native: _triptych.Graph = _native if _native is not None else _triptych.Graph()

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def input(self, name: str, shape: Shape, dtype: Any = "f32") -> Value:
        """An input value, set for each run."""
        return self._native.input(name, tuple(shape), dtype)

    def parameter(self, name: str, array: Any) -> Value:
        """A state with this initial value that training updates."""
        return self._native.state(name, array, True)

    def state(self, name: str, array: Any) -> Value:
        """A state with this initial value that training leaves alone."""
        return self._native.state(name, array, False)

    def output(self, name: str, value: Value) -> Value:
        """Makes a value readable after a run."""
        self._native.mark_output(name, value)
        return value

    def result(self, name: str) -> Value:
        """The value of an output."""
        return self._native.result(name)

    def value(self, name: str) -> Value:
        """The value of that name."""
        return self._native.find(name)

    @property
    def inputs(self) -> list[tuple[str, tuple[int, ...], str]]:
        """(name, shape, dtype) of each input."""
        return cast("list[tuple[str, tuple[int, ...], str]]", self._native.inputs())

    @property
    def states(self) -> list[tuple[str, tuple[int, ...], str]]:
        """(name, shape, dtype) of each state."""
        return cast("list[tuple[str, tuple[int, ...], str]]", self._native.states())

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs."""
        return cast("list[str]", self._native.outputs())

    @property
    def nodes(self) -> Table:
        """A row for each node: name, op, inputs, outputs (names of values), shape of the first."""
        keys = ("node", "op", "inputs", "outputs", "shape")
        return Table(dict(zip(keys, row)) for row in self._native.nodes())

    def train(self, loss: Value, optimizer: str = "adam", **options: Any) -> Graph:
        """The graph of one training step: this one, the gradients of its parameters, an update.

        `loss` has one element, a mean over the batch, and becomes the output "loss". The step has
        an input "learning_rate". Options have PyTorch's defaults. sgd takes momentum=0 and
        nesterov=False. adam and adamw take beta1=0.9, beta2=0.999 and epsilon=1e-8. All take
        weight_decay, which is 0.01 for adamw and 0 for the others.
        """
        if not isinstance(loss, Value) or loss.graph is not self._native:
            raise BadInput("the loss is no value of this graph")
        return Graph(self._native.train(loss, optimizer, options))

    def plan(
        self,
        backend: str = "cpu",
        contract: str = "f32",
        *,
        keep_values: bool = False,
        inference: bool = False,
        **options: Any,
    ) -> Plan:
        """The graph prepared on a machine that is opened for it.

        Options as in `ops`: fallback, machine, simulate, threads, kernel. With keep_values every
        value can be read by its name after a run. With inference the states become constants, and
        operators are merged where that is possible, as by `triptych run`. Such a plan is faster and
        has no states.
        """
        machine = {"backend": backend, "contract": contract, **options}
        return Plan(self._native.plan(machine, keep_values, inference))

    def to_dot(self) -> str:
        """The graph in Graphviz's language."""
        return cast(str, self._native.dot())

    def to_svg(self) -> str:
        """A drawing, inputs above outputs."""
        return graph_svg(self.nodes, [name for name, _, _ in self.inputs], self.outputs)

    def _repr_html_(self) -> str:
        return self.to_svg()

    def __str__(self) -> str:
        return cast(str, self._native.text())

    def __repr__(self) -> str:
        nodes = self._native.node_count()
        return f"<Graph of {nodes} nodes; outputs: {', '.join(self.outputs) or 'none'}>"


class Plan:
    """A graph on a machine, run again and again without preparing anything.

    Any thread may call. Calls of one plan run in sequence, those of different plans in parallel.
    """

    def __init__(self, native: Any) -> None:
        self._native = native

    def run(self, _steps: int = 1, **inputs: Any) -> dict[str, Array]:
        """Runs and returns the outputs by name. The first run needs every input. Later an input that
        is not given keeps its last value.

        This call reads arrays in place and does not keep them.
        """
        return cast("dict[str, Array]", self._native.run(inputs, _steps))

    def read(self, name: str) -> Array:
        """The output of that name after a run. With keep_values, any value."""
        return cast(Array, self._native.output(name))

    @property
    def states(self) -> dict[str, Array]:
        """A copy of every state by name: with `load_states`, all there is to save and resume."""
        return {name: self._native.state(name) for name in self._native.states()}

    @property
    def weights_sha256(self) -> str:
        """Fingerprint of all parameters, by name and value: the command line prints the same."""
        return cast(str, self._native.weights_sha256())

    def load_states(self, states: Mapping[str, Any]) -> None:
        """Sets the states of these names."""
        for name, array in states.items():
            self._native.set_state(name, array)

    def explain(self) -> Table:
        """Where each node runs and why: rows of node, op, device, kernel, reason."""
        keys = ("node", "op", "device", "kernel", "reason")
        return Table(dict(zip(keys, row)) for row in self._native.explain())

    def trace(self, path: str | os.PathLike[str], **inputs: Any) -> None:
        """Runs once, timing each node, and writes a timeline for Perfetto to a new file."""
        text = self._native.trace(inputs)
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise BadInput(f"{os.fspath(path)} exists; choose another name or remove it") from None

    def seconds_per_call(self, calls: int = 1000, **inputs: Any) -> float:
        """Measured seconds of a call without Python: inputs set, a run, all outputs copied out."""
        return cast(float, self._native.seconds_per_call(inputs, calls))

    @property
    def devices(self) -> list[str]:
        """Names of the machines: the one asked for, its host, the fallback."""
        return cast("list[str]", self._native.device_names())

    @property
    def counters(self) -> dict[str, float]:
        """Counters of all its machines since the plan was made."""
        return cast("dict[str, float]", self._native.counters())

    @property
    def kernels(self) -> Table:
        """Of an emulated GPU that counts (emulation="counted"): a row for each kernel so far."""
        return Table(self._native.kernels())

    @property
    def kernel_lines(self) -> Table:
        """The same for each place of a kernel's source that touches memory: requests of warps,
        active lanes, bytes, sectors of 32 bytes (global) or wavefronts (shared)."""
        return Table(self._native.kernel_lines())

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()

    def __repr__(self) -> str:
        return f"<Plan of {len(self._native.explain())} nodes on {', '.join(self.devices)}>"


_RESULTS = "give values of the graph: one, several, or a dict of them"


def function(*in_order: Any, **specs: Any) -> Callable[[Callable[..., Any]], Graph]:
    """Traces a Python function into a graph: an input for each argument, a shape or (shape, dtype).

    @triptych.function((1, 4), y=((1, 4), "bf16"))
    def f(x, y): return triptych.ops.add(x, triptych.ops.cast(y, to="f32"))
    f.plan("cpu").run(x=..., y=...)["y0"]

    Specs without a name go to the function's arguments in their order. The function returns a
    value, several (outputs "y0", "y1", ...), or a dict of them by name.
    """

    def trace(body: Callable[..., Any]) -> Graph:
        graph = Graph()
        inputs = {}
        arguments = list(inspect.signature(body).parameters)
        if len(in_order) > len(arguments):
            raise BadInput(f"{len(in_order)} specs for the arguments {', '.join(arguments) or '(none)'}")
        for name, spec in {**dict(zip(arguments, in_order)), **specs}.items():
            typed = len(spec) == 2 and not isinstance(spec[0], int)
            shape, dtype = spec if typed else (spec, "f32")
            inputs[name] = graph.input(name, shape, dtype)
        results = body(**inputs)
        if isinstance(results, Value):
            results = (results,)
        if isinstance(results, (tuple, list)):
            results = {f"y{i}": value for i, value in enumerate(results)}
        if not isinstance(results, dict):
            raise BadInput(f"the function returned {type(results).__name__}; {_RESULTS}")
        for name, value in results.items():
            if not isinstance(value, Value):
                raise BadInput(f"of the function's results, {name} is {type(value).__name__}; {_RESULTS}")
            graph.output(name, value)
        functools.update_wrapper(graph, body, updated=())  # type: ignore[arg-type]
        return graph

    return trace


def load(path: str | os.PathLike[str], **bind: int) -> Graph:
    """The graph of an ONNX file. Keywords bind open sizes: load("m.onnx", batch=8)."""
    return Graph(_triptych.load(os.fspath(path), bind))


def _no_numbers(self: Value, *_: Any, **__: Any) -> Any:
    raise BadInput(f"{self!r} has no numbers until a plan of its graph runs; use triptych.ops on it")


def _no_truth(self: Value) -> bool:
    raise BadInput(
        f"{self!r} is neither true nor false until a plan of its graph runs; triptych.ops.where chooses "
        "between values, element by element"
    )


def _no_parts(self: Value) -> Any:
    raise TypeError(f"{self!r} is no sequence; take parts by x[i], or all of them by triptych.ops.split")


def _transpose(self: Value) -> Any:
    """The value with its axes in reverse."""
    return transposed(ops, self)


ops.add_operators(Value)
setattr(Value, "__getitem__", lambda self, key: indexed(ops, self, key))
setattr(Value, "__iter__", _no_parts)
setattr(Value, "T", property(_transpose))
setattr(Value, "__bool__", _no_truth)
setattr(Value, "__array__", _no_numbers)
setattr(Value, "__array_ufunc__", None)  # NumPy leaves array + value to the value
