"""Experiments of several trainings: cross-validation, and the search for a learning rate."""
# SPDX-License-Identifier: Apache-2.0
import csv
import signal
import statistics

from support import TINY, ProgramTest, main, make_data

CPU = ["--threads", "1"]


class CrossValidation(ProgramTest):
    def setUp(self):
        super().setUp()
        make_data(self.folder / "data", [(20, 20), (24, 16), (16, 16), (16, 33), (30, 20), (22, 22), (20, 28)])
        self.options = ["cross-validate", *TINY, "--data", "data", "--folds", "3", "--epochs", "2", "--keep", "dice", *CPU]

    def test_every_image_is_judged_once_and_the_table_is_of_the_folds(self):
        result = self.document(*self.options, "--out", "a")["results"][0]
        self.assertEqual([fold["fold"] for fold in result["folds"]], [1, 2, 3])
        judged = []
        for fold in result["folds"]:
            evaluated = self.document("evaluate", fold["folder"], *CPU)["results"][0]
            judged += [image["name"] for image in evaluated["images"]]
            self.assertAlmostEqual(evaluated["dice"], fold["dice"], places=6)
            self.assertEqual(len(evaluated["images"]), fold["validation_images"])
            self.assertTrue((self.folder / fold["folder"] / "report.html").exists())
        self.assertEqual(sorted(judged), [f"{i:02}" for i in range(7)])
        for score in ("dice", "iou", "pixel_error"):
            values = [fold[score] for fold in result["folds"]]
            self.assertAlmostEqual(result["summary"][score]["mean"], statistics.mean(values))
            self.assertAlmostEqual(result["summary"][score]["deviation"], statistics.stdev(values))
        text = self.succeed(*self.options, "--out", "a").stdout  # all is there already
        self.assertRegex(text, r"mean +7 +0\.\d{4} +0\.\d{4} +0\.\d{4}\n")

    def test_a_list_keeps_its_other_images_for_a_test(self):
        rows = ["id,split", *(f"{i:02},{'train' if i < 5 else 'validation'}" for i in range(7))]
        (self.folder / "list.csv").write_text("\n".join(rows) + "\n")
        result = self.document(*self.options, "--list", "list.csv", "--out", "a")["results"][0]
        self.assertEqual(sum(fold["validation_images"] for fold in result["folds"]), 5)

    def test_it_goes_on_where_it_was_stopped_to_the_same_bits(self):
        whole = self.document(*self.options, "--out", "whole")["results"][0]
        process = self.start(*self.options, "--out", "a")
        for line in process.stderr:
            if "fold 2 of 3" in line:
                break
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=120)[1]
        if process.returncode != 0:  # it may have been too late
            self.assertEqual(process.returncode, 130, errors)
            self.assertRegex(errors, "stopped in fold [23] of 3; the same command with --out a goes on")
            self.expect_error(2, *self.options, "--lr", "0.5", "--out", "a", says=["fold-1", "other options"])
        rest = self.document(*self.options, "--out", "a")["results"][0]
        for one, other in zip(whole["folds"], rest["folds"], strict=True):
            self.assertEqual(one["weights_sha256"], other["weights_sha256"])
        self.assertEqual(whole["summary"], rest["summary"])

    def test_more_folds_than_images_are_refused(self):
        self.expect_error(2, *self.options, "--folds", "8", "--out", "a", says=["--folds 8", "there are 7", "from 2 to 7"])
        self.assertFalse((self.folder / "a").exists())
        self.expect_error(2, *self.options, "--folds", "1", says="--folds")
        self.expect_error(2, *self.options, "--validation", "0.5", "--out", "a", says="--validation")


class FindLearningRate(ProgramTest):
    def test_trials_are_told_written_and_lead_to_a_suggestion(self):
        make_data(self.folder / "data", [(20, 20), (24, 16), (16, 16)])
        options = ["find-lr", *TINY, "--data", "data", "--from", "1e-5", "--to", "10", "--trials", "60", "--optimizer", "sgd",
                   *CPU]
        result = self.document(*options, "--out", "trials.csv")["results"][0]
        with open(self.folder / "trials.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for row, trial in zip(rows, result["trials"], strict=True):
            self.assertAlmostEqual(float(row["loss"]), trial["loss"], places=5)
        self.assertAlmostEqual(result["trials"][0]["rate"], 1e-5)
        lowest = min(result["trials"], key=lambda trial: trial["smoothed"])
        self.assertAlmostEqual(result["tenth_of_lowest"], lowest["rate"] / 10, places=6)
        self.assertRegex(self.succeed(*options).stdout, r"suggested: --lr \d\.\de-?\d+; the loss falls fastest at")
        self.expect_error(2, *options, "--to", "1e-6", says="must rise")

    def test_generated_images_are_said_to_be_generated(self):
        self.assertIn("no --data", self.succeed("find-lr", *TINY, "--trials", "10").stderr)


if __name__ == "__main__":
    main()
