"""Device files and what is modelled from them: calibration, predictions, strategies, the survey's table."""
# SPDX-License-Identifier: Apache-2.0
import json
import os

from support import TINY, ProgramTest, long_when_sanitized, main


class CalibrateTest(ProgramTest):
    def test_a_file_holds_what_is_printed_and_is_taken_back(self):
        result = self.document("calibrate", "--quick", "--threads", "1", "--ranks", "1,2", "--name", "mine", "--out",
                               "mine.json")["results"][0]
        self.assertEqual(json.loads((self.folder / "mine.json").read_text()), result)
        self.assertEqual((result["name"], result["kind"]), ("mine", "cpu"))
        kinds = [result["peaks"]["f32"]["kind"], result["launch"]["kind"], result["efficiencies"][0]["kind"]]
        self.assertEqual(set(kinds), {"measured"})
        self.assertEqual(result["levels"][-1]["name"], "memory")
        self.assertEqual([table["ranks"] for table in result["efficiencies"]], [1], "no more ranks than threads")
        self.assertIn("Conv/", " ".join(result["efficiencies"][0]["classes"]))
        row = self.document("bench", *TINY, "--repeats", "1", "--device", "mine.json")["results"][0]
        self.assertEqual(row["modelled"]["device"], "mine")
        self.assertEqual(row["modelled"]["time"]["kind"], "modelled")
        text = self.succeed("bench", *TINY, "--repeats", "1", "--device", "mine.json").stdout
        self.assertRegex(text, r"the same plans on mine \(modelled")

    def test_a_simulated_machine_has_the_figures_of_its_description(self):
        result = self.document("calibrate", "--backend", "systolic", "--machine", "mmu8")["results"][0]
        self.assertEqual(result["kind"], "array")
        peak = result["peaks"]["bf16"]
        self.assertEqual((peak["value"], peak["kind"]), (8 * 8 * 2 * 700e6, "modelled"))
        self.assertEqual([level["name"] for level in result["levels"]], ["unified buffer", "memory"])
        # The array reads a row of its buffer in every cycle, and a copy writes one as well.
        self.assertEqual(result["levels"][0]["copy"]["value"], 2 * 8 * 2 * 700e6)
        self.assertNotIn("efficiencies", result)

    def test_what_cannot_be_calibrated_says_why(self):
        self.expect_error(4, "calibrate", "--backend", "cuda-emulated", says=["stands in for a GPU", "published"])
        devices = {entry["backend"]: entry for entry in self.document("devices")["results"]}
        if not devices["cuda"]["available"]:
            self.expect_error(3, "calibrate", "--backend", "cuda", says=devices["cuda"]["reason"].split(";")[0])
        self.expect_error(2, "calibrate", "--ranks", "0", says=["0", "positive"])

    def test_device_files_are_checked(self):
        self.expect_error(2, "bench", *TINY, "--device", "h300", says=['"h300"', "rtx2070super", "triptych calibrate"])
        self.expect_error(2, "bench", *TINY, "--device", "./none.json", says="none.json")
        (self.folder / "bad.json").write_text('{"schema": 1, "name": "bad", "peaks": 3}')
        self.expect_error(2, "bench", *TINY, "--device", "bad.json", says=['"bad.json"', "description"])
        (self.folder / "later.json").write_text('{"schema": 2, "name": "later"}')
        self.expect_error(4, "bench", *TINY, "--device", "later.json", says=['"later.json"', "schema 2", "triptych calibrate"])
        self.expect_error(2, "bench", *TINY, "--device", "tpu-v1", says=["no peak of f32", "int8"])
        self.expect_error(2, "bench", *TINY, "--backend", "cuda-emulated", "--device", "h200", says="--device")


class PlanTest(ProgramTest):
    def test_every_published_machine_models_a_plan(self):
        for name, contract in (("i9-9900k", "f32"), ("rtx2070super", "f32"), ("a100", "bf16"), ("h100", "bf16"),
                               ("h200", "bf16"), ("tpu-v2", "bf16"), ("tpu-v4", "bf16"), ("tpu-v5e", "bf16")):
            row = self.document("bench", *TINY, "--repeats", "1", "--contract", contract, "--device", name)["results"][0]
            modelled = row["modelled"]
            self.assertEqual(modelled["device"], name)
            self.assertLess(0, modelled["bound"]["value"])
            self.assertLess(modelled["bound"]["value"], modelled["time"]["value"])

    def test_layers_have_their_roofline_beside_them(self):
        result = self.document("bench", "--model", "unet-s", "--repeats", "1", "--layers")["results"][0]
        peak = result["peak"]["value"]
        ran = [layer for layer in result["layers"] if layer["kernel"]]
        for layer in ran:
            self.assertEqual(layer["bound"]["kind"], "modelled")
            # The two peaks were measured one after the other, maybe beside another program.
            self.assertGreater(layer["bound"]["value"], 0.2 * layer["flops"] / peak)
        self.assertGreater(sum(layer["time"]["value"] for layer in ran), 0.1 * sum(layer["bound"]["value"] for layer in ran))
        self.assertRegex(self.succeed("bench", *TINY, "--repeats", "1", "--layers").stdout, r"roofline \(modelled\)")
        array = self.document("bench", *TINY, "--backend", "systolic", "--contract", "bf16", "--layers")["results"][0]
        self.assertNotIn("bound", array["layers"][0])


class StrategiesTest(ProgramTest):
    SMALL = ["--model", "unet-s", "--base", "4", "--depth", "2", "--size", "32"]

    def test_strategies_are_measured_beside_each_other(self):
        rows = self.document("bench", "strategies", *self.SMALL, "--steps", "2", "--epochs", "3")["results"]
        self.assertEqual([(row["strategy"], row["ranks"]) for row in rows],
                         [("single", 1), ("dp", 2), ("layers", 2), ("pipeline:2", 2), ("pipeline:4", 2)])
        single = rows[0]
        self.assertEqual(single["bytes_sent"], 0)
        for row in rows:
            self.assertEqual((row["median"]["kind"], row["samples"]), ("measured", 3))
            speedup = 100 * (single["median"]["value"] / row["median"]["value"] - 1)
            self.assertAlmostEqual(row["speedup_percent"]["value"], speedup, places=9)
            self.assertEqual(row["speedup_percent"]["over"], "measured")
            self.assertEqual(len(row["memory_bytes"]), row["ranks"])
        for row in rows[1:]:
            self.assertGreater(row["bytes_sent"], 0)
            self.assertLess(0, row["communication"]["value"])
            self.assertLess(row["communication"]["value"], row["max"]["value"])

    def test_a_calibration_predicts_them(self):
        if (os.cpu_count() or 1) < 2:
            self.skipTest("one processor has no link between ranks")
        self.succeed("calibrate", "--quick", "--out", "mine.json")
        rows = self.document("bench", "strategies", *self.SMALL, "--steps", "1", "--epochs", "1",
                             "--calibration", "mine.json")["results"]
        for row in rows:
            self.assertEqual(row["modelled"]["kind"], "modelled")
            self.assertGreater(row["modelled"]["value"], 0)
        self.expect_error(2, "bench", "strategies", *self.SMALL, "--calibration", "a100",
                          says=["a100", "triptych calibrate"])

    def survey_table(self, *options):
        rows = self.document("bench", "strategies", "--device", "rtx2070super", "--link", "pcie3x8", *options)["results"]
        return {(row["assumptions"], row["strategy"]): row for row in rows}

    @long_when_sanitized
    def test_the_fit_gives_the_surveys_table_and_the_plain_model_does_not(self):
        rows = self.survey_table()
        seconds = {key: row["modelled"]["value"] for key, row in rows.items()}
        self.assertAlmostEqual(seconds["fitted", "single"], 24.76, places=6)
        self.assertAlmostEqual(seconds["fitted", "dp"], 18.98, delta=0.2)
        self.assertAlmostEqual(seconds["fitted", "pipeline:2"], 23.7, delta=0.4)
        # The survey's +30.5 % and +4.5 % do not follow from data sheets.
        self.assertGreater(rows["plain", "dp"]["speedup_percent"]["value"], 80)
        self.assertLess(rows["plain", "layers"]["speedup_percent"]["value"], 0)
        self.assertGreater(rows["plain", "pipeline:2"]["speedup_percent"]["value"], 8)
        self.assertGreater(rows["plain", "pipeline:4"]["speedup_percent"]["value"],
                           rows["plain", "pipeline:2"]["speedup_percent"]["value"])
        self.assertLess(max(rows["plain", "layers"]["memory_bytes"]), rows["plain", "single"]["memory_bytes"][0],
                        "a stage has a part of the model")
        for (_, strategy), row in rows.items():
            if strategy in ("single", "dp"):
                self.assertEqual(row["survey"]["kind"], "recorded")
            self.assertNotIn("median", row)
            self.assertEqual(row["speedup_percent"]["over"], "modelled")

    def test_the_survey_had_two_ranks(self):
        small = ["--model", "unet-s", "--batch", "4", "--strategies", "dp", "--ranks", "2,4"]
        rows = self.document("bench", "strategies", "--device", "rtx2070super", "--link", "pcie3x8", *small)["results"]
        self.assertEqual({row["ranks"] for row in rows if "survey" in row}, {1, 2})

    @long_when_sanitized
    def test_what_is_assumed_are_knobs(self):
        small = ["--model", "unet-s", "--base", "24", "--batch", "8", "--strategies", "dp,pipeline:2"]
        plain = self.survey_table(*small)
        fixed = self.survey_table(*small, "--fixed-seconds", "13.2", "--micro-batch-efficiency", "0.94")
        for strategy in ("dp", "pipeline:2"):
            self.assertAlmostEqual(fixed["plain", strategy]["modelled"]["value"],
                                   plain["fitted", strategy]["modelled"]["value"], places=9)
        dp = plain["plain", "dp"]["modelled"]["value"]
        for knobs, worse in ((["--link-efficiency", "0.1"], True), (["--no-overlap"], True),
                             (["--link-latency", "0"], False), (["--efficiency", "0.1"], False)):
            changed = self.survey_table(*small, *knobs)["plain", "dp"]["modelled"]["value"]
            self.assertEqual(changed > dp, worse, knobs)
        epoch = self.survey_table(*small, "--epoch-seconds", "0", "--steps", "7")
        self.assertNotAlmostEqual(epoch["plain", "single"]["modelled"]["value"], 24.76, places=2)

    def test_the_fit_is_said_to_be_one(self):
        text = self.succeed("bench", "strategies", "--device", "rtx2070super", "--link", "pcie3x8", *self.SMALL,
                            "--batch", "4").stdout
        self.assertIn("a fit to the survey, no prediction", text)
        self.assertIn("--fixed-seconds", text)

    def test_wrong_options_are_refused(self):
        self.expect_error(2, "bench", "strategies", "--device", "rtx2070super", "--link", "wire", says=["wire", "pcie3x8"])
        self.expect_error(2, "bench", "strategies", "--device", "rtx2070super", "--calibration", "a.json",
                          says="--calibration: does not apply with --device")
        self.expect_error(2, "bench", "strategies", *self.SMALL, "--strategies", "dance", says="dance")
        for strategy in ("local-sgd:4", "ps-async", "local-sgd-async:4"):
            self.expect_error(2, "bench", "strategies", *self.SMALL, "--strategies", strategy,
                              says=[strategy, "outside their steps"])
        self.expect_error(2, "bench", "strategies", "--device", "rtx2070super", "--link", "pcie3x8", *self.SMALL,
                          "--batch", "4", "--fixed-seconds", "30", says="fixed part")


if __name__ == "__main__":
    main()
