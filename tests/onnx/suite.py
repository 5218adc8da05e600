"""The tests of ONNX as Debian's libonnx-testdata brings them: a model, inputs and expected outputs each."""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import struct

import numpy

PLACES = ["/usr/share/libonnx-testdata/data", "/usr/lib/python3/dist-packages/onnx/backend/test/data"]
SUITES = ["node", "simple", "pytorch-operator", "pytorch-converted"]
# TensorProto.DataType: NumPy's type, and the field that holds its numbers where they are not raw.
TYPES = {1: ("<f4", 4), 2: ("u1", 5), 3: ("i1", 5), 4: ("<u2", 5), 5: ("<i2", 5), 6: ("<i4", 5), 7: ("<i8", 7),
         9: ("?", 5), 10: ("<f2", 5), 11: ("<f8", 10), 12: ("<u4", 11), 13: ("<u8", 11)}
# The expected outputs of these are draws of NumPy's generator.
DRAWN = re.compile(r"test_(bernoulli|training_dropout(?!_zero_ratio)|randomuniform|randomnormal)")


def root():
    """The suites' folder, or None."""
    return next((path for path in map(pathlib.Path, PLACES) if (path / "node").is_dir()), None)


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field: a whole number, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def messages(data, number):
    return [value for field, value in fields(data) if field == number]


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def numbers(values, wire):
    """Numbers of a repeated field, packed or one by one."""
    result = []
    for value in values:
        if isinstance(value, int):
            result.append(signed(value))
        elif wire in ("<f4", "<f8"):
            result += numpy.frombuffer(value, wire).tolist()
        else:
            at = 0
            while at < len(value):
                number, at = varint(value, at)
                result.append(signed(number))
    return result


def tensor(data):
    """A TensorProto as an array, or None when .npy files cannot hold it."""
    kind = messages(data, 2)
    if not kind or kind[0] not in TYPES:
        return None
    wire, field = TYPES[kind[0]]
    shape = numbers(messages(data, 1), "i")
    raw = messages(data, 9)
    if raw:
        return numpy.frombuffer(raw[0], wire).reshape(shape)
    stored = numbers(messages(data, field), wire)
    if wire == "<f2":
        return numpy.array(stored, "<u2").view(wire).reshape(shape)
    return numpy.array(stored, wire).reshape(shape)


class Case:
    """One test: `name` is SUITE/TEST."""

    def __init__(self, folder):
        self.name = f"{folder.parent.name}/{folder.name}"
        self.model = folder / "model.onnx"
        self.data = sorted(folder.glob("test_data_set_*"))[0]

    def value_types(self, field):
        """Types of the graph's inputs (11) or outputs (12): numbers, 0 for what is no tensor."""
        graph = messages(self.model.read_bytes(), 7)[0]
        types = []
        for value in messages(graph, field):
            kind = [messages(one, 1) for one in messages(value, 2)]
            types.append(messages(kind[0][0], 1)[0] if kind and kind[0] else 0)
        return types

    def arrays(self, which):
        files = sorted(self.data.glob(f"{which}_*.pb"), key=lambda path: int(path.stem.split("_")[1]))
        return [tensor(path.read_bytes()) for path in files]

    def expressible(self):
        """False when .npy files cannot hold its inputs and outputs, or its outputs are drawn."""
        if DRAWN.match(self.model.parent.name):
            return False
        inputs = len(list(self.data.glob("input_*.pb")))
        types = self.value_types(11)[:inputs] + self.value_types(12)
        return all(kind in TYPES for kind in types)


def cases(folder):
    for suite in filter(lambda name: (folder / name).is_dir(), SUITES):
        for path in sorted((folder / suite).iterdir()):
            if (path / "model.onnx").is_file() and list(path.glob("test_data_set_*")):
                yield Case(path)
