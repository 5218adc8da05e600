"""Images in, masks out: what the program reads, and what it says about what it cannot read."""
# SPDX-License-Identifier: Apache-2.0
import shutil

from support import (FEW, GREY, GREY_ALPHA, RGB, RGBA, TINY, ProgramTest, digest, disc, main,
                     make_data, png_bytes, png_size)

SIZES = [(20, 17), (16, 16), (40, 23), (5, 7)]  # larger than the crop, as large, smaller


class Training(ProgramTest):
    def test_generated_images_train_from_a_folder(self):
        self.succeed("synthesize", "--out", "data", "--images", "4", "--size", "32", "--seed", "7")
        result = self.train(*TINY, "--data", "data", "--invert", "--steps", "2", "--out", "a")
        self.assertEqual(result["steps"], 2)
        self.assertEqual(result["epochs"][-1]["validation_images"], 1)
        self.assertEqual(len(list((self.folder / "a" / "masks").glob("*.png"))), 1)

    def test_generated_images_depend_on_their_seed_alone(self):
        for folder, seed in (("a", "7"), ("b", "7"), ("c", "8")):
            self.succeed("synthesize", "--out", folder, "--images", "1", "--size", "32",
                         "--seed", seed)
        a, b, c = (digest(next((self.folder / f / "images").iterdir())) for f in "abc")
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)

    def test_images_of_every_size_depth_and_colour_train(self):
        forms = [("grey", GREY, 8, []), ("deep", GREY, 16, []), ("bits", GREY, 1, []),
                 ("alpha", GREY_ALPHA, 8, []), ("rgb", RGB, 8, ["--in-channels", "3"]),
                 ("rgba", RGBA, 16, ["--in-channels", "3"]), ("grey-of-rgb", RGB, 8, []),
                 ("rgb-of-grey", GREY, 8, ["--in-channels", "3"])]
        for name, kind, depth, options in forms:
            with self.subTest(name):
                make_data(self.folder / name, SIZES, kind, depth, mask_depth=1)
                result = self.train(*TINY, *options, "--data", name, "--augmentation", "all",
                                    "--steps", "3", "--validation", "0.5", "--out", f"run-{name}")
                self.assertEqual(result["epochs"][-1]["validation_images"], 2)

    def test_images_and_masks_may_lie_in_two_folders(self):
        make_data(self.folder / "data", SIZES)
        shutil.move(self.folder / "data/masks", self.folder / "truth")
        self.succeed("train", *TINY, "--images", "data/images", "--masks", "truth", "--steps", "1")

    def test_more_classes_come_from_grey_levels(self):
        data = make_data(self.folder / "data", SIZES)
        for i, (width, height) in enumerate(SIZES):
            mask = png_bytes(width, height, sample=lambda x, y, c: (x % 3) * 100)
            (data / "masks" / f"{i:02}.png").write_bytes(mask)
        result = self.train(*TINY, "--data", "data", "--classes", "3", "--steps", "1")
        self.assertEqual(result["model"]["classes"], 3)
        self.expect_error(2, "train", *TINY, "--data", "data", "--classes", "4", "--steps", "1",
                          says="does not say what the 4 classes are")
        self.train(*TINY, "--data", "data", "--classes", "3", "--steps", "1", "--out", "weighted",
                   "--loss", "dice-cross-entropy", "--class-weights", "balanced",
                   "--border-weight", "10")

    def test_without_validation_images_there_is_no_score(self):
        result = self.train(*FEW, "--validation", "0", "--steps", "1", "--out", "a")
        self.assertIsNone(result["epochs"][0]["dice"])


class Lists(ProgramTest):
    def setUp(self):
        super().setUp()
        make_data(self.folder / "data", SIZES * 2)

    def write(self, text):
        (self.folder / "list.csv").write_text(text)
        return ["train", *TINY, "--data", "data", "--list", "list.csv", "--steps", "1"]

    def test_a_list_chooses_images_and_splits(self):
        (self.folder / "data/images/broken.png").write_text("not looked at")
        command = self.write("id,split\n00,fit\n01,fit\n02,check\n03,other\n")
        result = self.document(*command, "--train-split", "fit", "--validation-split", "check")
        self.assertEqual(result["results"][0]["epochs"][0]["validation_images"], 1)

    def test_a_list_without_splits_is_split_by_the_seed(self):
        result = self.document(*self.write("00\n01\n02\n03\n"), "--validation", "0.5")
        self.assertEqual(result["results"][0]["epochs"][0]["validation_images"], 2)

    def test_a_share_to_validate_on_is_refused_where_the_list_says_it(self):
        command = self.write("id,split\n00,train\n01,validation\n")
        self.expect_error(2, *command, "--validation", "0.5", says=["--validation does not apply", "list.csv"])

    def test_a_list_without_the_split_to_train_on_is_refused(self):
        self.expect_error(2, *self.write("id,split\n00,fit\n01,check\n"),
                  says=['no split "train"', "--train-split", "check, fit"])

    def test_broken_lists_are_refused_with_the_reason(self):
        for text, says in [("", "selects none"), ("id,split\n00\n", "line 2"),
                           ("00\n00\n", 'line 1 ("00") and line 2 ("00") name the same'), ("../00\n", "plain"),
                           ("00\n99\n", 'no picture "99"')]:
            with self.subTest(text):
                self.expect_error(2, *self.write(text), says=says)
        self.expect_error(2, *self.write("00\n")[:-4], "--list", "nowhere.csv", says="nowhere.csv")


    def test_names_of_classes_come_without_the_mark_of_a_text_editor(self):
        (self.folder / "names.txt").write_bytes(b"\xef\xbb\xbfbackground\r\nnucleus\r\n")
        ended = self.run_program("train", *TINY, "--data", "data", "--class-names", "names.txt", "--steps", "1")
        self.assertIn("0 is class 0, background (", ended.stderr)

    def test_rows_that_name_one_picture_are_refused_with_both_lines(self):
        self.expect_error(2, *self.write("id;split\n00;train\n00.png;validation\n"),
                          says=['line 2 ("00") and line 3 ("00.png")', "list.csv"])


class BadData(ProgramTest):
    def setUp(self):
        super().setUp()
        self.data = make_data(self.folder / "data", SIZES)

    def refuse(self, *says):
        self.expect_error(2, "train", *TINY, "--data", "data", "--steps", "1", "--out", "a", says=says)
        self.assertFalse((self.folder / "a").exists(), "a folder is left behind")

    def test_a_missing_folder_says_what_is_expected(self):
        for path in ("nowhere", "data/images/00.png"):
            self.expect_error(2, "train", *TINY, "--data", path,
                      says=[path, "is not a folder", "images/ and masks/", "--images and --masks"])
        shutil.rmtree(self.data / "masks")
        self.refuse("data/masks", "is not a folder")

    def test_a_folder_without_images_is_refused(self):
        for image in (self.data / "images").iterdir():
            image.unlink()
        self.refuse("no images", "data/images")

    def test_an_image_without_mask_is_named(self):
        (self.data / "masks/02.png").unlink()
        self.refuse("data/images/02.png", "has no mask", "data/masks")

    def test_a_mask_of_another_size_is_named(self):
        (self.data / "masks/02.png").write_bytes(png_bytes(40, 24))
        self.refuse("data/masks/02.png", "40 x 24", "40 x 23")

    def test_masks_that_hold_nothing_to_tell_apart_are_refused(self):
        for i, (width, height) in enumerate(SIZES):
            (self.data / "masks" / f"{i:02}.png").write_bytes(
                png_bytes(width, height, sample=lambda x, y, c: 0))
        self.refuse("every pixel of every mask is 0")

    def test_files_that_are_no_images_are_named(self):
        path = self.data / "images/01.png"
        whole = path.read_bytes()
        damaged = bytearray(whole)
        damaged[-20] ^= 1
        huge = bytearray(whole)
        huge[16:20] = b"\x7f\xff\xff\xff"
        for name, content in [("empty", b""), ("text", b"this is a text\n" * 9),
                              ("truncated", whole[:len(whole) // 2]), ("header", whole[:20]),
                              ("damaged", bytes(damaged)), ("huge", bytes(huge))]:
            with self.subTest(name):
                path.write_bytes(content)
                self.refuse("data/images/01.png")
        path.unlink()
        path.mkdir()
        (path / "x").touch()

    def test_a_crop_that_no_image_nearly_fills_is_refused(self):
        self.expect_error(2, "train", *TINY, "--size", "4096", "--data", "data", "--steps", "1", "--out", "a",
                  says=["--size 4096", "shorter side"])

    def test_too_few_images_to_train_are_refused(self):
        for i in range(1, len(SIZES)):
            (self.data / f"images/{i:02}.png").unlink()
        self.expect_error(2, "train", *TINY, "--data", "data", "--validation", "0.9", "--steps", "1",
                  says="--validation")


class Applying(ProgramTest):
    def setUp(self):
        super().setUp()
        make_data(self.folder / "data", SIZES, RGB)
        self.succeed("train", *TINY, "--in-channels", "3", "--data", "data", "--steps", "20",
                     "--lr", "0.02", "--out", "a")

    def apply(self, code, source, out, *options, says=()):
        command = ["run", "a", "--input", source, "--out", out, *options]
        return self.expect_error(code, *command, says=says) if code else self.document(*command)

    def test_a_folder_gives_a_mask_of_the_same_size_per_image(self):
        results = self.apply(0, "data/images", "masks")["results"]
        self.assertEqual(len(results), len(SIZES))
        for i, (result, size) in enumerate(zip(results, SIZES)):
            self.assertEqual(result["output"], f"masks/{i:02}.png")
            self.assertEqual((result["width"], result["height"]), size)
            self.assertEqual(png_size(self.folder / result["output"]), size)

    def test_a_file_gives_one_mask_and_may_have_any_colour(self):
        (self.folder / "grey.png").write_bytes(png_bytes(30, 31, sample=disc(30, 31)))
        self.apply(0, "grey.png", "masks/deep/er")
        self.assertEqual(png_size(self.folder / "masks/deep/er/grey.png"), (30, 31))

    def test_small_tiles_cover_a_large_image(self):
        (self.folder / "large.png").write_bytes(png_bytes(70, 90, RGB, sample=disc(70, 90)))
        self.apply(0, "large.png", "masks", "--tile", "32", "--margin", "8")
        self.apply(2, "large.png", "masks", "--tile", "32", "--margin", "16", says="--margin")
        self.apply(2, "large.png", "masks", "--tile", "31", says="--tile")

    def test_an_input_is_never_overwritten(self):
        before = digest(self.folder / "data/images/00.png")
        for source in ("data/images", "data/images/00.png"):
            self.apply(2, source, "data/images", says=["data/images", "--out"])
        (self.folder / "link").symlink_to("data/images")
        self.apply(2, "data/images", "link", says=["link", "--out"])
        self.assertEqual(digest(self.folder / "data/images/00.png"), before)

    def test_a_single_image_may_be_written_to_a_file(self):
        result = self.apply(0, "data/images/00.png", "new/mask.PNG")["results"][0]
        self.assertEqual(result["output"], "new/mask.PNG")
        self.assertEqual(png_size(self.folder / "new/mask.PNG"), SIZES[0])

    def test_every_input_is_taken_and_none_may_meet_in_one_mask(self):
        two = ["data/images/00.png", "--input", "data/images/02.png"]
        results = self.document("run", "a", "--input", *two, "--out", "masks")["results"]
        self.assertEqual([r["output"] for r in results], ["masks/00.png", "masks/02.png"])
        self.expect_error(2, "run", "a", "--input", "data/images/00.png", "data/masks/00.png",
                  "--out", "masks", says=["data/images/00.png", "data/masks/00.png", "would both be written"])

    def test_a_broken_image_among_others_is_named_and_left_out(self):
        (self.folder / "data/images/01.png").write_text("text")
        (self.folder / "data/images/Thumbs.db").touch()
        (self.folder / "data/images/02.png").rename(self.folder / "data/images/02.PNG")
        result = self.run_program("run", "a", "--input", "data/images", "--out", "masks")
        self.assertEqual(result.returncode, 2)
        for part in ("left out", "01.png", f"1 of {len(SIZES)} images", "Thumbs.db"):
            self.assertIn(part, result.stderr)
        masks = sorted(p.name for p in (self.folder / "masks").glob("*.png"))
        self.assertEqual(masks, [f"{i:02}.png" for i in range(len(SIZES)) if i != 1])

    def test_missing_or_broken_inputs_are_named(self):
        (self.folder / "bad.png").write_text("text")
        (self.folder / "none").mkdir()
        self.apply(2, "nowhere.png", "masks", says="nowhere.png")
        self.apply(2, "bad.png", "masks", says="bad.png")
        self.apply(2, "none", "masks", says=["none", ".png"])
        self.apply(2, "data/images", "bad.png", says="names a file")
        self.apply(2, "data/images/00.png", "bad.png", says=["bad.png", "overwrite"])
        self.expect_error(2, "run", "data", "--input", "data/images", "--out", "masks",
                  says=["data", "no checkpoint", "triptych train"])


if __name__ == "__main__":
    main()
