"""Small inputs for programs of Rodinia, whose repository has none: texts of random numbers."""
# SPDX-License-Identifier: Apache-2.0
import random
import struct


def numbers(draw, count, low, high):
    return "".join(f"{draw.uniform(low, high):.4f}\n" for _ in range(count))


def graph(draw, nodes, degree):
    """Nodes as (first edge, edges), the source, then edges as (node, cost)."""
    lines = [str(nodes)] + [f"{node * degree} {degree}" for node in range(nodes)] + ["0", str(nodes * degree)]
    lines += [f"{draw.randrange(nodes)} {draw.randint(1, 9)}" for _ in range(nodes * degree)]
    return "\n".join(lines) + "\n"


def domain(draw, cells):
    """For each cell its area, and for each of four sides the neighbour (-1: a wing) and the normal."""
    lines = [str(cells)]
    for cell in range(cells):
        sides = [((cell + step) % cells if draw.random() < 0.95 else -1,
                  *(draw.uniform(-1, 1) for _ in range(3))) for step in (1, -1, 8, -8)]
        lines.append(f"{draw.uniform(1, 2):.4f} " + " ".join(f"{n} {x:.3f} {y:.3f} {z:.3f}" for n, x, y, z in sides))
    return "\n".join(lines) + "\n"


def places(draw, count):
    """Records of 48 letters with a latitude and a longitude behind the first 28."""
    return "".join(f"{'storm':<28}{draw.uniform(0, 60):5.1f}{draw.uniform(0, 99):5.1f}{'':<10}\n" for _ in range(count))


def points(draw, count, features):
    return "".join(f"{i} " + " ".join(f"{draw.random():.3f}" for _ in range(features)) + "\n" for i in range(count))


def whole_numbers(draw, count, below):
    return "\n".join(str(draw.randrange(below)) for _ in range(count))


def chunk(name, content):
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def film(draw, frames, width, height):
    """An AVI file of grey pictures without compression."""
    size = width * height
    stream = b"vidsDIB " + struct.pack("<10I", 0, 0, 0, 1, 25, 0, frames, size, 0, 0) + bytes(8)
    header = chunk(b"LIST", b"hdrl" + chunk(b"avih", bytes(56)) + chunk(b"LIST", b"strl" + chunk(b"strh", stream) + chunk(
        b"strf", struct.pack("<3I2H6I", 40, width, height, 1, 8, 0, size, 0, 0, 0, 0))))
    pictures = [draw.randbytes(size) for _ in range(frames)]
    index = b"".join(b"00db" + struct.pack("<3I", 16, 4 + at * (size + size % 2 + 8), size) for at in range(frames))
    movie = chunk(b"LIST", b"movi" + b"".join(chunk(b"00db", picture) for picture in pictures))
    return chunk(b"RIFF", b"AVI " + header + movie + chunk(b"idx1", index))


def inputs_of(folder):
    """The texts or bytes of a program's inputs, by their paths from its folder."""
    draw = random.Random(7)
    name = folder.removeprefix("gpu-rodinia/cuda/")
    if name == "b+tree":
        return {"mil.txt": "1000\n" + whole_numbers(draw, 1000, 10000), "command.txt": "j 50 30\nk 50\n"}
    if name == "bfs":
        return {"graph.txt": graph(draw, 256, 4)}
    if name == "cfd":
        return {"domain.txt": domain(draw, 192)}
    if name == "dwt2d":
        return {"../../data/dwt2d/image.bmp": draw.randbytes(3 * 64 * 64)}
    if name == "heartwall":
        return {"film.avi": film(draw, 2, 609, 590)}
    if name == "hotspot":
        return {"temp_64": numbers(draw, 64 * 64, 320, 340), "power_64": numbers(draw, 64 * 64, 0, 1)}
    if name == "hotspot3D":
        return {"temp_64x4": numbers(draw, 4 * 64 * 64, 320, 340), "power_64x4": numbers(draw, 4 * 64 * 64, 0, 1)}
    if name == "huffman":
        return {"data.bin": bytes(min(int(draw.expovariate(0.05)), 255) for _ in range(1 << 14))}
    if name == "kmeans":
        return {"points.txt": points(draw, 200, 4)}
    if name == "myocyte":
        return {"../../data/myocyte/y.txt": numbers(draw, 91, 0, 1),
                "../../data/myocyte/params.txt": numbers(draw, 16, 0, 1)}
    if name == "nn":
        return {"list.txt": "places.txt", "places.txt": places(draw, 200)}
    if name == "srad/srad_v1":
        return {"../../../data/srad/image.pgm": "P2\n502 458\n255\n" + whole_numbers(draw, 502 * 458, 256)}
    return {}
