"""The guides to training, to trained models and to public data sets, followed word for word.

Runs each block marked `sh`, one after another, in a folder with the images that the pages assume. A block marked `text`
must be the output of the commands before it, except for numbers and "...". One marked `csv` is the list that a page
describes. The recipes run on other images, for two steps.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import random
import struct
import subprocess
import unittest

from pages import blocks, commands_in, pattern_of
from support import PROGRAM, SOURCE, ProgramTest, long_when_sanitized, main, png_bytes

PAGES = [SOURCE / f"docs/guides/{name}.md" for name in ("train-on-your-images", "apply-and-evaluate", "recipes")]
SHORT = " --steps 2 --steps-per-epoch 1 --mask-pictures 1"


def tiff_bytes(pages, bits=8):
    """A TIFF, little-endian and uncompressed, of grey pages, which are lists of rows of whole numbers."""
    parts, offset, pointers = [], 8, []
    for rows in pages:
        height, width = len(rows), len(rows[0])
        data = b"".join(struct.pack(f"<{width}{'B' if bits == 8 else 'H'}", *row) for row in rows)
        data += b"\0" * (len(data) % 2)
        parts.append(data)
        tags = [(256, width), (257, height), (258, bits), (259, 1), (262, 1), (273, offset), (277, 1), (278, height),
                (279, len(rows) * width * bits // 8)]
        directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
        offset += len(data)
        pointers.append(offset)
        parts.append(directory + b"\0\0\0\0")
        offset += len(directory) + 4
    whole = bytearray(struct.pack("<2sHI", b"II", 42, pointers[0]) + b"".join(parts))
    for place, following in zip(pointers, pointers[1:]):
        at = place + 2 + 12 * 9
        whole[at:at + 4] = struct.pack("<I", following)
    return bytes(whole)


def cells(seed, width=96, height=80):
    """A picture of bright discs in noise, from 0 to 1, and their mask."""
    noise = random.Random(seed)
    discs = [(noise.uniform(0, width), noise.uniform(0, height), noise.uniform(6, 13)) for _ in range(9)]
    mask = [[any((x - a) ** 2 + (y - b) ** 2 < r * r for a, b, r in discs) for x in range(width)] for y in range(height)]
    picture = [[min(1.0, 0.2 + 0.25 * inside + 0.55 * noise.random()) for inside in row] for row in mask]
    return picture, mask


def scaled(rows, largest):
    return [[int(value * largest) for value in row] for row in rows]


def write_pair(folder, name, seeds, bits):
    """An image, or a stack of them, with its mask."""
    made = [cells(seed) for seed in seeds]
    for kind, index, depth in (("images", 0, bits), ("masks", 1, 8)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        pages = [scaled(one[index], 255 if depth == 8 else 4095) for one in made]
        (folder / kind / name).write_bytes(tiff_bytes(pages, depth))


@long_when_sanitized
class HowTo(ProgramTest):
    def make_images(self):
        mine = self.folder / "mine"
        for i, name in enumerate("abcdefghijkl"):
            write_pair(mine, f"{name}.tif", [i], 16)
        write_pair(mine, "s.tif", range(50, 54), 16)
        for i, name in enumerate("tuv"):
            write_pair(self.folder / "test", f"{name}.tif", [90 + i], 16)
        write_pair(self.folder / "new", "x.tif", [80], 16)
        (self.folder / "new/images/x.tif").rename(self.folder / "new/x.tif")
        for kind in ("images", "masks"):
            (self.folder / "new" / kind / "x.tif").unlink(missing_ok=True)
            (self.folder / "new" / kind).rmdir()

    def make_stand_ins(self):
        for images, masks, names in (("dsb2018/images", "dsb2018/masks", ["p", "q"]),
                                     ("isbi2012/train/image", "isbi2012/train/label", [f"{i:02}" for i in range(30)])):
            picture, mask = cells(7, 64, 64)
            for folder, rows in ((images, picture), (masks, mask)):
                (self.folder / folder).mkdir(parents=True)
                content = png_bytes(64, 64, sample=lambda x, y, _, rows=rows: int(rows[y][x] * 255))
                for name in names:
                    (self.folder / folder / f"{name}.png").write_bytes(content)
        (self.folder / "dsb2018/list.csv").write_text("id,split\np,train\nq,test\n")
        os.symlink(SOURCE / "experiments", self.folder / "experiments")

    def run_block(self, lines, more):
        said = ""
        path = str(self.folder / "bin") + os.pathsep + os.environ["PATH"]
        for command in commands_in(lines):
            done = subprocess.run(["bash", "-c", command + more], cwd=self.folder, env={**os.environ, "PATH": path},
                                  capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
            said += done.stderr + done.stdout
        return said

    def test_the_page_does_what_it_says(self):
        (self.folder / "bin").mkdir()
        os.symlink(PROGRAM, self.folder / "bin/triptych")
        self.make_images()
        self.make_stand_ins()
        said, ran = "", 0
        for page, (heading, mark, lines) in ((page, block) for page in PAGES for block in blocks(page)):
            if mark == "csv":
                (self.folder / "mine/list.csv").write_text("\n".join(lines) + "\n")
            elif mark == "sh":
                said = self.run_block(lines, SHORT if page.stem == "recipes" else "")
                ran += len(commands_in(lines))
            elif mark == "text":
                for line in filter(None, lines):
                    self.assertRegex(said, pattern_of(line), f"{heading}: the page shows another line")
            else:
                self.assertFalse(any(line.startswith("triptych ") for line in lines), f"{heading}: {lines} is not run")
        self.assertGreater(ran, 12)
        self.assertIn("<svg", (self.folder / "mine.html").read_text())
        self.assertTrue((self.folder / "masks/x.tif").read_bytes().startswith(b"II"))


if __name__ == "__main__":
    main()
