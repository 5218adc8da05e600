# SPDX-License-Identifier: Apache-2.0
"""Operators and their gradients at special values against float64, with the same bits on all machines.

A trial draws one of ONNX's operators, a shape and values that float32 finds hard: around the ends of exp, of squares and
of the format, zeros, infinities, NaN, and indices out of range. A file of ONNX with that node is read by the module
`triptych`. The result, and the gradient of a weighted sum of it, must be those of float64 within the error that float32
allows; the CPU, the emulated GPU and the array must give the same bits. ONNX Runtime and PyTorch judge, too, where they
are installed. An index out of range must be refused by its value. Options: campaign.py; the program is not run.
"""
import math
import sys

import numpy as np

from campaign import SOURCE, Campaign, Failure, main
from functions import FUNCTIONS, MAGNITUDES, REDUCTIONS, SPECIAL

sys.path.insert(1, str(SOURCE / "tests" / "cli"))
import onnx_files  # noqa: E402
import triptych  # noqa: E402
from triptych import _triptych, ops  # noqa: E402

try:
    import onnxruntime
except ImportError:
    onnxruntime = None
try:
    import torch
except ImportError:
    torch = None

MACHINES = ("cpu", "cuda-emulated", "systolic")
RELATIVE, SMALLEST = 3e-6, 1.2e-38
LARGEST = float(np.finfo(np.float32).max)

#: Functions with an exact gradient, also where x dy exceeds the largest float32.
OVERFLOWING = ("Elu", "Elu 0.3", "Selu", "Celu", "Softplus", "Softsign", "Mish", "Gelu", "Gelu tanh", "Relu")

#: PyTorch's functions of the same operators, in float64. Softplus is linear above 20 there, as it is within float32.
THEIRS = {} if torch is None else {
    "Elu": torch.nn.functional.elu, "Selu": torch.nn.functional.selu, "Celu": lambda x: torch.nn.functional.celu(x, 2.0),
    "Elu 0.3": lambda x: torch.nn.functional.elu(x, 0.3), "Mish": torch.nn.functional.mish,
    "Softplus": lambda x: torch.nn.functional.softplus(x, threshold=40), "Softsign": torch.nn.functional.softsign,
    "Gelu": torch.nn.functional.gelu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Erf": torch.erf, "Exp": torch.exp,
    "Log": torch.log, "Abs": torch.abs, "Sign": torch.sign, "Relu": torch.relu}


def attribute(name, value):
    if isinstance(value, str):
        return onnx_files.text(name, value)
    return onnx_files.number(name, value) if isinstance(value, float) else onnx_files.integer(name, value)


def worst(got, want, absolute=0.0, scale=1.0):
    """Nothing, or the first element that is further from float64 than allowed."""
    got, want = np.asarray(got, np.float64).ravel(), np.asarray(want, np.float64).ravel()
    scale = np.broadcast_to(scale, want.shape)
    for i, (have, expected) in enumerate(zip(got, want)):
        if math.isnan(expected) or math.isnan(have):
            good = math.isnan(expected) and math.isnan(have)
        elif abs(expected) > LARGEST * (1 - 1e-6):  # may round to infinity
            good = have == math.copysign(math.inf, expected) or math.isclose(have, expected, rel_tol=RELATIVE)
        elif math.isinf(have):
            good = False
        else:
            good = abs(have - expected) <= RELATIVE * abs(expected) + (absolute + SMALLEST) * max(1.0, scale[i])
        if not good:
            return f"element {i} is {have!r}, not {expected!r}"
    return None


class Functions(Campaign):
    def attempt(self, draw, number):
        kinds = [self.function, self.function, self.reduction, self.power, self.whole_power, self.index, self.chosen]
        kinds[number % len(kinds)](draw)
        if number % 60 == 0:
            self.overflowing()
        self.runs += 1

    def values(self, draw, shape, special=True, most=math.inf, least=0.0):
        pool = [m for m in MAGNITUDES if m <= most and (m == 0 or m >= least)]

        def one():
            if special and draw.random() < 0.06:
                return draw.choice(SPECIAL)
            magnitude = draw.choice(pool) if draw.random() < 0.7 else min(most, max(least, draw.uniform(0, 4)))
            return draw.choice([-1, 1]) * magnitude

        return np.array([one() for _ in range(math.prod(shape))], np.float32).reshape(shape)

    def write(self, nodes, inputs, output, initializers=(), opset=21):
        """Path of a model; inputs and output are (name, shape, kind)."""
        path = self.folder / "tmp" / "m.onnx"
        path.write_bytes(onnx_files.model(nodes, [onnx_files.value_info(*i) for i in inputs],
                                          [onnx_files.value_info(*output)], initializers, opset))
        return path

    def run(self, path, inputs):
        """The output "y" under f32, and the same bits under bf16-exact on every machine."""
        graph = triptych.load(path)
        y = graph.plan("cpu", threads=1).run(**inputs)["y"]
        bits = {name: graph.plan(name, "bf16-exact", threads=1).run(**inputs)["y"].tobytes() for name in MACHINES}
        if len(set(bits.values())) > 1:
            raise Failure(f"the machines differ: {np.frombuffer(bits['cpu'], y.dtype)}, "
                          f"{np.frombuffer(bits['cuda-emulated'], y.dtype)}")
        return y

    def slope(self, path, x, dy, machine="cpu"):
        """The gradient of sum(y dy) where "w", an initialiser, is x: the velocity after a step of SGD."""
        graph = triptych.Graph(_triptych.load_training(str(path), {"w": "parameter"}, 0))
        loss = ops.reduce_sum(graph.result("y") * dy, keepdims=False)
        plan = graph.train(loss, "sgd", momentum=0.9).plan(machine, "bf16-exact", threads=1)
        plan.run(learning_rate=np.float32(0))
        return plan.states["optimizer.velocity.w"]

    def judge_node(self, name, op, attributes, x, f, slope, absolute, axis=None, scale=1.0):
        """One operator of x: its value everywhere, its gradient where x is finite."""
        y64 = f(x.astype(np.float64))
        out = ("y", y64.shape)
        extra = ["axes"] if axis is not None else []
        constants = [onnx_files.whole_tensor("axes", [1], [axis])] if axis is not None else []
        words = [attribute(*a) for a in attributes.items()]
        path = self.write([onnx_files.node(op, ["x", *extra], ["y"], *words)], [("x", x.shape)], out, constants)
        self.require(worst(self.run(path, {"x": x}), y64, absolute, scale), f"{name} of {x.ravel()}")
        self.their_value(name, path, x, y64, absolute, scale)
        if name == "Sign":
            return
        x = np.where(np.isfinite(x), x, np.float32(0.75))
        most = 1.4 if name in OVERFLOWING else 1  # the others need a finite x dy
        dy = np.linspace(0.5, most, y64.size, dtype=np.float32).reshape(y64.shape)
        weight = onnx_files.tensor("w", x.shape, x.ravel().tolist())
        path = self.write([onnx_files.node(op, ["w", *extra], ["y"], *words)], [], out, [*constants, weight])
        want = dy * slope(x.astype(np.float64))
        found = {machine: self.slope(path, x, dy, machine) for machine in MACHINES}
        self.require(worst(found["cpu"], want, 3 * absolute), f"the gradient of {name} at {x.ravel()}")
        if len({gradient.tobytes() for gradient in found.values()}) > 1:
            raise Failure(f"the machines differ in the gradient of {name} at {x.ravel()}")
        self.their_slope(name, x, dy, want, 3 * absolute)

    def require(self, difference, where):
        if difference:
            raise Failure(f"{where}: {difference}")

    def their_value(self, name, path, x, y64, absolute, scale):
        # ONNX Runtime's Gelu, Mish and LogSumExp of infinities are NaN or not by version.
        if onnxruntime is None or not np.isfinite(x).all():
            return
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.require(worst(session.run(None, {"x": x})[0], y64, 4 * absolute + 1e-6, scale), f"ONNX Runtime, {name}")

    def their_slope(self, name, x, dy, want, absolute):
        if name not in THEIRS:
            return
        given = torch.tensor(x.astype(np.float64), requires_grad=True)
        (THEIRS[name](given) * torch.tensor(dy)).sum().backward()
        self.require(worst(given.grad.numpy(), want, absolute + 1e-9), f"PyTorch, the gradient of {name} at {x.ravel()}")

    def overflowing(self):
        """Gradients at every magnitude, with a dy for which x dy overflows."""
        x = np.array([sign * m for m in MAGNITUDES for sign in (-1, 1)], np.float32)
        for name in OVERFLOWING:
            op, attributes, f, slope, absolute = FUNCTIONS[name]
            self.judge_node(name, op, attributes, x, f, slope, absolute)

    # One method for each kind of trial.

    def function(self, draw):
        name = draw.choice(sorted(FUNCTIONS))
        op, attributes, f, slope, absolute = FUNCTIONS[name]
        x = self.values(draw, (draw.choice([1, 5, 24]),))
        self.judge_node(name, op, attributes, x, f, slope, absolute)

    def reduction(self, draw):
        name = draw.choice(sorted(REDUCTIONS))
        f, slope = REDUCTIONS[name]
        squares = name in ("ReduceL2", "ReduceSumSquare")
        shape = draw.choice([(3, 4), (2, 5, 3), (1, 1100)])
        axis = draw.randrange(len(shape))
        x = self.values(draw, shape, most=1e18 if squares else 1e30, least=1e-18 if squares else 0.0)
        if draw.random() < 0.2:
            x[(0,) * axis + (slice(None),)] = draw.choice([0.0, -math.inf, math.inf])
        sums = name in ("ReduceSum", "ReduceMean")
        scale = 1.0
        if sums:  # what cancels leaves the error of the largest
            finite = np.where(np.isfinite(x), np.abs(x.astype(np.float64)), 0)
            scale = np.max(finite, axis=axis, keepdims=True).ravel() * shape[axis]
        absolute = 3e-6 if sums or name == "ReduceLogSumExp" else 0
        self.judge_node(name, name, {}, x, lambda v: f(v, axis), lambda v: slope(v, axis), absolute, axis, scale)

    def power(self, draw):
        """Both gradients of a^b, of PyTorch's rules at zeros."""
        a = np.abs(self.values(draw, (8,), special=False, most=30, least=1e-4))
        b = np.array([draw.choice([0, 1, 2, 3, -1, 0.5, 1.5]) for _ in a], np.float32)
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        y64 = wide_a**wide_b
        slopes = {"a": np.where(b == 0, 0, wide_b * wide_a ** np.where(b == 0, 1, wide_b - 1)),
                  "b": np.where((a == 0) & (b >= 0), 0, y64 * np.log(wide_a))}
        for name, want in slopes.items():
            graph = triptych.Graph()
            pair = [graph.parameter("w", a) if name == "a" else a, graph.parameter("w", b) if name == "b" else b]
            y = ops.pow(*pair)
            loss = ops.reduce_sum(y, keepdims=False)
            plan = graph.train(loss, "sgd", momentum=0.9).plan("cpu", threads=1)
            plan.run(learning_rate=np.float32(0))
            self.require(worst(plan.states["optimizer.velocity.w"], want, 1e-5), f"the slope by {name} of {a}^{b}")

    def whole_power(self, draw):
        x = [draw.randint(-1290, 1290) for _ in range(6)]
        e = [draw.choice([0, 1, 2, 3]) for _ in x]
        path = self.write([onnx_files.node("Pow", ["x", "e"], ["y"])],
                          [("x", [6], onnx_files.INT32), ("e", [6])], ("y", [6], onnx_files.INT32))
        y = self.run(path, {"x": np.int32(x), "e": np.float32(e)})
        if y.tolist() != [b**p for b, p in zip(x, e)]:
            raise Failure(f"{x}^{e} is {y.tolist()}")

    def index(self, draw):
        """An index within its axis is followed, one beyond it refused, by Gather and its family, at any size."""
        rows, columns, count = draw.randint(1, 70), draw.randint(1, 5), draw.choice([2, 700, 1500])
        op = draw.choice(["Gather", "GatherElements", "GatherND"])
        x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        i = np.array([draw.randint(-rows, rows - 1) for _ in range(count)], np.int64)
        bad = draw.choice([None, rows, -rows - 1, rows + 1000, 2**40])
        place = draw.randrange(count)
        if bad is not None:
            i[place] = bad
        shape = {"Gather": (count,), "GatherElements": (count, 1), "GatherND": (count, 1)}[op]
        out = (count, 1) if op == "GatherElements" else (count, columns)
        attributes = [onnx_files.integer("axis", 0)] if op != "GatherND" else []
        path = self.write([onnx_files.node(op, ["x", "i"], ["y"], *attributes)],
                          [("x", x.shape), ("i", shape, onnx_files.INT64)], ("y", out))
        try:
            y = self.run(path, {"x": x, "i": i.reshape(shape)})
        except triptych.BadInput as error:
            shown = min(bad, 2**31 - 1) if bad is not None else None
            if bad is None or f"index {shown} at position {place} is outside [{-rows}, {rows - 1}]" not in str(error):
                raise Failure(f"{op}, index {bad} at {place}: {error}") from None
            return
        want = x[i % rows] if op != "GatherElements" else x[i % rows, :1]
        if bad is not None or y.tobytes() != np.ascontiguousarray(want).tobytes():
            raise Failure(f"{op} of {rows} rows takes the index {bad} at {place} for another")

    def chosen(self, draw):
        """The place of the largest or smallest: of a NaN, where there is one."""
        op, shape = draw.choice(["ArgMax", "ArgMin"]), draw.choice([(3, 7), (2, 40, 3)])
        x = self.values(draw, shape)
        axis = draw.randrange(len(shape))
        path = self.write([onnx_files.node(op, ["x"], ["y"], onnx_files.integer("axis", axis),
                                           onnx_files.integer("keepdims", 0))],
                          [("x", shape)], ("y", np.argmax(x, axis).shape, onnx_files.INT64))
        want = (np.argmax if op == "ArgMax" else np.argmin)(x, axis)
        if self.run(path, {"x": x}).tolist() != want.tolist():
            raise Failure(f"{op} of {x.tolist()} along {axis}")


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        sys.exit(main(__doc__, lambda program, folder, arguments: Functions(program, folder)))
