"""Graphs, traced from ordinary Python, and plans of them on a machine."""
# SPDX-License-Identifier: Apache-2.0
import functools
import os

from . import _triptych, ops
from ._triptych import BadInput, Value


class Graph:
    """A static graph: inputs are given to each run, states live from run to run, nodes compute.

    with triptych.Graph() as g:
        x = g.input("x", (1, 3, 8, 8))
        w = g.parameter("w", weights)
        g.output("y", triptych.ops.relu(triptych.ops.conv(x, w)))
    plan = g.plan("systolic", "bf16-exact")
    plan.run(x=picture)["y"]
    """

    def __init__(self, _native=None):
        self._native = _native if _native is not None else _triptych.Graph()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def input(self, name, shape, dtype="f32"):
        """A value that each run is given."""
        return self._native.input(name, tuple(shape), dtype)

    def parameter(self, name, array):
        """A state with this initial value that training updates."""
        return self._native.state(name, array, True)

    def state(self, name, array):
        """A state with this initial value that training leaves alone."""
        return self._native.state(name, array, False)

    def output(self, name, value):
        """Makes a value readable after a run."""
        self._native.mark_output(name, value)
        return value

    def value(self, name):
        """The value of that name."""
        return self._native.find(name)

    @property
    def inputs(self):
        """(name, shape, dtype) of each input."""
        return self._native.inputs()

    @property
    def states(self):
        """(name, shape, dtype) of each state."""
        return self._native.states()

    @property
    def outputs(self):
        """Names of the outputs."""
        return self._native.outputs()

    def train(self, loss, optimizer="adam", **options):
        """The graph of one training step: this one, the gradients of its parameters, an update.

        `loss` has one element, a mean over the batch, and becomes the output "loss". The step has
        an input "learning_rate". Options with PyTorch's defaults: momentum, nesterov (sgd); beta1,
        beta2, epsilon (adam, adamw); weight_decay.
        """
        if not isinstance(loss, Value) or loss.graph is not self._native:
            raise BadInput("the loss is no value of this graph")
        return Graph(self._native.train(loss, optimizer, options))

    def plan(self, backend="cpu", contract="f32", *, keep_values=False, **options):
        """The graph prepared on a machine that is opened for it.

        Options as in `ops`: fallback, machine, simulate, threads, kernel. With keep_values every
        value can be read by its name after a run.
        """
        machine = {"backend": backend, "contract": contract, **options}
        return Plan(self._native.plan(machine, keep_values))

    def to_dot(self):
        """The graph in Graphviz's language."""
        return self._native.dot()

    def __str__(self):
        return self._native.text()

    def __repr__(self):
        nodes = self._native.node_count()
        return f"<Graph of {nodes} nodes; outputs: {', '.join(self.outputs) or 'none'}>"


class Plan:
    """A graph on a machine, run again and again without preparing anything.

    Any thread may call; calls of one plan run one after another, those of several side by side.
    """

    def __init__(self, native):
        self._native = native

    def run(self, _steps=1, **inputs):
        """Runs and returns the outputs by name. An input that is not given keeps its last value.

        Arrays are read where they lie while this call runs, and are not kept.
        """
        self._native.run(inputs, _steps)
        return self._native.outputs()

    def read(self, name):
        """The output of that name after a run; with keep_values any value."""
        return self._native.output(name)

    @property
    def states(self):
        """A copy of every state by name: with `load_states`, all there is to save and resume."""
        return {name: self._native.state(name) for name in self._native.states()}

    @property
    def weights_sha256(self):
        """Fingerprint of all parameters, by name and value: the command line prints the same."""
        return self._native.weights_sha256()

    def load_states(self, states):
        """Sets the states of these names."""
        for name, array in states.items():
            self._native.set_state(name, array)

    def explain(self):
        """Where each node runs and why: dicts of node, op, device, kernel, reason."""
        keys = ("node", "op", "device", "kernel", "reason")
        return [dict(zip(keys, row)) for row in self._native.explain()]

    def trace(self, path, **inputs):
        """Runs once, timing each node, and writes a timeline for Perfetto to a new file."""
        text = self._native.trace(inputs)
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise BadInput(f"{os.fspath(path)} exists; choose another name or remove it") from None

    @property
    def devices(self):
        """Names of the machines: the one asked for, its host, the fallback."""
        return self._native.device_names()

    @property
    def counters(self):
        """Counters of all its machines since the plan was made."""
        return self._native.counters()

    def __repr__(self):
        return f"<Plan of {len(self._native.explain())} nodes on {', '.join(self.devices)}>"


def function(**specs):
    """Traces a Python function into a graph: one input for each keyword, a shape or (shape, dtype).

    @triptych.function(x=(1, 4), y=((1, 4), "bf16"))
    def f(x, y): return triptych.ops.add(x, triptych.ops.cast(y, to=1))
    f.plan("cpu").run(x=..., y=...)["y0"]

    The function returns a value, several (outputs "y0", "y1", ...), or a dict of them by name.
    """

    def trace(body):
        graph = Graph()
        inputs = {}
        for name, spec in specs.items():
            typed = len(spec) == 2 and not isinstance(spec[0], int)
            shape, dtype = spec if typed else (spec, "f32")
            inputs[name] = graph.input(name, shape, dtype)
        results = body(**inputs)
        if isinstance(results, Value):
            results = (results,)
        if not isinstance(results, dict):
            results = {f"y{i}": value for i, value in enumerate(results)}
        for name, value in results.items():
            graph.output(name, value)
        return functools.update_wrapper(graph, body, updated=())

    return trace


def load(path, **bind):
    """The graph of an ONNX file; keywords bind sizes that it leaves open: load("m.onnx", batch=8)."""
    return Graph(_triptych.load(os.fspath(path), bind))


def _binary(name, swapped=False):
    def method(self, other):
        pair = (other, self) if swapped else (self, other)
        return getattr(ops, name)(*pair)

    return method


_ARITHMETIC = {"add": "Add", "sub": "Sub", "mul": "Mul", "truediv": "Div", "matmul": "MatMul"}
for _method, _name in _ARITHMETIC.items():
    setattr(Value, f"__{_method}__", _binary(_name))
    setattr(Value, f"__r{_method}__", _binary(_name, swapped=True))
Value.__neg__ = lambda self: ops.neg(self)
Value.__array_ufunc__ = None  # NumPy leaves array + value to the value
