"""Meaning of the numbers of pictures: files of a set are compared, converted by a rule, or refused by name."""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import random
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "campaign"))
from sets_campaign import PALETTE, RGB, STORED, filled, png, tiff  # noqa: E402
from support import TINY, ProgramTest, main  # noqa: E402

CPU = ["--threads", "1"]
SIDE = 20
BLACK, WHITE = (0, 0, 0), (255, 255, 255)


class Meaning(ProgramTest):
    def setUp(self):
        super().setUp()
        noise = random.Random(1)
        self.masks = [[[int((x - 8 - i) ** 2 + (y - 9) ** 2 < 20) for x in range(SIDE)] for y in range(SIDE)]
                      for i in range(4)]
        self.images = [[[60 * value + noise.randrange(60) for value in row] for row in mask] for mask in self.masks]
        self.grey = [[[255 * value for value in row] for row in mask] for mask in self.masks]

    def put(self, folder, images, masks):
        for kind, files in (("images", images), ("masks", masks)):
            (self.folder / folder / kind).mkdir(parents=True)
            for i, data in enumerate(files):
                ending = "tif" if data[:2] in (b"II", b"MM") else "png"
                (self.folder / folder / kind / f"{i}.{ending}").write_bytes(data)

    def put_plain(self, folder="plain"):
        self.put(folder, [png(image) for image in self.images], [png(mask) for mask in self.grey])

    def weights(self, folder, *options, out=None):
        done = self.train(*TINY, *CPU, "--data", folder, "--steps", "1", "--out", out or f"run-{folder}", *options)
        return done["weights_sha256"]

    def notes(self, *words):
        return self.succeed(*words).stderr

    def test_masks_of_different_palettes_are_read_by_their_colours(self):
        self.put_plain()
        swapped = [[[1 - value for value in row] for row in mask] for mask in self.masks]
        self.put("palettes", [png(image) for image in self.images],
                 [png(self.masks[i], palette=[BLACK, WHITE]) if i % 2 else png(swapped[i], palette=[WHITE, BLACK])
                  for i in range(4)])
        self.assertEqual(self.weights("palettes"), self.weights("plain"))
        for words in (["data", "describe", "palettes"],
                      ["evaluate", "run-plain", "--data", "palettes", *CPU]):
            self.assertIn("read by the colours", self.notes(*words))
        scores = [self.document("evaluate", "run-plain", "--data", data, *CPU)["results"][0]["confusion"]
                  for data in ("plain", "palettes")]
        self.assertEqual(*scores)

    def test_images_of_another_depth_are_refused_unless_each_has_its_own_scale(self):
        self.put("mixed", [png(image, 16 if i == 2 else 8) for i, image in enumerate(self.images)],
                 [png(mask) for mask in self.grey])
        says = ['mixed/images/0.png" has 8 bits', 'mixed/images/2.png" 16 bits', "--normalize image"]
        self.expect_error(2, "train", *TINY, "--data", "mixed", "--steps", "1", says=says)
        described = self.succeed("data", "describe", "mixed").stdout
        for part in says:
            self.assertIn(part, described)
        for by in ("image", "percentiles"):
            self.weights("mixed", "--normalize", by, out=by)

    def test_an_image_of_another_scale_is_named(self):
        dim = [[value // 9 for value in row] for row in self.images[3]]
        self.put("dim", [png(image) for image in [*self.images[:3], dim]], [png(mask) for mask in self.grey])
        self.assertIn('values of "3" have deviation', self.succeed("data", "describe", "dim").stdout)
        noted = self.notes("train", *TINY, *CPU, "--data", "dim", "--validation", "0", "--steps", "1")
        self.assertIn('values of "3" have deviation', noted)

    def test_photographs_are_turned_as_viewers_show_them(self):
        self.put_plain()
        self.put("turned", [png(STORED[3](image), orientation=3) for image in self.images], [png(mask) for mask in self.grey])
        self.assertEqual(self.weights("turned"), self.weights("plain"))
        noted = self.notes("run", "run-plain", "--input", "turned/images", "--out", "a", *CPU)
        self.assertIn('"turned/images/0.png" (and 3 more files likewise) is turned by 180 degrees', noted)
        self.succeed("run", "run-plain", "--input", "plain/images", "--out", "b", *CPU)
        self.assertEqual((self.folder / "a/1.png").read_bytes(), (self.folder / "b/1.png").read_bytes())

    def test_look_up_tables_are_for_display_and_other_palettes_are_colours(self):
        self.put_plain()
        lut = filled((0, i, 0) for i in range(256))
        self.put("lut", [tiff([[image]], photometric=PALETTE, palette=lut, description="ImageJ=1.53t\nimages=1\n")
                         for image in self.images], [png(mask) for mask in self.grey])
        self.assertEqual(self.weights("lut"), self.weights("plain"))
        (self.folder / "a.tif").write_bytes(tiff([[self.images[0]]], photometric=PALETTE, palette=lut))
        noted = self.notes("run", "run-plain", "--input", "a.tif", "--out", "a", *CPU)
        self.assertIn('the palette of "a.tif" is taken for the colours', noted)

    def test_masks_with_other_sections_than_their_image_are_refused(self):
        stack = [[image] for image in self.images[:3]]
        rgb = tiff([[stack[0][0], stack[1][0], stack[2][0]]], photometric=RGB)
        self.put("rgb", [rgb], [tiff([[mask] for mask in self.grey[:3]])])
        self.expect_error(2, "train", *TINY, "--data", "rgb", "--validation", "0", "--steps", "1",
                          says=["rgb/masks/0.tif", "3 sections", "of red, green and blue"])
        self.put("longer", [tiff(stack)], [tiff([[mask] for mask in self.grey])])
        self.expect_error(2, "train", *TINY, "--data", "longer", "--validation", "0", "--steps", "1",
                          says=["longer/masks/0.tif", "4 sections"])
        self.assertIn("4 sections", self.run_program("data", "describe", "longer").stdout)

    def test_masks_of_another_laboratory_are_judged_by_their_own_labels(self):
        self.put_plain()
        self.weights("plain")
        reverse = [[[1 - value for value in row] for row in mask] for mask in self.masks]
        self.put("reverse", [png(image) for image in self.images], [png(mask) for mask in reverse])
        evaluate = ["evaluate", "run-plain", *CPU]
        expected = self.document(*evaluate, "--data", "plain")["results"][0]["confusion"]
        self.expect_error(2, *evaluate, "--data", "reverse", says=["reverse/masks", "value 1", "no class"])
        done = self.document(*evaluate, "--data", "reverse", "--labels", "1,0")["results"][0]
        self.assertEqual((done["confusion"], done["labels"]), (expected, "1,0"))
        self.put("dark", [png(image) for image in self.images],
                 [png([[255 - value for value in row] for row in mask]) for mask in self.grey])
        noted = self.notes(*evaluate, "--data", "dark")
        self.assertIn("in training; if these masks mark the other class, give --invert", noted)
        done = self.document(*evaluate, "--data", "dark", "--invert")["results"][0]
        self.assertEqual((done["confusion"], done["labels"]), (expected, "255,0"))
        self.assertNotIn("in training", self.notes(*evaluate, "--data", "dark", "--invert"))
        self.expect_error(2, *evaluate, "--data", "dark", "--labels", "0,255", "--invert", says="--invert")

    def test_each_channel_is_normalised_by_its_own_numbers(self):
        bright = [[[value * 200 for value in row] for row in image] for image in self.images]
        self.put("dyes", [tiff([[b, image]], 16) for b, image in zip(bright, self.images)],
                 [png(mask) for mask in self.grey])
        self.weights("dyes", "--in-channels", "2")
        self.succeed("export", "run-dyes", "--out", "a.onnx")
        self.weights("dyes", "--in-channels", "2", "--normalize", "percentiles", out="percentiles")
        self.expect_error(4, "export", "percentiles", "--out", "b.onnx", says=["percentiles", "--pixels normalized"])
        self.succeed("export", "percentiles", "--out", "b.onnx", "--pixels", "normalized")
        document = json.loads(next((self.folder / "run-dyes/checkpoint").glob("checkpoint-*.json")).read_text())
        run = document["run"]
        self.assertEqual(len(run["normalization"]["mean"]), 2)
        self.assertEqual(run["config"]["data"]["normalize_channels"], "each")


if __name__ == "__main__":
    main()
