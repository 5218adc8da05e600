# SPDX-License-Identifier: Apache-2.0
"""Random changes of files: of bytes, JSON values, words of a text, fields of a protobuf message, PNG chunks, TIFF tags.

Every function takes the random stream `draw` first and returns the changed content.
"""
import copy
import json
import re
import struct
import zlib

WORDS = ["0", "1", "-1", "2", "3", "4", "7", "8", "16", "255", "256", "4096", "65535", "65536", "2147483647",
         "2147483648", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808",
         "18446744073709551616", "0x10", "1e9", "nan", "inf", "-0", "00", "1.5", "", " ", ",", ";", "=", '"', "'", "\t",
         "\\", "//", "#", "[", "]", "(", ")", "*", "\x01", "\x1b[31m", "\u202e", "a" * 300, "\0"]
VALUES = [0, -1, 1, 2, 3, 7, 1 << 31, (1 << 31) - 1, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 63, 1 << 64, 1e300, -1e300,
          1e-320, 0.5, 1e9, "", "x", "a" * 5000, None, True, False, [], {}, [[]], [1, 2, 3], "../../x", "/dev/zero",
          "\u202e", "\u0001", "é", "<script>alert(1)</script>", "mmu16", "cpu"]
INTEGERS = [0, 1, 2, 3, 7, 127, 128, 255, 65536, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62,
            (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


def changed_bytes(draw, data, times=None):
    data = bytearray(data)
    for _ in range(times or draw.choice([1, 1, 1, 2, 3, 8])):
        data = data or bytearray(1)
        kind, i = draw.random(), draw.randrange(len(data))
        if kind < .35:
            data[i] ^= 1 << draw.randrange(8)
        elif kind < .5:
            data[i] = draw.choice([0, 255, 127, 128, 1, 10, 32, 34, 92])
        elif kind < .6:
            del data[i:i + draw.randrange(1, 65)]
        elif kind < .7:
            data[i:i] = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 9)))
        elif kind < .8:
            other = draw.randrange(len(data))
            data[i:i] = data[other:other + draw.randrange(1, 64)]
        elif kind < .9:
            data[i:i + 4] = struct.pack(draw.choice(["<I", ">I"]), draw.choice(INTEGERS) & 0xffffffff)
        elif kind < .95:
            data = data[:i]
        else:
            data[i:i + 8] = struct.pack("<Q", draw.choice(INTEGERS))
    return bytes(data)


def paths_of(value, path=()):
    """Path of every value inside a JSON document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from paths_of(inner, (*path, key))


def changed_value(draw, value):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or draw.random() < .4:
        return copy.deepcopy(draw.choice(VALUES))
    shifted = value << 20 if isinstance(value, int) and abs(value) < 1 << 40 else value
    return draw.choice([value + 1, value - 1, -value, value * 2, value * 1000, value / 3, 0, shifted, 1 << 31, 1 << 40])


def changed_document(draw, document):
    """A JSON document with other values, without keys, or with more of them."""
    document = copy.deepcopy(document)
    for _ in range(draw.choice([1, 1, 2, 3])):
        paths = list(paths_of(document))
        if not paths:
            break
        *above, key = draw.choice(paths)
        parent = document
        for step in above:
            parent = parent[step]
        kind = draw.random()
        if kind < .6:
            parent[key] = changed_value(draw, parent[key])
        elif kind < .75:
            del parent[key]
        elif kind < .85 and isinstance(parent, dict):
            parent[draw.choice(["x", key + "x", "", "name", "__proto__"])] = copy.deepcopy(draw.choice(VALUES))
        elif isinstance(parent, list):
            parent.extend(copy.deepcopy(parent if draw.random() < .3 and len(parent) < 1000 else [parent[key]]))
        else:
            parent[key] = copy.deepcopy(parent[draw.choice(list(parent))])
    return document


def changed_json(draw, document):
    """The text of a changed document, sometimes with something behind it, or with changed bytes."""
    kind = draw.random()
    text = json.dumps(changed_document(draw, document) if kind < .9 else document, indent=1)
    data = text.encode("utf8", "surrogatepass")
    if kind >= .9:
        return changed_bytes(draw, data)
    return data + (draw.choice([b"", b"\0", b"garbage", b"\xef\xbb\xbf"]) if kind > .85 else b"")


def changed_text(draw, text, words=()):
    """Lines and words exchanged, removed, repeated."""
    words, lines = WORDS + list(words), text.split("\n")
    for _ in range(draw.choice([1, 1, 2, 4])):
        kind, i = draw.random(), draw.randrange(len(lines))
        parts = re.findall(r"\w+|\s+|[^\w\s]", lines[i])
        if kind < .5 and parts:
            parts[draw.randrange(len(parts))] = draw.choice(words)
            lines[i] = "".join(parts)
        elif kind < .62 and len(lines) > 1:
            del lines[i]
        elif kind < .74:
            lines.insert(i, draw.choice(lines))
        elif kind < .84:
            other = draw.randrange(len(lines))
            lines[i], lines[other] = lines[other], lines[i]
        elif kind < .9:
            lines[i] += " " + draw.choice(words)
        elif kind < .95:
            lines[i] = lines[i][:draw.randrange(len(lines[i]) + 1)]
        else:
            lines = lines * draw.choice([2, 20]) if len(lines) < 2000 else lines
    return "\n".join(lines).encode("utf8", "replace")


# A protobuf message is a list of [field, wire type, value]. A value that parses as a message is one.


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def parse_message(data, depth=0):
    fields, at = [], 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = read_varint(data, at)
        elif wire in (1, 5, 2):
            size, at = (8 if wire == 1 else 4, at) if wire != 2 else read_varint(data, at)
            if at + size > len(data):
                raise ValueError
            value, at = data[at:at + size], at + size
            if wire == 2 and depth < 8 and size > 1:
                try:
                    value = parse_message(value, depth + 1)
                except ValueError:
                    pass
        else:
            raise ValueError
        if not 1 <= number <= 64:  # ONNX has none beyond: this was text
            raise ValueError
        fields.append([number, wire, value])
    return fields


def message_bytes(fields):
    out = bytearray()
    for number, wire, value in fields:
        out += varint(number << 3 | wire)
        if wire == 0:
            out += varint(value & (1 << 64) - 1)
            continue
        data = message_bytes(value) if isinstance(value, list) else value
        out += (varint(len(data)) if wire == 2 else b"") + data
    return bytes(out)


def messages_in(fields):
    yield fields
    for _, _, value in fields:
        if isinstance(value, list):
            yield from messages_in(value)


def changed_message(draw, fields, donors):
    """Changes fields in place. A donor is a message that lends its fields."""
    parent = draw.choice([each for each in messages_in(fields) if each] or [fields])
    if not parent:
        return
    i = draw.randrange(len(parent))
    number, wire, value = parent[i]
    kind = draw.random()
    if kind < .15:
        del parent[i]
    elif kind < .3:
        parent.insert(draw.randrange(len(parent) + 1), copy.deepcopy(parent[i]))
    elif kind < .45:
        fitting = [field for message in messages_in(draw.choice(donors)) for field in message
                   if field[0] == number and field[1] == wire]
        if fitting:
            parent[i] = copy.deepcopy(draw.choice(fitting))
    elif wire == 0:
        parent[i][2] = draw.choice([*INTEGERS, value + 1, max(0, value - 1)])
    elif not isinstance(value, list):
        text = [field[2] for message in messages_in(fields) for field in message if isinstance(field[2], bytes)]
        parent[i][2] = changed_bytes(draw, value) if draw.random() < .6 or wire != 2 else draw.choice(text)
        if wire != 2:
            parent[i][2] = parent[i][2][:len(value)].ljust(len(value), b"\0")
    else:
        draw.shuffle(value)


def changed_png(draw, data):
    """Other, missing and repeated chunks, each with its right checksum."""
    chunks, at = [], 8
    while at + 8 <= len(data):
        size, = struct.unpack(">I", data[at:at + 4])
        chunks.append([data[at + 4:at + 8], data[at + 8:at + 8 + size]])
        at += 12 + size
    for _ in range(draw.choice([1, 1, 2])):
        kind, i = draw.random(), draw.randrange(len(chunks))
        if kind < .5:
            chunks[i if kind < .3 else 0][1] = changed_bytes(draw, chunks[i if kind < .3 else 0][1], 1)
        elif kind < .6:
            tag = draw.choice([b"tRNS", b"PLTE", b"zTXt", b"iTXt", b"gAMA", b"iCCP", b"acTL", b"sBIT", b"IDAT", b"eXIf"])
            chunks.insert(i, [tag, bytes(draw.randrange(256) for _ in range(draw.randrange(40)))])
        elif kind < .7 and len(chunks) > 1:
            del chunks[i]
        elif kind < .8:
            chunks.insert(i, list(draw.choice(chunks)))
        elif len(chunks[0][1]) >= 13:
            header = bytearray(chunks[0][1])
            struct.pack_into(">II", header, 0, *(draw.choice([1, 16, 32, 1000, 100000, 1 << 30]) for _ in range(2)))
            header[8], header[9] = draw.choice([1, 2, 4, 8, 16]), draw.choice([0, 2, 3, 4, 6])
            header[12] = draw.choice([0, 1])
            chunks[0][1] = bytes(header)
    return data[:8] + b"".join(struct.pack(">I", len(body)) + tag + body + struct.pack(">I", zlib.crc32(tag + body))
                               for tag, body in chunks)


TIFF_TAGS = [256, 257, 258, 259, 262, 266, 270, 273, 277, 278, 279, 282, 284, 317, 320, 322, 323, 324, 325, 330, 338, 339,
             347, 530, 65000]
TIFF_VALUES = [0, 1, 2, 3, 4, 5, 7, 8, 16, 32, 64, 1000, 50000, 65535, 1 << 20, 0x7fffffff, 0xffffffff, 8 << 16, 16 << 16,
               32773, 34712]


def changed_tiff(draw, data):
    """Other tags, types, counts, values and successors of the first directory."""
    order, data = "<" if data[:2] == b"II" else ">", bytearray(data)
    if draw.random() < .2:
        return changed_bytes(draw, data)
    first, = struct.unpack_from(order + "I", data, 4)
    count, = struct.unpack_from(order + "H", data, first)
    for _ in range(draw.choice([1, 1, 2])):
        at = first + 2 + 12 * draw.randrange(count)
        kind = draw.random()
        if kind < .25:
            struct.pack_into(order + "H", data, at, draw.choice(TIFF_TAGS))
        elif kind < .45:
            struct.pack_into(order + "H", data, at + 2, draw.choice([1, 2, 3, 4, 5, 7, 11, 12, 13, 16, 18, 0, 255]))
        else:
            values = [*TIFF_VALUES, first, len(data) - 1]
            struct.pack_into(order + "I", data, at + (4 if kind < .65 else 8), draw.choice(values))
    if draw.random() < .1:
        struct.pack_into(order + "I", data, first + 2 + 12 * count, draw.choice([first, 8, 0xfffffff0, len(data) - 2]))
    return bytes(data)


def changed_jpeg(draw, data):
    """Other bytes of the segments before the picture, or anywhere."""
    segments = [i for i in range(2, len(data) - 20) if data[i] == 255 and 0xc0 <= data[i + 1] <= 0xfe]
    if draw.random() < .5:
        return changed_bytes(draw, data)
    data = bytearray(data)
    data[draw.choice(segments) + draw.randrange(2, 20)] = draw.choice([0, 1, 2, 3, 4, 255, 8, 12, 17])
    return bytes(data)
