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


class Run(ProgramTest):
    def setUp(self):
        super().setUp()
        make_data(self.folder / "data", [(20, 20), (24, 16), (16, 16)])
        self.succeed("train", *TINY, "--data", "data", "--steps", "20", "--lr", "0.02", "--out", "run", *CPU)

    def apply(self, *arguments, images="data/images"):
        return self.document("run", "--weights", "run", "--input", images, *CPU, *arguments)["results"]

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

    def test_augmentation_at_test_time_changes_probabilities_and_not_their_meaning(self):
        for name, more in (("once", []), ("mean", ["--tta", "flips"])):
            self.apply("--out", name, "--save", "probabilities", *more)
        once, mean = (floats_of(self.folder / name / "02.probabilities.npy")[1] for name in ("once", "mean"))
        self.assertNotEqual(once, mean)
        self.assertLess(sum(abs(a - b) for a, b in zip(once, mean)) / len(once), 0.2)

    def test_broken_images_are_named_and_the_others_done(self):
        (self.folder / "data/images/01.png").write_bytes(b"\x89PNG broken")
        result = self.run_program("run", "--weights", "run", "--input", "data/images", "--out", "out",
                                  "--save", "overlay", *CPU)
        self.assertEqual(result.returncode, 2)
        self.assertIn("1 of 3 images could not be done: 01.png", result.stderr)
        self.assertEqual(sorted(path.name for path in (self.folder / "out").glob("*.png")),
                         ["00.overlay.png", "02.overlay.png"])

    def test_what_cannot_be_is_refused(self):
        run = ["run", "--weights", "run", "--input", "data/images", "--out", "out", *CPU]
        self.expect_error(2, *run, "--save", "masks", says=["--save", "probabilities", "masks"])
        self.expect_error(2, *run, "--threshold", "1.5", says="--threshold")
        self.expect_error(2, *run, "--seed-probability", "0.5", says=["--seed-probability", "--objects watershed"])
        self.expect_error(2, *run, "--values", "colours", says=["levels", "classes", "labels"])
        (self.folder / "out").mkdir()
        (self.folder / "out/02.overlay.png").write_text("drawn by hand")
        self.expect_error(2, *run, "--save", "mask,overlay", says=["02.overlay.png", "overwrite"])


if __name__ == "__main__":
    main()
