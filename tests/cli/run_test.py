"""What `triptych run` writes of each image: masks, probabilities, objects, outlines."""
# SPDX-License-Identifier: Apache-2.0
import struct

from support import *

CPU = ["--threads", "1"]


def png_pixels(path):
    """Of a grey PNG as this program writes it: bits of a sample, and the samples."""
    data = path.read_bytes()
    width, height = png_size(path)
    depth, kind = data[24], data[25]
    assert kind == GREY, kind
    packed, at = b"", 8
    while at < len(data):
        length, = struct.unpack(">I", data[at:at + 4])
        if data[at + 4:at + 8] == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += length + 12
    rows, line, pixels = zlib.decompress(packed), depth // 8, []
    before = bytes(width * line)
    for y in range(height):
        row = bytearray(rows[y * (width * line + 1):(y + 1) * (width * line + 1)])
        before = unfilter(row[0], row[1:], before, line)
        pixels += struct.unpack(f">{width}{'H' if line == 2 else 'B'}", before)
    return depth, pixels


def unfilter(kind, row, before, step):
    for i in range(len(row)):
        left, up, corner = row[i - step] if i >= step else 0, before[i], before[i - step] if i >= step else 0
        guess = left + up - corner
        paeth = min((left, up, corner), key=lambda value: abs(guess - value))
        row[i] = (row[i] + (0, left, up, (left + up) // 2, paeth)[kind]) & 255
    return bytes(row)


def floats_of(path):
    """Shape and values of a .npy file of floats."""
    data = path.read_bytes()
    length, = struct.unpack("<H", data[8:10])
    header = eval(data[10:10 + length])
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    return header["shape"], struct.unpack(f"<{(len(data) - 10 - length) // 4}f", data[10 + length:])


def tiff_stack(width, height, pages):
    """Grey pages of bytes, each one strip, not compressed."""
    data, at = struct.pack("<2sHI", b"II", 42, 8), 8
    for i, pixels in enumerate(pages):
        assert len(pixels) == width * height
        fields = [(256, 3, width), (257, 3, height), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, at + 2 + 9 * 12 + 4),
                  (277, 3, 1), (278, 3, height), (279, 4, len(pixels))]
        end = at + 2 + 9 * 12 + 4 + len(pixels)
        data += struct.pack("<H", len(fields))
        data += b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in fields)
        data += struct.pack("<I", end if i + 1 < len(pages) else 0) + bytes(pixels)
        at = end
    return data


def tiff_strips(path):
    """Stored bytes of each page of a little-endian TIFF."""
    data, pages = path.read_bytes(), []
    at, = struct.unpack("<I", data[4:8])
    while at:
        count, = struct.unpack("<H", data[at:at + 2])
        fields = {}
        for i in range(count):
            tag, kind, number, value = struct.unpack("<HHII", data[at + 2 + 12 * i:at + 14 + 12 * i])
            fields[tag] = value & 0xFFFF if kind == 3 else value
        pages.append(data[fields[273]:fields[273] + fields[279]])
        at, = struct.unpack("<I", data[at + 2 + 12 * count:at + 6 + 12 * count])
    return pages


class Run(ProgramTest):
    def setUp(self):
        super().setUp()
        make_data(self.folder / "data", [(20, 20), (24, 16), (16, 16)])
        self.succeed("train", *TINY, "--data", "data", "--steps", "20", "--lr", "0.02", "--out", "run", *CPU)

    def apply(self, *arguments, images="data/images"):
        return self.document("run", "run", "--input", images, *CPU, *arguments)["results"]

    def test_all_files_of_an_image_lie_beside_each_other(self):
        results = self.apply("--out", "out", "--save", "mask,probabilities,instances,overlay")
        self.assertEqual(len(results), 3)
        self.assertEqual(results[1]["files"],
                         {"mask": "out/01.png", "probabilities": "out/01.probabilities.npy",
                          "instances": "out/01.instances.png", "overlay": "out/01.overlay.png"})
        shape, values = floats_of(self.folder / "out/01.probabilities.npy")
        self.assertEqual(shape, (1, 16, 24))
        depth, mask = png_pixels(self.folder / "out/01.png")
        self.assertEqual(mask, [255 * (value > 0.5) for value in values])
        self.assertEqual(depth, 8)
        depth, objects = png_pixels(self.folder / "out/01.instances.png")
        self.assertEqual((depth, [value > 0 for value in objects]), (16, [value > 0 for value in mask]))

    def test_values_and_the_threshold(self):
        self.apply("--out", "a", "--values", "classes", "--save", "mask,probabilities", "--threshold", "0.25")
        _, values = floats_of(self.folder / "a/00.probabilities.npy")
        self.assertEqual(png_pixels(self.folder / "a/00.png")[1], [int(value > 0.25) for value in values])
        self.apply("--out", "b", "--values", "labels", "--threshold", "1")
        self.assertEqual(set(png_pixels(self.folder / "b/00.png")[1]), {0})

    def test_one_image_to_a_file(self):
        results = self.apply("--out", "some/mask.png", "--save", "mask,overlay", images="data/images/00.png")
        self.assertEqual(results[0]["files"], {"mask": "some/mask.png", "overlay": "some/mask.overlay.png"})

    def test_a_stack_gives_files_of_each_section(self):
        pages = [[(i * 37 + k) % 200 for i in range(20 * 18)] for k in range(3)]
        (self.folder / "stack.tif").write_bytes(tiff_stack(20, 18, pages))
        results = self.apply("--out", "out", images="stack.tif")
        self.assertEqual([result["output"] for result in results], [f"out/stack_00{i}.png" for i in range(3)])
        self.assertEqual([result["section"] for result in results], [0, 1, 2])
        self.expect_error(2, "run", "run", "--input", "stack.tif", "--out", "a.png", says="3 images")

    def test_a_stack_gives_a_stack_when_asked_for(self):
        pages = [[(i * 37 + 50 * k) % 200 for i in range(20 * 18)] for k in range(3)]
        (self.folder / "stack.tif").write_bytes(tiff_stack(20, 18, pages))
        kinds = ["--format", "tiff", "--save", "mask,probabilities,instances,overlay"]
        self.apply("--out", "sections", *kinds, images="stack.tif")
        noted = self.succeed("run", "run", "--input", "stack.tif", "--out", "sections", *CPU, *kinds)
        self.assertIn('"stack.tif" has 3 sections, each of which gets its own files: stack_000, stack_001', noted.stderr)
        self.assertIn("--stack", noted.stderr)
        whole, = self.apply("--out", "whole", "--stack", *kinds, images="stack.tif")
        self.assertEqual((whole["section"], whole["sections"]), (None, 3))
        for kind, file in whole["files"].items():
            ending = file.removeprefix("whole/stack")
            sections = [tiff_strips(self.folder / f"sections/stack_00{k}{ending}") for k in range(3)]
            self.assertEqual(tiff_strips(self.folder / file), sum(sections, []), kind)
        self.assertEqual(len(list((self.folder / "whole").glob("*.tif"))), 4)
        self.assertEqual(self.apply("--out", "a.tif", "--stack", images="stack.tif")[0]["output"], "a.tif")
        self.expect_error(2, "run", "run", "--input", "stack.tif", "--out", "b", "--stack", says="--format")

    def test_options_that_mean_nothing_for_these_files_are_refused(self):
        for options, needed in ((["--objects", "watershed"], "--save instances"),
                                (["--save", "overlay", "--values", "classes"], "--save mask"),
                                (["--save", "probabilities", "--threshold", "0.4"], "--save mask or"),
                                (["--stream-above", "100"], "--format tiff"),
                                (["--format", "tiff", "--tta", "flips", "--stream-above", "100"], "--tta flips")):
            self.expect_error(2, "run", "run", "--input", "data/images", "--out", "b", *options, says=needed)
            self.assertFalse((self.folder / "b").exists())

    def test_a_stack_with_a_broken_section_leaves_no_file(self):
        stack = tiff_stack(20, 18, [[k] * (20 * 18) for k in range(3)])
        (self.folder / "stack.tif").write_bytes(stack[:-100])
        self.expect_error(2, "run", "run", "--input", "stack.tif", "--out", "whole", "--stack", *CPU,
                          "--format", "tiff", says=['left out "stack.tif": the TIFF', "no image could be done"])
        self.assertEqual(list((self.folder / "whole").glob("*.tif")), [])

    def test_objects_of_the_background_are_numbered_when_asked_for(self):
        self.apply("--out", "out", "--save", "mask,instances", "--instances-of", "0")
        mask, objects = (png_pixels(self.folder / f"out/00{ending}")[1] for ending in (".png", ".instances.png"))
        self.assertEqual([value > 0 for value in objects], [value == 0 for value in mask])
        self.expect_error(2, "run", "run", "--input", "data/images", "--out", "b", "--save", "instances",
                          "--instances-of", "2", says=["--instances-of", "0 to 1"])

    def test_tiff_is_written_when_asked_for_or_named(self):
        one = self.apply("--out", "out", "--format", "tiff", "--save", "mask,probabilities",
                         images="data/images/00.png")[0]
        self.assertEqual(one["files"], {"mask": "out/00.tif", "probabilities": "out/00.probabilities.tif"})
        self.assertEqual(self.apply("--out", "mask.tif", images="data/images/00.png")[0]["output"], "mask.tif")
        for path in ("out/00.tif", "out/00.probabilities.tif", "mask.tif"):
            self.assertEqual((self.folder / path).read_bytes()[:2], b"II")
        self.expect_error(2, "run", "run", "--input", "data/images/00.png", "--out", "a.png",
                          "--format", "tiff", says=["a.png", "--format tiff"])

    def test_images_far_from_those_of_the_training_are_told_of(self):
        (self.folder / "dark.png").write_bytes(png_bytes(16, 16, sample=lambda x, y, c: (x + y) % 3))
        result = self.succeed("run", "run", "--input", "dark.png", "--out", "out", *CPU)
        self.assertIn("dark.png", result.stderr)
        self.assertIn("those of the training", result.stderr)

    def test_augmentation_at_test_time_changes_probabilities_and_not_their_meaning(self):
        for name, more in (("once", []), ("mean", ["--tta", "flips"])):
            self.apply("--out", name, "--save", "probabilities", *more)
        once, mean = (floats_of(self.folder / name / "02.probabilities.npy")[1] for name in ("once", "mean"))
        self.assertNotEqual(once, mean)
        self.assertLess(sum(abs(a - b) for a, b in zip(once, mean)) / len(once), 0.2)

    def test_broken_images_are_named_and_the_others_done(self):
        (self.folder / "data/images/01.png").write_bytes(b"\x89PNG broken")
        result = self.run_program("run", "run", "--input", "data/images", "--out", "out",
                                  "--save", "overlay", *CPU)
        self.assertEqual(result.returncode, 2)
        self.assertIn("1 of 3 images could not be done: 01.png", result.stderr)
        self.assertEqual(sorted(path.name for path in (self.folder / "out").glob("*.png")),
                         ["00.overlay.png", "02.overlay.png"])

    def test_what_cannot_be_is_refused(self):
        run = ["run", "run", "--input", "data/images", "--out", "out", *CPU]
        self.expect_error(2, *run, "--save", "masks", says=["--save", "probabilities", "masks"])
        self.expect_error(2, *run, "--threshold", "1.5", says="--threshold")
        self.expect_error(2, *run, "--seed-probability", "0.5", says=["--seed-probability", "--objects watershed"])
        self.expect_error(2, *run, "--values", "colours", says=["levels", "classes", "labels"])
        (self.folder / "out").mkdir()
        (self.folder / "out/02.overlay.png").write_text("drawn by hand")
        self.expect_error(2, *run, "--save", "mask,overlay", says=["02.overlay.png", "overwrite"])


if __name__ == "__main__":
    main()
