"""Classifiers and encoders from ONNX files: trained on folders of classes and on arrays, judged, used, handed back."""
# SPDX-License-Identifier: Apache-2.0
import csv
import random

from onnx_files import *
from support import *

CLASSES = ("bird", "cat", "dog")
SHORT = ["--batch", "4", "--threads", "1"]


def numbers(count, seed):
    noise = random.Random(seed)
    return [noise.uniform(-0.5, 0.5) for _ in range(count)]


def classifier():
    """A convolution, the mean over pixels and a product, for grey pictures of any size."""
    return model([node("Conv", ["image", "w"], ["c"]), node("Relu", ["c"], ["r"]),
                  node("GlobalAveragePool", ["r"], ["g"]), node("Flatten", ["g"], ["f"]),
                  node("MatMul", ["f", "head"], ["logits"])],
                 [value_info("image", ["batch", 1, "height", "width"])], [value_info("logits", ["batch", 3])],
                 [tensor("w", [16, 1, 3, 3], numbers(144, 1)), tensor("head", [16, 3], numbers(48, 2))])


def encoder(numbers_type=INT64, head=None):
    """A class of each of four tokens."""
    return model([node("Gather", ["words", "ids"], ["e"]), node("Mul", ["e", "mask"], ["m"]),
                  node("MatMul", ["m", "head"], ["logits"])],
                 [value_info("ids", ["batch", "length"], numbers_type), value_info("mask", ["batch", "length", 1])],
                 [value_info("logits", ["batch", "length", 3])],
                 [tensor("words", [9, 4], numbers(36, 3)), tensor("head", [4, 3], head or numbers(12, 4))])


class Rows(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "pictures.onnx").write_bytes(classifier())
        (self.folder / "tokens.onnx").write_bytes(encoder())
        for i in range(12):
            place = self.folder / "data" / CLASSES[i % 3]
            place.mkdir(parents=True, exist_ok=True)
            noise = random.Random(i)
            (place / f"{i}.png").write_bytes(png_bytes(
                12, 10, GREY, 8, lambda x, y, c: 80 * (i % 3) + noise.randrange(80)))
        save_npy(self.folder / "ids.npy", (12, 4), [i * 5 % 9 for i in range(48)], "<i8")
        save_npy(self.folder / "mask.npy", (12, 4, 1), [1.0] * 48)
        save_npy(self.folder / "wanted.npy", (12, 4), [-100 if i % 5 == 0 else i * 5 % 9 % 3 for i in range(48)], "<i8")
        self.pictures = ["--model", "pictures.onnx", "--data", "data", "--size", "8", *SHORT]
        self.tokens = ["--model", "tokens.onnx", "--input", "mask=mask.npy", "--input", "ids.npy", "--target",
                       "wanted.npy", *SHORT]

    def rows_of(self, name):
        return list(csv.DictReader((self.folder / name).read_text().splitlines()))

    def results_of(self, out, *options):
        return json.loads(self.succeed("train", *options, "--out", out, "--json").stdout)["results"]

    def test_a_classifier_is_trained_judged_used_and_handed_back(self):
        text = self.succeed("train", *self.pictures, "--epochs", "100", "--lr", "0.03", "--validation", "0.1",
                            "--out", "run")
        self.assertIn("accuracy", text.stdout)
        self.assertNotIn("Dice", text.stdout + text.stderr)
        self.assertIn("bird is class 0 (4 images), cat is class 1", text.stderr)
        text = self.succeed("evaluate", "run", "--data", "data", "--out", "judged").stdout
        self.assertIn("accuracy             1.0000", text)
        rows = self.rows_of("judged/examples.csv")
        self.assertEqual([row["predicted"] for row in rows], [name for name in CLASSES for _ in range(4)])
        self.assertEqual((self.folder / "judged/confusion.csv").read_text().splitlines()[:2],
                         ["truth,bird,cat,dog", "bird,4,0,0"])
        self.succeed("run", "run", "--input", "data/dog", "--out", "classes")
        rows = self.rows_of("classes/classes.csv")
        self.assertEqual({row["class"] for row in rows}, {"dog"})
        for option in ("--threshold", "--tile"):  # which are of masks
            self.expect_error(2, "run", "run", "--input", "data/dog", "--out", "masks", option, "1",
                              says=[option, "one class of an image"])
            self.expect_error(2, "evaluate", "run", "--data", "data", option, "1", says=option)
        self.succeed("export", "run", "--out", "out.onnx")
        self.assertIn("0 of them not supported", self.succeed(
            "import", "out.onnx", "--bind", "batch=1", "--bind", "height=8", "--bind", "width=8").stdout)
        self.assertTrue((self.folder / "run/report.html").exists())

    def test_runs_go_on_and_agree_between_machines_and_ranks(self):
        for name, data in (("pictures", self.pictures), ("tokens", self.tokens)):
            with self.subTest(name=name):
                exact = [*data, "--contract", "bf16-exact", "--order", "shard-tree", "--shards", "2"]
                machines = self.results_of(f"{name}-all", *exact, "--epochs", "2", "--backends",
                                           "cpu,cuda-emulated,systolic")
                ranks, = self.results_of(f"{name}-ranks", *exact, "--epochs", "2", "--ranks", "2")
                self.results_of(f"{name}-half", *exact, "--epochs", "1")
                self.succeed("train", "--resume", f"{name}-half", "--epochs", "2")
                half, = json.loads((self.folder / f"{name}-half/report.json").read_text())["results"]
                self.assertEqual(len({one["weights_sha256"] for one in [*machines, ranks, half]}), 1)
                self.assertEqual(half["losses"], machines[0]["losses"])
                self.assertEqual(half["epochs"][1]["accuracy"], machines[0]["epochs"][1]["accuracy"])

    def test_an_encoder_is_judged_on_other_arrays(self):
        self.results_of("run", *self.tokens, "--epochs", "30", "--lr", "0.1")
        text = self.succeed("evaluate", "run", "--input", "mask=mask.npy", "--input", "ids.npy",
                            "--target", "wanted.npy", "--json").stdout
        result, = json.loads(text)["results"]
        self.assertGreater(result["accuracy"], 0.9)
        self.assertEqual(result["examples"][0]["elements"], 3)
        self.succeed("export", "run", "--out", "out.onnx")
        self.succeed("run", "out.onnx", "--input", "ids.npy", "--input", "mask.npy", "--out", "out")
        self.expect_error(4, "run", "run", "--input", "data/dog", "--out", "masks", says="--input")
        self.expect_error(2, "evaluate", "run", "--data", "data", says="--target")

    def test_values_are_regressed(self):
        save_npy(self.folder / "values.npy", (12, 4, 3), numbers(144, 5))
        arrays = [*self.tokens[:-5], "values.npy", *SHORT]
        result, = self.results_of("run", *arrays, "--loss", "mean-squared-error", "--epochs", "5", "--lr", "0.05")
        self.assertLess(result["losses"][-1], result["losses"][0])
        self.assertIsNone(result["epochs"][-1]["accuracy"])
        self.assertIn("mean squared error", self.succeed("evaluate", "run").stdout)

    def test_what_does_not_fit_is_refused(self):
        self.expect_error(2, "train", "--model", "pictures.onnx", "--size", "8", says=["--data", "one folder of pictures"])
        self.expect_error(2, "train", *self.pictures, "--loss", "dice", says=["--loss", "cross-entropy"])
        self.expect_error(2, "train", *self.tokens[:-6], says="--target")
        self.expect_error(2, "train", *FEW, "--input", "ids.npy", "--target", "wanted.npy", says="--input")
        self.expect_error(2, "train", "--model", "tokens.onnx", "--input", "ids.npy", "--target", "wanted.npy",
                          says="mask")
        self.expect_error(4, "compare", *self.pictures, "--epochs", "1", "--out", "page", says="one row for each")
        (self.folder / "data/emu").mkdir()
        (self.folder / "data/emu/a.png").write_bytes(png_bytes(8, 8))
        self.expect_error(2, "train", *self.pictures, "--epochs", "1", says=["4 folders", "3 classes"])

    def test_options_of_images_mean_nothing_of_arrays(self):
        given = {"--augmentation": "strong", "--normalize": "image", "--labels": "0,1,2", "--tile": "1", "--margin": "0",
                 "--mask-pictures": "1", "--synthetic-images": "5", "--cache": "9", "--class-weights": "balanced",
                 "--border-weight": "2", "--list": "a.csv", "--mask-pattern": "{name}.png", "--data": "data",
                 "--images": "data", "--masks": "data", "--size": "8", "--in-channels": "1", "--base": "2",
                 "--depth": "1", "--classes": "3"}
        for command in ("train", "find-lr"):
            for option, value in given.items():
                if command == "find-lr" and option in ("--tile", "--margin", "--mask-pictures"):
                    continue  # which it has not
                self.expect_error(2, command, *self.tokens, option, value, says=["--input", option])
            self.expect_error(2, command, *self.tokens, "--invert", says=["--input", "--invert"])
        self.results_of("run", *self.tokens, "--epochs", "1")
        for option, value in {"--tta": "flips", "--tile": "16", "--margin": "4", "--threshold": "0.5", "--tolerance": "1",
                              "--regions": "0"}.items():
            self.expect_error(2, "evaluate", "run", option, value, says=[option, "one row of an example"])
        self.expect_error(2, "train", "--resume", "run", "--epochs", "2", "--mask-pictures", "1", says="--mask-pictures")
        self.succeed("train", "--resume", "run", "--epochs", "2")

    def test_an_exported_network_of_arrays_says_nothing_of_pixels(self):
        self.results_of("run", *self.tokens, "--epochs", "1")
        for pixels in ("uint8", "unit", "normalized"):
            self.expect_error(2, "export", "run", "--out", "out.onnx", "--pixels", pixels, says=["arrays", "--pixels"])
        result, = self.document("export", "run", "--out", "out.onnx")["results"]
        self.assertIsNone(result["pixels"])
        written = (self.folder / "out.onnx").read_bytes()
        self.assertIn(b"triptych.activation", written)
        for key in (b"triptych.pixels", b"triptych.normalization", b"triptych.size_multiple"):
            self.assertNotIn(key, written)

    def test_commands_on_images_alone_advise_no_arrays(self):
        for command in (["bench", "--mode", "train"], ["explain", "--mode", "train"], ["trace", "--mode", "train"],
                        ["compare", "--epochs", "1"], ["cross-validate", "--steps", "1"]):
            done = self.expect_error(4, *command, "--model", "tokens.onnx", says="this command")
            self.assertNotIn("--input", done.stderr)
        self.expect_error(4, "train", "--model", "tokens.onnx", says="--input")
        for command in ("compare", "cross-validate"):
            self.assertNotIn("--target", self.succeed(command, "--help").stdout)

    def test_weights_that_are_no_numbers_are_refused_before_the_first_step(self):
        head = [*numbers(5, 4), float("nan"), *numbers(6, 4)]
        (self.folder / "tokens.onnx").write_bytes(encoder(head=head))
        self.expect_error(2, "train", *self.tokens, "--epochs", "1", "--out", "run",
                          says=["head", "tokens.onnx", "NaN"])
        header = json.dumps({"words": {"dtype": "F32", "shape": [9, 4], "data_offsets": [0, 144]},
                             "head": {"dtype": "F32", "shape": [4, 3], "data_offsets": [144, 192]}}).encode()
        (self.folder / "w.safetensors").write_bytes(
            struct.pack("<Q", len(header)) + header + struct.pack("<48f", *numbers(36, 3), *head))
        (self.folder / "tokens.onnx").write_bytes(encoder())
        self.expect_error(2, "train", *self.tokens, "--epochs", "1", "--out", "run", "--init", "w.safetensors",
                          says=["head", "w.safetensors", "NaN"])
        self.assertFalse((self.folder / "run/checkpoint").exists())

    def test_arrays_that_would_be_learnt_wrongly_are_refused(self):
        def refuses(says, code=2, model=encoder(), **files):
            (self.folder / "tokens.onnx").write_bytes(model)
            for name, (shape, values, kind) in files.items():
                save_npy(self.folder / f"{name}.npy", shape, values, kind)
            self.expect_error(code, "train", *self.tokens, "--epochs", "1", "--out", "run", says=says)
            self.assertFalse((self.folder / "run/checkpoint").exists())
            self.setUp()

        shape, ids = (12, 4), [i * 5 % 9 for i in range(48)]
        refuses(["ids.npy", "row 1 has 9", "0 to 8"], ids=(shape, [*ids[:7], 9, *ids[8:]], "<i8"))
        refuses(["ids.npy", "row 0 has -10"], ids=(shape, [-10, *ids[1:]], "<i8"))
        refuses("counts as a class", wanted=(shape, [-100] * 48, "<i8"))
        refuses(["row 11", "class 3"], wanted=(shape, [0] * 47 + [3], "<i8"))
        refuses(["mask.npy", "not finite"], mask=((12, 4, 1), [float("nan")] * 48, "<f4"))
        refuses(["12 rows", "has 11"], wanted=((11, 4), [0] * 44, "<i8"))
        save_npy(self.folder / "ids.npy", shape, [-9] * 48, "<i8")  # from the end
        self.succeed("train", *self.tokens, "--epochs", "1", "--out", "last")
        (self.folder / "tokens.onnx").write_bytes(encoder(INT32))
        save_npy(self.folder / "ids.npy", shape, ids, "<i4")
        self.succeed("train", *self.tokens, "--epochs", "1", "--out", "narrow")
        refuses(["ids.npy", "row 1 has 9"], model=encoder(INT32), ids=(shape, [*ids[:7], 9, *ids[8:]], "<i4"))
        self.expect_error(2, "train", "--model", "tokens.onnx", "--input", "idz=ids.npy", "--input", "mask.npy",
                          "--target", "wanted.npy", says=["no input \"idz\"", "ids, mask"])

    def test_damaged_arrays_are_read_or_refused(self):
        noise = random.Random(7)
        for trial in range(60):
            name = noise.choice(["ids.npy", "mask.npy", "wanted.npy"])
            whole = (self.folder / name).read_bytes()
            damaged = bytearray(whole)
            for _ in range(noise.randrange(1, 4)):
                damaged[noise.randrange(noise.choice([len(whole), 128]))] = noise.randrange(256)
            (self.folder / name).write_bytes(damaged[:noise.choice([len(whole), noise.randrange(len(whole))])])
            done = self.run_program("train", *self.tokens, "--epochs", "1", "--out", f"run{trial}")
            self.assertIn(done.returncode, (0, 2, 4), f"trial {trial}: {name}\n{done.stderr}")
            self.assertFalse(set(done.stderr) & {chr(code) for code in range(32) if code != 10}, done.stderr)
            (self.folder / name).write_bytes(whole)

    def test_hostile_folders_of_classes_are_refused(self):
        def refuses(says, change):
            change(self.folder / "data")
            done = self.expect_error(2, "train", *self.pictures, "--epochs", "1", "--out", "run", says=says)
            self.assertNotIn("\x1b", done.stderr)
            self.setUp()

        refuses("not a regular file", lambda data: os.mkfifo(data / "cat/a.png"))
        refuses("not a regular file", lambda data: (data / "cat/a.png").symlink_to("/dev/zero"))
        refuses("cannot open", lambda data: (data / "cat/a.png").symlink_to("nowhere"))
        refuses("is empty", lambda data: (data / "cat/a.png").write_bytes(b""))
        refuses("4 folders", lambda data: (data / "loop").symlink_to(data))
        refuses(["104 folders", "c0, c1, c10, c100, ..."], lambda data: [(data / f"c{i}").mkdir() for i in range(101)])
        refuses(["not printable UTF-8", "do?[31mg?"], lambda data: (data / "dog").rename(data / "do\x1b[31mg\n"))
        refuses("not printable UTF-8", lambda data: (data / "dog").rename(data / "d\udcffg"))
        refuses("control characters", lambda data: (data / "cat/1.png").rename(data / "cat/\x1b[2J.png"))


if __name__ == "__main__":
    main()
