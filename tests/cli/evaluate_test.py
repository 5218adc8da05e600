"""A trained model judged on images with masks: tables, files, what is refused."""
# SPDX-License-Identifier: Apache-2.0
import csv
import json

from support import *

CPU = ["--threads", "1"]


class Evaluate(ProgramTest):
    def setUp(self):
        super().setUp()
        make_data(self.folder / "data", [(20, 20), (24, 16), (16, 16), (16, 33)])
        (self.folder / "list.csv").write_text("id,split\n00,train\n01,validation\n02,test\n03,test\n")
        self.succeed("train", *TINY, "--data", "data", "--list", "list.csv", "--steps", "1", "--out", "run", *CPU)

    def evaluate(self, *arguments):
        results = self.document("evaluate", "run", *CPU, *arguments)["results"]
        self.assertEqual(len(results), 1)
        return results[0]

    def test_scores_and_files_of_a_split(self):
        found = self.evaluate("--split", "test", "--out", "out", "--worst", "1", "--regions", "1")
        self.assertEqual([image["name"] for image in found["images"]], ["02", "03"])
        self.assertEqual(found["labels"], "0,255")
        self.assertEqual(sum(map(sum, found["confusion"])), 16 * 16 + 16 * 33)
        right = sum(found["confusion"][i][i] for i in range(2))
        self.assertAlmostEqual(found["pixel_accuracy"], right / (16 * 49))
        self.assertEqual(sum(bin["pixels"] for bin in found["calibration"]), 16 * 49)
        self.assertIn("v_rand", found["regions"])
        with open(self.folder / "out/images.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for row, image in zip(rows, found["images"], strict=True):
            self.assertEqual(row["image"], image["name"])
            self.assertAlmostEqual(float(row["dice"]), image["dice"], places=6)
        with open(self.folder / "out/confusion.csv", newline="") as file:
            self.assertEqual([list(map(int, row[1:])) for row in list(csv.reader(file))[1:]], found["confusion"])
        self.assertEqual(json.loads((self.folder / "out/evaluation.json").read_text())["results"][0], found)
        worst = min(found["images"], key=lambda image: image["dice"])
        pictures = list((self.folder / "out/worst").iterdir())
        self.assertEqual([picture.name for picture in pictures], [f"{worst['name']}.png"])
        self.assertEqual(png_size(pictures[0]), (3 * worst["width"] + 8, worst["height"]))

    def test_pictures_of_an_earlier_evaluation_go(self):
        for split, names in (("test", ["02.png", "03.png"]), ("train", ["00.png"])):
            self.evaluate("--split", split, "--out", "out")
            self.assertEqual(sorted(path.name for path in (self.folder / "out/worst").iterdir()), names)

    def test_without_data_the_validation_images_and_with_it_all(self):
        self.assertEqual([image["name"] for image in self.evaluate()["images"]], ["01"])
        make_data(self.folder / "more", [(16, 16), (18, 20)])
        shutil.copy(self.folder / "list.csv", self.folder / "more.csv")
        (self.folder / "more.csv").write_text("00\n01\n")
        found = self.evaluate("--data", "more", "--list", "more.csv")
        self.assertEqual([image["name"] for image in found["images"]], ["00", "01"])

    def evaluate_with_errors(self, *arguments):
        ended = self.run_program("evaluate", "run", *CPU, "--json", *arguments)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return [image["name"] for image in json.loads(ended.stdout)["results"][0]["images"]], ended.stderr

    def test_the_list_of_a_run_counts_for_its_own_images_alone(self):
        note = 'NOTE: the run\'s list "'
        make_data(self.folder / "more", [(16, 16), (18, 20), (16, 16), (17, 17), (20, 16)])
        for folders in (["--data", "more"], ["--images", "more/images", "--masks", "more/masks"]):
            names, errors = self.evaluate_with_errors(*folders)
            self.assertEqual(names, ["00", "01", "02", "03", "04"])
            self.assertIn(note, errors)
        for own in (["--data", "data"], ["--data", "./data/"], ["--images", "data/images", "--masks", "data/masks"]):
            names, errors = self.evaluate_with_errors(*own)
            self.assertEqual(names, ["00", "01", "02", "03"])
            self.assertNotIn(note, errors)
        (self.folder / "more.csv").write_text("id;split\n04;test\n")
        names, errors = self.evaluate_with_errors("--data", "more", "--list", "more.csv", "--split", "test")
        self.assertEqual(names, ["04"])
        self.assertNotIn(note, errors)
        self.expect_error(2, "evaluate", "run", *CPU, "--data", "more", "--split", "test", says="--list")
        document = self.document("quantize", "run", "--data", "more", "--out", "int8")["results"][0]
        self.assertEqual(document["calibration_images"], 4)

    def test_the_list_of_a_run_gives_other_images_no_masks(self):
        (self.folder / "list.csv").write_text("id,split,mask\n00,train,00.png\n01,validation,01.png\n02,test,00.png\n")
        self.succeed("train", *TINY, "--data", "data", "--list", "list.csv", "--steps", "1", "--out", "masked", *CPU)
        make_data(self.folder / "more", [(16, 16), (18, 20), (24, 20)])
        found = self.document("evaluate", "masked", *CPU, "--data", "more")["results"][0]
        self.assertEqual([image["name"] for image in found["images"]], ["00", "01", "02"])

    def test_names_of_masks_stay_with_the_own_folder(self):
        for mask in (self.folder / "data/masks").iterdir():
            mask.rename(mask.with_name(f"{mask.stem}_m{mask.suffix}"))
        self.succeed("train", *TINY, "--data", "data", "--mask-pattern", "{name}_m", "--steps", "1", "--out", "named",
                     *CPU)
        make_data(self.folder / "more", [(16, 16), (18, 20)])
        for data, images in (("data", 4), ("more", 2)):
            found = self.document("evaluate", "named", "--data", data, *CPU)["results"][0]
            self.assertEqual(len(found["images"]), images)

    def test_generated_images_judge_runs_that_trained_on_them(self):
        self.expect_error(2, "evaluate", "run", *CPU, "--data", "synthetic",
                          says=["--data synthetic", "came from files"])
        self.succeed("train", *FEW, "--steps", "1", "--out", "drawn", *CPU)
        self.succeed("synthesize", "--out", "files", "--images", "5", "--size", "32")
        for data, labels in (("synthetic", ""), ("files", "255,0")):
            found = self.document("evaluate", "drawn", "--data", data, *CPU)["results"][0]
            self.assertEqual(len(found["images"]), 5)
            self.assertEqual(found["labels"], labels)

    def test_names_that_are_not_utf_8_are_used_and_paths_of_a_run_refused(self):
        latin = os.fsdecode(b"Pr\xe4parat")
        make_data(self.folder / "more", [(16, 16), (18, 20)])
        for kind in ("images", "masks"):
            (self.folder / f"more/{kind}/01.png").rename(self.folder / f"more/{kind}/{latin}.png")
        (self.folder / "more.csv").write_bytes(b"00\nPr\xe4parat\n")
        found = self.evaluate("--data", "more", "--list", "more.csv", "--out", "out")
        self.assertEqual([image["name"] for image in found["images"]], ["00", "Pr\ufffdparat"])
        self.assertTrue((self.folder / f"out/worst/{latin}.png").exists())
        self.document("data", "describe", "more")
        self.succeed("train", *TINY, "--data", "more", "--steps", "1", "--out", "again", *CPU)
        (self.folder / "more").rename(self.folder / latin)
        self.expect_error(2, "train", *TINY, "--data", latin, "--steps", "1", "--out", "third", *CPU,
                          says=["UTF-8", "Pr?parat"])
        self.assertFalse((self.folder / "third").exists())

    def test_folders_and_names_of_masks_as_training_has_them(self):
        make_data(self.folder / "more", [(16, 16), (18, 20)])
        (self.folder / "more.csv").write_text("00\n01\n")
        for mask in (self.folder / "more/masks").iterdir():
            mask.rename(mask.with_name(f"{mask.stem}_mask{mask.suffix}"))
        folders = ["--images", "more/images", "--list", "more.csv"]
        found = self.evaluate(*folders, "--masks", "more/masks", "--mask-pattern", "{name}_mask.png")
        self.assertEqual([image["name"] for image in found["images"]], ["00", "01"])
        self.assertEqual(found["data"], "more/images")
        self.expect_error(2, "evaluate", "run", *CPU, *folders, says="--masks go together")

    def test_machines_give_the_same_scores_under_the_exact_contract(self):
        images = [self.evaluate("--contract", "bf16-exact", "--backend", backend)["images"]
                  for backend in ("cpu", "cuda-emulated", "systolic")]
        self.assertEqual(images[0], images[1])
        self.assertEqual(images[0], images[2])

    def test_a_threshold_and_augmentation_count(self):
        everything = self.evaluate("--threshold", "0")
        self.assertEqual([row[0] for row in everything["confusion"]], [0, 0])
        self.assertNotEqual(self.evaluate("--tta", "flips")["brier"], everything["brier"])

    def test_the_table_names_its_figures(self):
        text = self.succeed("evaluate", "run", *CPU, "--regions", "0").stdout
        for name in ("Dice", "IoU", "boundary F1", "Hausdorff 95", "pixel accuracy", "calibration", "Brier", "V-Rand",
                     "V-Info"):
            self.assertIn(name, text)

    def test_classes_that_are_nowhere_have_no_score_and_raise_no_mean(self):
        trained = self.train(*TINY, "--data", "data", "--list", "list.csv", "--classes", "4", "--labels", "0,255,10,20",
                             "--class-names", "ground,cell,wall,dust", "--steps", "40", "--lr", "0.05",
                             "--steps-per-epoch", "40", "--keep", "dice", "--out", "many", *CPU)
        many = ["many", "--data", "data", "--split", "test", *CPU]
        found = self.document("evaluate", *many, "--out", "out")["results"][0]
        confusion = found["confusion"]
        there = {c: sum(confusion[c]) + sum(row[c] for row in confusion) > 0 for c in (1, 2, 3)}
        self.assertEqual((there[1], there[3]), (True, False), "it learns that there is no dust")
        scores = ("dice", "iou", "pooled_dice", "pooled_iou", "boundary_f1")
        for one in found["classes"]:
            self.assertEqual(one["name"], ["ground", "cell", "wall", "dust"][one["class"]])
            self.assertEqual([one[score] is not None for score in scores], [there[one["class"]]] * len(scores), one)
        for score in scores:
            known = [one[score] for one in found["classes"] if one[score] is not None]
            self.assertAlmostEqual(found[score], sum(known) / len(known))
        with open(self.folder / "out/images.csv", newline="") as file:
            self.assertEqual({row["dice_3"] + row["iou_3"] for row in csv.DictReader(file)}, {""})
        text = self.succeed("evaluate", *many).stdout
        self.assertRegex(text, r"\n *3 dust +0 +- +- +- +- +- +-\n")
        self.assertIn("as 1 cell", text)
        last = trained["epochs"][-1]
        self.assertIsNone(last["classes"][2]["dice"])
        known = [one["dice"] for one in last["classes"] if one["dice"] is not None]
        self.assertAlmostEqual(last["dice"], sum(known) / len(known))
        with open(self.folder / "many/metrics.csv", newline="") as file:
            self.assertEqual([row["dice_3"] for row in csv.DictReader(file)], [""])
        self.succeed("page", "many", "--evaluation", "out", "--out", "page.html")
        self.assertGreaterEqual((self.folder / "page.html").read_text().count("3 dust"), 3)

    def test_images_of_nothing_have_no_score(self):
        for mask in (self.folder / "data/masks").iterdir():
            width, height = png_size(mask)
            mask.write_bytes(png_bytes(width, height, sample=lambda x, y, c: 0))
        found = self.evaluate("--data", "data", "--threshold", "1", "--out", "out")
        self.assertEqual([found["dice"], found["pooled_iou"], found["boundary_f1"]], [None] * 3)
        self.assertEqual([image["dice"] for image in found["images"]], [None] * 4)
        self.assertEqual(found["pixel_accuracy"], 1)
        with open(self.folder / "out/images.csv", newline="") as file:
            self.assertEqual([row["dice"] for row in csv.DictReader(file)], [""] * 4)

    def test_data_that_do_not_fit_are_refused(self):
        evaluate = ["evaluate", "run", *CPU]
        self.expect_error(2, *evaluate, "--split", "exam", says=["exam", "test", "train", "validation"])
        self.expect_error(2, *evaluate, "--data", "nowhere", says="nowhere")
        self.expect_error(2, *evaluate, "--regions", "2", says=["--regions 2", "0 to 1"])
        mask = self.folder / "data/masks/02.png"
        mask.write_bytes(png_bytes(16, 16, sample=lambda x, y, c: 77))
        self.expect_error(2, *evaluate, "--split", "test", says=["02.png", "77", "0,255"])
        mask.write_bytes(png_bytes(15, 16))
        self.expect_error(2, *evaluate, "--split", "test", says=["02.png", "15 x 16"])


if __name__ == "__main__":
    main()
