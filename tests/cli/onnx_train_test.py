"""Networks from ONNX files where presets go: trained, resumed, spread over ranks, and out again."""
# SPDX-License-Identifier: Apache-2.0
from onnx_files import *
from support import *

RUN = ["--size", "16", "--synthetic-images", "5", "--batch", "2", "--threads", "1"]


class ImportedNetworks(ProgramTest):
    def setUp(self):
        super().setUp()
        self.succeed("train", *FEW, "--epochs", "1", "--threads", "1", "--out", "first")
        self.succeed("export", "first", "--out", "net.onnx", "--pixels", "normalized")

    def results_of(self, out, *options):
        """The results of a training of net.onnx."""
        text = self.succeed("train", "--model", "net.onnx", *RUN, "--out", out, *options, "--json").stdout
        return json.loads(text)["results"]

    def test_a_run_is_resumed_used_and_exported_without_its_file(self):
        whole, = self.results_of("whole", "--epochs", "2")
        self.results_of("half", "--epochs", "1")
        (self.folder / "net.onnx").unlink()
        self.succeed("train", "--resume", "half", "--epochs", "2")
        half = json.loads((self.folder / "half/report.json").read_text())["results"][0]
        self.assertEqual(half["weights_sha256"], whole["weights_sha256"])
        self.assertEqual(half["losses"], whole["losses"])
        make_data(self.folder / "pictures", [(16, 16), (20, 18)])
        self.succeed("run", "half", "--input", "pictures/images", "--out", "masks")
        self.succeed("evaluate", "half", "--data", "pictures")
        self.succeed("quantize", "half", "--out", "int8")
        self.succeed("run", "int8", "--input", "pictures/images", "--out", "masks8")
        self.succeed("export", "half", "--out", "again.onnx")
        self.assertIn("0 of them not supported", self.succeed("import", "again.onnx", "--bind", "batch=1", "--bind",
                                                              "height=16", "--bind", "width=16").stdout)
        self.expect_error(4, "export", "int8", "--out", "x.onnx", says="int8")
        self.expect_error(4, "export", "half", "--out", "x.onnx", "--opset", "13", says=["17", "--opset"])

    def test_machines_agree_to_the_bit(self):
        results = self.results_of("three", "--steps", "2", "--contract", "bf16-exact", "--backends",
                                  "cpu,cuda-emulated,systolic")
        self.assertEqual(len({result["weights_sha256"] for result in results}), 1)
        self.assertEqual(len(results), 3)

    def test_any_strategy_spreads_it(self):
        tree = ["--steps", "2", "--order", "shard-tree", "--shards", "2"]
        one, = self.results_of("one", *tree)
        two, = self.results_of("two", *tree, "--ranks", "2")
        self.assertEqual(one["weights_sha256"], two["weights_sha256"])
        for strategy in ("zero3", "tp", "pipeline:2", "layers", "ps-sync", "local-sgd:2"):
            with self.subTest(strategy=strategy):
                result, = self.results_of(strategy.replace(":", ""), "--steps", "2", "--ranks", "2", "--strategy",
                                          strategy)
                self.assertEqual(len(result["losses"]), 2)

    def test_it_goes_where_presets_go(self):
        model = ["--model", "net.onnx", "--size", "16"]
        for command in (["bench", "--mode", "train", "--repeats", "1"], ["bench", "--repeats", "1", "--layers"],
                        ["explain"], ["explain", "--mode", "infer"], ["trace"],
                        ["trace", "--mode", "train", "--ranks", "2", "--batch", "2"]):
            with self.subTest(command=command):
                self.succeed(*command, *model)
        self.succeed("compare", *model, "--synthetic-images", "5", "--epochs", "1", "--backends", "cpu,systolic",
                     "--out", "page")

    def test_any_file_is_planned_for_inference(self):
        save_relu(self.folder)
        for command in (["explain", "--mode", "infer"], ["bench", "--repeats", "1"], ["trace", "--mode", "infer"]):
            self.succeed(*command, "--model", "model.onnx")
        explain = ["explain", "--mode", "infer", "--model", "model.onnx"]
        self.assertIn("[8, 3]", self.succeed(*explain, "--bind", "batch=8").stdout)
        self.assertIn("[4, 3]", self.succeed(*explain, "--batch", "4").stdout)
        self.expect_error(2, "explain", "--model", "net.onnx", "--bind", "batch=8", says="--bind")
        self.expect_error(4, "explain", "--model", "model.onnx", says="no parameter")

    def test_what_does_not_apply_is_refused(self):
        self.expect_error(2, "train", "--model", "net.onnx", "--base", "4", says=["--base", "leave it out"])
        self.expect_error(2, "train", "--model", "net.onnx", "--freeze", "nothing*", says=["--freeze", "nothing"])
        self.expect_error(2, "train", *FEW, "--freeze", "head*", says="--freeze")
        self.expect_error(2, "train", "--model", "missing.onnx", says="missing.onnx")
        self.succeed("export", "first", "--out", "bytes.onnx")
        self.expect_error(4, "train", "--model", "bytes.onnx", says="u8")
        (self.folder / "mine.onnx").write_text("mine")
        self.expect_error(2, "export", "first", "--out", "mine.onnx", says="mine.onnx")

    def test_frozen_weights_are_not_trained(self):
        self.results_of("frozen", "--steps", "1", "--freeze", "down*,bottom*")
        self.succeed("train", "--resume", "frozen", "--steps", "2")


if __name__ == "__main__":
    main()
