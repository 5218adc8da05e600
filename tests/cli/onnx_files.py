"""ONNX and .npy files, written without packages."""
# SPDX-License-Identifier: Apache-2.0
import ast
import struct

FLOAT, INT32, INT64, DOUBLE, BFLOAT16 = 1, 6, 7, 11, 16
LETTERS = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B"}


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A field of a protobuf message: a whole number, text, or another message's bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def value_info(name, shape, kind=FLOAT):
    sizes = b"".join(field(1, field(1, n) if isinstance(n, int) else field(2, n)) for n in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, sizes)))


def node(op, inputs, outputs, *attributes):
    return (b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs) +
            field(4, op) + b"".join(field(5, attribute) for attribute in attributes))


def integer(name, value):
    return field(1, name) + field(3, value) + field(20, 2)


def number(name, value):
    return field(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)


def integers(name, values):
    return field(1, name) + b"".join(field(8, value) for value in values) + field(20, 7)


def text(name, value):
    return field(1, name) + field(4, value) + field(20, 3)


def whole_tensor(name, shape, values):
    """A tensor of int64."""
    raw = struct.pack(f"<{len(values)}q", *values)
    return b"".join(field(1, n) for n in shape) + field(2, INT64) + field(8, name) + field(9, raw)


def tensor(name, shape, values):
    raw = struct.pack(f"<{len(values)}f", *values)
    return b"".join(field(1, n) for n in shape) + field(2, FLOAT) + field(8, name) + field(9, raw)


def external_tensor(name, shape, **entries):
    """A tensor of float32 whose data lies in a file; `entries`: location, offset, length, checksum."""
    external = b"".join(field(13, field(1, key) + field(2, str(value))) for key, value in entries.items())
    return b"".join(field(1, n) for n in shape) + field(2, FLOAT) + field(8, name) + external + field(14, 1)


def model(nodes, inputs, outputs, initializers=(), opset=13):
    graph = (b"".join(field(1, one) for one in nodes) + b"".join(field(5, one) for one in initializers) +
             b"".join(field(11, one) for one in inputs) + b"".join(field(12, one) for one in outputs))
    return field(1, 8) + field(7, graph) + field(8, field(2, opset))


def save_npy(path, shape, values, descr="<f4"):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({''.join(f'{n}, ' for n in shape)}), }}\n"
    data = struct.pack(f"<{len(values)}{LETTERS[descr]}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data)


def load_npy(path):
    """(element type, shape, values)"""
    data = path.read_bytes()
    length, = struct.unpack("<H", data[8:10])
    head = ast.literal_eval(data[10:10 + length].decode())
    letter = LETTERS[head["descr"]]
    values = struct.unpack(f"<{(len(data) - 10 - length) // struct.calcsize(letter)}{letter}", data[10 + length:])
    return head["descr"], head["shape"], list(values)


def save_relu(folder):
    """model.onnx, y = relu(x) for x: [batch, 3], and x.npy for it."""
    (folder / "model.onnx").write_bytes(model([node("Relu", ["x"], ["y"])], [value_info("x", ["batch", 3])],
                                              [value_info("y", ["batch", 3])]))
    save_npy(folder / "x.npy", (2, 3), [-1, 2, -3, 4, -5, 6])
