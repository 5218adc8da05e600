# SPDX-License-Identifier: Apache-2.0
"""Random image sets in random containers against the arrays that they were written from.

A trial draws images and masks as arrays. It writes them plainly and in containers that differ in palette, axes,
orientation or byte order. Training on both must give the same weights. Sets without one meaning must be refused, with
the name of a file. Options: campaign.py.
"""
import json
import re
import shutil
import struct
import sys
import zlib

from campaign import Campaign, Failure, main

SIDE = 16  # of the crops and, roughly, of the images
COLOURS = [(0, 0, 0), (255, 0, 0), (0, 0, 255), (255, 255, 0), (255, 255, 255)]
TRAIN = ["--model", "unet-s", "--base", 1, "--depth", 1, "--size", SIDE, "--batch", 2, "--steps", 1, "--threads", 1,
         "--validation", 0, "--mask-pictures", 0, "--augmentation", "none", "--quiet", "--json"]
WHITE_IS_ZERO, BLACK_IS_ZERO, RGB, PALETTE = 0, 1, 2, 3


def luma(colour):
    return (19595 * colour[0] + 38470 * colour[1] + 7471 * colour[2] + 0x8000) >> 16


def plane(draw, width, height, most):
    return [[draw.randrange(most + 1) for _ in range(width)] for _ in range(height)]


def mapped(rows, how):
    return [[how(value) for value in row] for row in rows]


# Stored rows of a picture that viewers show as `rows`, by EXIF's orientation.
STORED = {
    1: lambda rows: rows,
    2: lambda rows: [row[::-1] for row in rows],
    3: lambda rows: [row[::-1] for row in rows[::-1]],
    4: lambda rows: rows[::-1],
    5: lambda rows: [list(column) for column in zip(*rows)],
    6: lambda rows: [list(column) for column in zip(*rows)][::-1],
    7: lambda rows: [list(column)[::-1] for column in zip(*rows)][::-1],
    8: lambda rows: [list(column)[::-1] for column in zip(*rows)],
}


def png(rows, depth=8, palette=None, orientation=None):
    """Rows of numbers, or of (red, green, blue)."""
    def chunk(tag, body):
        return struct.pack(">I", len(body)) + tag + body + struct.pack(">I", zlib.crc32(tag + body))
    colour = isinstance(rows[0][0], tuple)
    kind = 3 if palette else 2 if colour else 0
    code = ">H" if depth == 16 else ">B"
    data = b"".join(b"\0" + b"".join(struct.pack(code, sample) for value in row
                                     for sample in (value if colour else (value,))) for row in rows)
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), depth, kind, 0, 0, 0)
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    if orientation:
        out += chunk(b"eXIf", b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0))
    if palette:
        out += chunk(b"PLTE", bytes(sample for entry in palette for sample in entry))
    return out + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def tiff(pages, bits=8, photometric=BLACK_IS_ZERO, description="", palette=None, orientation=None, order="<",
         one_directory=False):
    """A TIFF with a directory for each page (a list of channels), or with one before all their pixels."""
    code = order + ("H" if bits == 16 else "B")
    strips = [b"".join(struct.pack(code, channel[y][x]) for y in range(len(page[0])) for x in range(len(page[0][0]))
                       for channel in page) for page in pages]
    if one_directory:
        strips = [b"".join(strips)]
    out = bytearray((b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 0))
    link = 4
    text = description.encode() + b"\0"
    table = [entry[channel] * 257 for channel in range(3) for entry in palette] if palette else []
    for page, strip in zip(pages, strips):
        channels, height, width = len(page), len(page[0]), len(page[0][0])
        at = {}
        for name, data in (("strip", strip), ("text", text), ("bits", struct.pack(f"{order}{channels}H", *[bits] * channels)),
                           ("table", struct.pack(f"{order}{len(table)}H", *table))):
            at[name] = len(out)
            out += data + b"\0" * (len(data) % 2)
        def short(tag, value):
            return struct.pack(order + "HHIHH", tag, 3, 1, value, 0)
        def long(tag, kind, count, value):
            return struct.pack(order + "HHII", tag, kind, count, value)
        entries = [short(256, width), short(257, height),
                   short(258, bits) if channels == 1 else struct.pack(order + "HHIHH", 258, 3, channels, bits, bits)
                   if channels == 2 else long(258, 3, channels, at["bits"]),
                   short(259, 1), short(262, photometric)]
        if description and link == 4 and len(text) > 4:
            entries.append(long(270, 2, len(text), at["text"]))
        entries.append(long(273, 4, 1, at["strip"]))
        if orientation:
            entries.append(short(274, orientation))
        entries += [short(277, channels), short(278, height), long(279, 4, 1, len(strip) if not one_directory
                                                                  else width * height * channels * bits // 8)]
        if palette:
            entries.append(long(320, 3, len(table), at["table"]))
        extra = channels - (3 if photometric == RGB else 1)
        if extra == 1 or extra == 2:
            entries.append(struct.pack(order + "HHIHH", 338, 3, extra, 0, 0))
        struct.pack_into(order + "I", out, link, len(out))
        out += struct.pack(order + "H", len(entries)) + b"".join(entries)
        link = len(out)
        out += struct.pack(order + "I", 0)
    return bytes(out)


def filled(colours):
    return (list(colours) + [(0, 0, 0)] * 256)[:256]


def imagej(channels, sections):
    return f"ImageJ=1.53t\nimages={channels * sections}\nchannels={channels}\nslices={sections}\nhyperstack=true\n"


def ome(draw, channels, sections):
    """(description, the plane (section, channel) of each directory), in any order that TiffData states."""
    order = draw.choice(["CZ", "ZC"])
    planes = ([(z, c) for z in range(sections) for c in range(channels)] if order == "CZ" else
              [(z, c) for c in range(channels) for z in range(sections)])
    data = "<TiffData/>"
    if draw.random() < .7:
        draw.shuffle(planes)
        data = "".join(f'<TiffData FirstZ="{z}" FirstC="{c}" FirstT="0" IFD="{i}" PlaneCount="1"/>'
                       for i, (z, c) in enumerate(planes))
    return (f'<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image><Pixels '
            f'DimensionOrder="XY{order}T" SizeC="{channels}" SizeZ="{sections}" SizeT="1">{data}</Pixels></Image></OME>',
            planes)


def stack_file(draw, sections, bits):
    """A TIFF of `sections`, each a list of channels, by one of the programs that state axes."""
    channels = len(sections[0])
    order = draw.choice("<>")
    planes = [[channel] for section in sections for channel in section]
    kind = draw.choice(["imagej", "tifffile", "ome", "one directory"])
    lut = filled([(i, 255 - i, 7) for i in range(256)]) if bits == 8 and draw.random() < .4 else None
    photometric = PALETTE if lut else draw.choice([BLACK_IS_ZERO, WHITE_IS_ZERO]) if kind != "ome" else BLACK_IS_ZERO
    options = {"bits": bits, "order": order}
    if kind == "ome":
        description, places = ome(draw, channels, len(sections))
        return tiff([[sections[z][c]] for z, c in places], description=description, **options)
    if kind == "tifffile":
        shape = [len(sections), channels, len(planes[0][0]), len(planes[0][0][0])]
        axes = "ZCYX"
        if draw.random() < .5:  # the channel first
            planes = [[section[c]] for c in range(channels) for section in sections]
            shape[:2], axes = shape[1::-1], "CZYX"
        return tiff(planes, description=json.dumps({"shape": shape, "axes": axes}), palette=lut, photometric=photometric,
                    **options)
    return tiff(planes, description=imagej(channels, len(sections)), palette=lut, photometric=photometric,
                one_directory=kind == "one directory" and len(planes) > 1, **options)


class Sets(Campaign):
    def attempt(self, draw, number):
        for name in ("plain", "set", "plainrun", "setrun"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in ("plain", "set"):
            for kind in ("images", "masks"):
                (self.folder / name / kind).mkdir(parents=True)
        self.fault = draw.choice([None] * 5 + ["depth", "sections", "orientation", "background"])
        self.channels = draw.choice([1, 1, 1, 2, 3])
        self.classes = draw.choice([2, 2, 3, 5])
        self.bits = draw.choice([8, 8, 16])
        self.write(draw)
        words = [*TRAIN, "--in-channels", self.channels, "--seed", number]
        words += ["--classes", self.classes] if self.classes > 2 else []
        if self.fault == "background":
            words += ["--labels", "instances"]
        done = self.execute(["train", *words, "--data", "set", "--out", "setrun"])
        if self.fault:
            return self.judge_refusal(done)
        self.judge(done, {0})
        plain = self.execute(["train", *words, "--data", "plain", "--out", "plainrun"])
        self.judge(plain, {0})
        weights = [json.loads(each.printed)["results"][0]["weights_sha256"] for each in (plain, done)]
        if weights[0] != weights[1]:
            raise Failure(f"other weights than from the arrays: {done.said.strip()[-300:]}")

    def judge_refusal(self, done):
        self.judge(done, {2})
        if not re.search(r'/set/(images|masks)/', done.said):
            raise Failure(f"a refusal of {self.fault} that names no file: {done.said.strip()[-300:]}")

    def write(self, draw):
        count = draw.choice([2, 3])
        most = 2 ** self.bits - 1
        self.colours = draw.sample(COLOURS, self.classes)
        if self.fault == "background":
            self.classes = 2
            self.colours = COLOURS[:2]
        self.orders = []
        # All masks by one rule: numbers that count, or colours that do.
        self.by_colour = self.fault == "background" or draw.random() < .5
        for i in range(count):
            stem = f"p{i}"
            sections = draw.choice([1, 1, 2, 3])
            width, height = draw.randrange(SIDE, 2 * SIDE), draw.randrange(SIDE, 2 * SIDE)
            images = [[plane(draw, width, height, most) for _ in range(self.channels)] for _ in range(sections)]
            masks = [plane(draw, width, height, self.classes - 1) for _ in range(sections)]
            for mask in masks:  # every class is in every mask, so that every palette shows it
                mask[0][:self.classes] = range(self.classes)
            self.put_plain(stem, images, masks)
            self.put_image(draw, stem, images, last=i == count - 1)
            self.put_mask(draw, stem, masks, last=i == count - 1)

    def put(self, name, data):
        (self.folder / name).write_bytes(data)

    def value(self, label):
        return luma(self.colours[label]) if self.by_colour else label

    def put_plain(self, stem, images, masks):
        for z, (image, mask) in enumerate(zip(images, masks)):
            name = f"{stem}_{z:03}" if len(images) > 1 else stem
            if self.channels == 1:
                self.put(f"plain/images/{name}.png", png(image[0], self.bits))
            else:
                self.put(f"plain/images/{name}.tif", tiff([image], self.bits))
            self.put(f"plain/masks/{name}.png", png(mapped(mask, self.value)))

    def put_image(self, draw, stem, images, last):
        bits = self.bits
        if self.fault == "depth" and last:
            bits = 24 - bits  # 16 for 8 and 8 for 16
            images = [[mapped(channel, lambda value: value & 255) for channel in image] for image in images]
        if self.fault == "orientation" and last:
            data = tiff(images, bits, orientation=draw.randrange(2, 9), order=draw.choice("<>"))
            return self.put(f"set/images/{stem}.tif", data)
        if len(images) > 1 or self.channels > 1:
            return self.put(f"set/images/{stem}.tif", stack_file(draw, images, bits))
        rows = images[0][0]
        kind = draw.choice(["turned", "palette", "white is zero", "stack"])
        if kind == "turned":
            orientation = draw.randrange(1, 9)
            return self.put(f"set/images/{stem}.png", png(STORED[orientation](rows), bits, orientation=orientation))
        if kind == "palette" and bits == 8:
            shown = list(range(256))
            draw.shuffle(shown)
            places = {value: index for index, value in enumerate(shown)}
            return self.put(f"set/images/{stem}.png", png(mapped(rows, places.get), palette=[(v, v, v) for v in shown]))
        if kind == "white is zero":
            white = 2 ** bits - 1
            data = tiff([[mapped(rows, lambda value: white - value)]], bits, WHITE_IS_ZERO, order=draw.choice("<>"))
            return self.put(f"set/images/{stem}.tif", data)
        return self.put(f"set/images/{stem}.tif", stack_file(draw, images, bits))

    def put_mask(self, draw, stem, masks, last):
        if self.fault == "sections" and last:
            masks = masks + masks[:1] if len(masks) == 1 or draw.random() < .5 else masks[:-1]
        if self.fault == "background":
            swap = [1, 0] if last else [0, 1]
            palette = filled(self.colours[label] for label in swap)
            data = tiff([[mapped(mask, swap.index)] for mask in masks], photometric=PALETTE, palette=palette)
            return self.put(f"set/masks/{stem}.tif", data)
        if not self.by_colour:
            return self.put_numbers(draw, stem, masks)
        return self.put_colours(draw, stem, masks, last)

    def put_numbers(self, draw, stem, masks):
        """Numbers count: all palettes agree, or are for display."""
        if len(masks) > 1 or draw.random() < .3:
            return self.put(f"set/masks/{stem}.tif", stack_file(draw, [[mask] for mask in masks], 8))
        orientation = draw.randrange(1, 9)
        data = png(STORED[orientation](masks[0]), orientation=orientation)
        return self.put(f"set/masks/{stem}.png", data)

    def put_colours(self, draw, stem, masks, last):
        """Colours count: palettes differ, and other files hold the colours themselves."""
        order = list(range(self.classes))
        draw.shuffle(order)
        if last and all(order == other for other in self.orders):  # else their numbers would count
            order.reverse()
        self.orders.append(order)
        palette = [self.colours[label] for label in order]
        indexed = [mapped(mask, order.index) for mask in masks]
        if len(masks) > 1 or draw.random() < .3:
            data = tiff([[mask] for mask in indexed], photometric=PALETTE, palette=filled(palette))
            return self.put(f"set/masks/{stem}.tif", data)
        if draw.random() < .5:
            return self.put(f"set/masks/{stem}.png", png(mapped(masks[0], lambda label: self.colours[label])))
        return self.put(f"set/masks/{stem}.png", png(indexed[0], palette=palette))


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], lambda program, folder, arguments: Sets(program, folder)))
