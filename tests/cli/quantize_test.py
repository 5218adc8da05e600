"""Weights in int8: `triptych quantize`, and what `run` and `train` say about them."""
# SPDX-License-Identifier: Apache-2.0
import shutil

from support import FEW, TINY, ProgramTest, digest, main, png_bytes


class Quantize(ProgramTest):
    def setUp(self):
        super().setUp()
        self.train(*FEW, "--steps", "2", "--out", "a")

    def write_image(self):
        (self.folder / "x.png").write_bytes(png_bytes(20, 17))
        return ["--input", "x.png"]

    def test_quantised_weights_run_in_int8_with_the_same_bits_at_any_thread_count(self):
        result = self.document("quantize", "a", "--out", "b")["results"][0]
        self.assertEqual([q["contract"] for q in result["qualities"]], ["f32", "int8"])
        self.assertEqual((result["calibration_images"], result["validation_images"]), (4, 1))
        self.assertLess(*(q["weight_bytes"] for q in reversed(result["qualities"])))
        image = self.write_image()
        masks = set()
        for threads in ("1", "3"):
            for contract in ([], ["--contract", "int8"]):
                self.succeed("run", "b", *image, "--out", "m", "--threads", threads,
                             *contract)
                masks.add(digest(self.folder / "m/x.png"))
        self.assertEqual(len(masks), 1)

    def test_the_systolic_array_of_int8_gives_the_masks_of_the_cpu(self):
        self.succeed("quantize", "a", "--out", "b")
        image = self.write_image()
        self.succeed("run", "b", *image, "--out", "cpu")
        systolic = ["run", "b", *image, "--backend", "systolic"]
        self.succeed(*systolic, "--machine", "mmu16-int8", "--out", "array")
        self.assertEqual(*(digest(self.folder / f / "x.png") for f in ("cpu", "array")))
        rtl = self.run_program(*systolic, "--machine", "mmu16-int8", "--simulate", "both", "--out",
                               "rtl")
        if "no RTL" not in rtl.stderr:
            self.assertEqual(rtl.returncode, 0, rtl.stderr)
            self.assertEqual(*(digest(self.folder / f / "x.png") for f in ("cpu", "rtl")))
        self.expect_error(4, *systolic, "--out", "m", says="add --machine mmu16-int8")
        self.expect_error(4, "run", "a", *image, "--backend", "systolic", "--machine",
                          "mmu16-int8", "--out", "m", says="triptych quantize")

    def test_the_same_run_and_images_give_the_same_weights(self):
        for folder in ("b", "c"):
            self.succeed("quantize", "a", "--out", folder, "--percentile", "99.9")
        files = [digest(next((self.folder / f / "checkpoint").glob("*.safetensors"))) for f in "bc"]
        self.assertEqual(*files)

    def test_other_images_can_calibrate(self):
        self.succeed("synthesize", "--out", "data", "--images", "5", "--size", "32", "--seed", "3")
        result = self.document("quantize", "a", "--out", "b", "--data", "data",
                               "--images", "2")["results"][0]
        self.assertEqual(result["calibration_images"], 2)
        self.expect_error(2, "quantize", "a", "--out", "c", "--data", "nowhere",
                          says='"nowhere" is not a folder')
        self.assertFalse((self.folder / "c").exists())

    def test_a_contract_that_does_not_fit_the_weights_says_what_to_type(self):
        image = self.write_image()
        self.expect_error(2, "run", "a", *image, "--out", "m", "--contract", "int8",
                          says="triptych quantize")
        self.succeed("quantize", "a", "--out", "b")
        self.expect_error(2, "run", "b", *image, "--out", "m", "--contract", "f32",
                          says="leave out --contract")
        self.expect_error(2, "train", "--resume", "b", "--steps", "3", says="inference alone")
        self.assertFalse((self.folder / "m").exists())

    def test_wrong_folders_and_numbers_are_refused(self):
        self.succeed("quantize", "a", "--out", "b")
        self.expect_error(2, "quantize", "b", "--out", "c", says="int8 already")
        self.expect_error(2, "quantize", "a", "--out", "b", says="holds a run already")
        self.expect_error(2, "quantize", "nowhere", "--out", "c", says="no checkpoint")
        self.expect_error(2, "quantize", "--out", "c", says="RUN is missing")
        for option, value in [("--images", "0"), ("--percentile", "101"), ("--percentile", "x"),
                              ("--threads", "-1")]:
            self.expect_error(2, "quantize", "a", "--out", "c", option, value,
                              says=option)
        self.assertFalse((self.folder / "c").exists())

    def test_a_damaged_checkpoint_is_refused(self):
        shutil.copytree(self.folder / "a", self.folder / "broken")
        for file in (self.folder / "broken/checkpoint").glob("*.safetensors"):
            file.write_bytes(file.read_bytes()[:-9])
        self.expect_error(2, "quantize", "broken", "--out", "c", says=file.name)

    def test_a_model_that_int8_cannot_compute_is_named(self):
        mlp = ["--model", "mlp", "--size", "16", "--base", "4", "--synthetic-images", "5"]
        self.train(*mlp, "--steps", "1", "--out", "mlp")
        self.expect_error(4, "quantize", "mlp", "--out", "c",
                          says=['node "hidden1" is Gemm'])

    def test_explain_shows_integers_between_the_quantised_image_and_the_logits(self):
        nodes = self.document("explain", *TINY, "--mode", "infer", "--contract", "int8")
        nodes = nodes["results"][0]["nodes"]
        self.assertTrue(nodes[0]["op"].startswith("QuantizeLinear"))
        self.assertTrue(nodes[-1]["op"].startswith("DequantizeLinear"))
        for node in nodes[:-2]:
            self.assertTrue(node["output"].startswith("i8["), node)
        self.assertTrue(nodes[-2]["output"].startswith("i32["))


if __name__ == "__main__":
    main()
