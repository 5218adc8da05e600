"""Every option of `train` in a resumed run: stored, replaceable, free or refused, and the bits that follow.

The list of options comes from the program's help. An option without a row in POLICIES fails the test.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import struct

from onnx_files import INT64, model, node, save_npy, tensor, value_info
from support import FEW, RGB, SOURCE, TINY, ProgramTest, checkpoints, main, make_data

HOW = ["--batch", "2", "--steps-per-epoch", "3", "--seed", "3", "--lr", "0.01", "--keep", "loss", "--threads", "1"]
BASE = ["train", *FEW, *HOW]
FILES = ["train", *TINY, *HOW]  # of pictures in files

# Groups of stored options that fit together, with values that are not those of BASE.
LEARNING = {
    "--model": "unet-m", "--base": "3", "--depth": "2", "--size": "32", "--synthetic-images": "6",
    "--optimizer": "sgd", "--momentum": "0.5", "--weight-decay": "0.01", "--lr": "0.02", "--schedule": "cosine",
    "--schedule-steps": "9", "--warmup": "2", "--loss": "dice-cross-entropy", "--class-weights": "1,3",
    "--border-weight": "2", "--border-sigma": "3", "--augmentation": "all", "--drawing": "replacement",
    "--batch": "4", "--accumulate": "2", "--seed": "5", "--steps-per-epoch": "2", "--tile": "32", "--margin": "4",
    "--statistics-batches": "2", "--keep": "dice", "--validation": "0.5", "--contract": "bf16-exact"}
PICTURES = {
    "--mask-pattern": "{name}.png", "--train-split": "a", "--validation-split": "b", "--labels": "0,255",
    "--ignore-label": "7", "--class-names": "ground,cell", "--normalize": "image", "--classes": "2"}
COLOURS = {"--invert": None, "--in-channels": "3"}
FILE = {"--freeze": "words"}
KERNELS = {"--kernel": "gemm", "--choice": "measured", "--no-winograd": None}
STORED = {**LEARNING, **PICTURES, **COLOURS, **FILE, **KERNELS}

REFUSED = {"--out": "b", "--backends": "cpu,systolic", "--init": "other", "--init-names": "names.json", "--init-skip": "head*"}

# A new value is stored, and may change the bits of later steps.
OTHER_BITS = ["--backend", "--fallback", "--machine", "--ranks", "--transport", "--strategy", "--mesh", "--order",
              "--shards", "--replay"]
SAME_BITS = ["--data", "--images", "--masks", "--list", "--input", "--target", "--cache", "--epochs", "--steps",
             "--mask-pictures", "--patience", "--overwrite", "--resume", "--previous", "--checkpoint-every",
             "--memory-limit", "--simulate", "--threads", "--no-graph", "--interconnect", "--link-latency",
             "--link-bandwidth", "--overlap", "--comm-timeout", "--json", "--quiet", "--verbose", "--color", "--max-memory", "--plugin"]
POLICIES = {**dict.fromkeys(STORED, "stored"), **dict.fromkeys(REFUSED, "refused"),
            **dict.fromkeys(OTHER_BITS, "other bits"), **dict.fromkeys(SAME_BITS, "same bits")}


def words(options):
    return [word for name, value in options.items() for word in ([name] if value is None else [name, value])]


def tensors(path):
    """The bytes of each tensor of a safetensors file."""
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], content[8 + size + entry["data_offsets"][0]:
                                                          8 + size + entry["data_offsets"][1]])
            for name, entry in header.items()}


class ResumeTest(ProgramTest):
    def checkpoint(self, run):
        """All of the newest checkpoint but times: states, losses, scores, and the options that the run stores."""
        saved = checkpoints(self.folder / run)[0]
        content = tensors(self.folder / run / f"checkpoint/step-{saved['step']:09}.safetensors")
        epochs = json.loads(bytes(content.pop("run.epochs")[2]))
        content.pop("run.kernel_times", None)
        scores = [{key: value for key, value in epoch.items() if not re.search("time|seconds|per_second", key)}
                  for epoch in epochs]
        stored = saved["run"]
        stored.pop("open_epoch", None)  # times
        if stored["config"]["schedule"] == "constant":
            stored["config"].pop("schedule_steps")  # of a schedule that there is not
        return content, scores, stored

    def resumed(self, name, *options, anew=(), base=BASE):
        """Checks that a run of four steps is the same when it was stopped after two of them."""
        begin = [*base, *options]
        self.succeed(*begin, "--steps", "4", "--out", f"{name}-whole")
        self.succeed(*begin, "--steps", "2", "--out", name)
        self.succeed("train", "--resume", name, "--steps", "4", *anew)
        whole, rest = self.checkpoint(f"{name}-whole"), self.checkpoint(name)
        self.assertEqual(sorted(whole[0]), sorted(rest[0]))
        different = [tensor for tensor in whole[0] if whole[0][tensor] != rest[0][tensor]]
        self.assertEqual(different, [], name)
        self.assertEqual(whole[1], rest[1], name)
        return whole, rest

    def run_with_stored(self, name, options, *beside, base=BASE):
        whole, rest = self.resumed(name, *beside, *words(options), base=base)
        self.assertEqual(whole[2], rest[2], name)
        return whole


class Policies(ResumeTest):
    def test_each_option_of_train_has_a_policy_that_the_reference_names(self):
        options = self.document("help", "train")["results"][0]["options"]
        names = {option["name"] for option in options} - {"--help"}
        self.assertEqual(names, set(POLICIES))
        reference = (SOURCE / "docs/reference/commands/train.md").read_text()
        resume = reference[reference.index("## Resumed runs"):]
        lists = {title: set(re.findall("`(--[a-z-]+)`", part)) for title, part in
                 re.findall(r"(?s)\n- \*\*(.*?)\*\*(.*?)(?=\n- |\n\n)", resume)}
        self.assertEqual(lists["Same bits"], {n for n, p in POLICIES.items() if p == "same bits"})
        self.assertEqual(lists["Other bits"], {n for n, p in POLICIES.items() if p == "other bits"})
        self.assertEqual(lists["Refused"], {n for n, p in POLICIES.items() if p == "refused"})

    def test_other_values_of_stored_options_are_refused_by_name(self):
        self.succeed(*BASE, "--steps", "1", "--out", "a")
        before = {path: path.read_bytes() for path in (self.folder / "a").rglob("*") if path.is_file()}
        for name, value in {**STORED, **REFUSED}.items():
            with self.subTest(name):
                self.expect_error(2, "train", "--resume", "a", "--steps", "2", *words({name: value}),
                                  says=[f"{name} cannot change", "leave it out"])
        self.expect_error(2, "train", "--resume", "a", "--kernel", "nonsense", says="--kernel cannot change")
        self.assertEqual({path: path.read_bytes() for path in before}, before)
        self.succeed("train", "--resume", "a", "--steps", "2", "--contract", "f32", "--choice", "auto")


class StoredOptions(ResumeTest):
    def test_of_learning_are_restored(self):
        self.run_with_stored("learning", LEARNING)

    def test_of_pictures_are_restored(self):
        make_data(self.folder / "data", [(20, 20)] * 5, mask_depth=8)
        (self.folder / "list.csv").write_text("name,split\n" + "".join(f"{i:02},{'ab'[i > 2]}\n" for i in range(5)))
        self.run_with_stored("pictures", PICTURES, "--data", "data", "--list", "list.csv", base=FILES)

    def test_of_colours_are_restored(self):
        make_data(self.folder / "data", [(20, 20)] * 5, kind=RGB)
        self.run_with_stored("colours", COLOURS, "--data", "data", base=FILES)


class KernelOptions(ResumeTest):
    WIDE = ["--base", "8", "--size", "32"]

    def test_that_choose_kernels_are_restored(self):
        self.succeed(*BASE, *self.WIDE, "--steps", "4", "--out", "plain")
        plain = self.checkpoint("plain")[0]
        for name in ("--kernel", "--no-winograd"):
            with self.subTest(name):
                whole = self.run_with_stored(name.strip("-"), {name: KERNELS[name]}, *self.WIDE)
                self.assertNotEqual(whole[0], plain, "the option changes bits")
                again = words({name: KERNELS[name]})
                self.succeed("train", "--resume", name.strip("-"), "--steps", "5", *again)

    def test_a_name_that_no_kernel_has_is_refused_with_those_that_exist(self):
        self.succeed(*BASE, "--steps", "1", "--out", "a")
        for command in ([*BASE, "--out", "b"], ["explain", *TINY], ["trace", *TINY, "--out", "t"], ["find-lr", *FEW],
                        ["cross-validate", *FEW, "--out", "c"], ["run", "a", "--input", "a/masks", "--out", "m"],
                        ["evaluate", "a"]):
            with self.subTest(command[0]):
                self.expect_error(2, *command, "--kernel", "nonsense", says=['a kernel "nonsense"', "one of: ", "gemm"])

    def test_measured_choices_are_of_the_run_and_not_of_the_computer(self):
        def cache(folder):
            return {**os.environ, "XDG_CACHE_HOME": str(self.folder / folder)}

        def kernels(folder):
            return self.folder / folder / "triptych/kernels.json"
        measured = [*BASE, *self.WIDE, "--choice", "measured"]
        self.succeed(*measured, "--steps", "2", "--out", "part", env=cache("one"))
        self.succeed(*measured, "--steps", "4", "--out", "whole", env=cache("one"))
        # Another computer: other threads, and the slowest kernels are the fastest.
        text = json.loads(kernels("one").read_text())

        def turned(value):
            if isinstance(value, dict):
                return {key: turned(each) for key, each in value.items()}
            if isinstance(value, str) and value.startswith("{"):
                return json.dumps({key: 1 / each if isinstance(each, float) else each
                                   for key, each in json.loads(value).items()})
            return value
        kernels("two").parent.mkdir(parents=True)
        kernels("two").write_text(json.dumps(turned(text)))
        self.succeed(*measured, "--steps", "4", "--out", "other", env=cache("two"))
        self.assertNotEqual(self.checkpoint("whole")[0], self.checkpoint("other")[0], "the cache decides")
        self.succeed("train", "--resume", "part", "--steps", "4", "--threads", "2", env=cache("two"))
        self.assertEqual(self.checkpoint("whole")[0], self.checkpoint("part")[0])


class FreeOptions(ResumeTest):
    def test_of_length_memory_and_speech_keep_the_bits(self):
        _, rest = self.resumed("a", anew=[
            "--threads", "2", "--memory-limit", "1", "--cache", "1", "--mask-pictures", "0", "--checkpoint-every", "1",
            "--patience", "50", "--epochs", "9", "--comm-timeout", "9", "--overlap", "--quiet", "--color", "never",
            "--max-memory", "4000", "--overwrite", "--json", "--fallback", "cpu", "--backend", "cpu"])
        self.assertEqual((rest[2]["config"]["epochs"], rest[2]["config"]["data"]["cache_mib"]), (9, 1))
        self.succeed("train", "--resume", "a-whole", "--previous", "--verbose")
        self.assertEqual(self.checkpoint("a-whole")[0], self.checkpoint("a")[0])
        self.expect_error(2, "train", "--resume", "a", "--no-graph", says="graph")  # the CPU has none

    def test_of_files_name_their_new_places(self):
        make_data(self.folder / "data", [(20, 20)] * 5)
        (self.folder / "list.csv").write_text("name\n" + "".join(f"{i:02}\n" for i in range(5)))
        self.succeed(*FILES, "--data", "data", "--steps", "2", "--out", "one")
        self.succeed(*FILES, "--images", "data/images", "--masks", "data/masks", "--list", "list.csv", "--steps", "2",
                     "--out", "two")
        (self.folder / "data").rename(self.folder / "moved")
        (self.folder / "list.csv").rename(self.folder / "names.csv")
        self.succeed("train", "--resume", "one", "--steps", "4", "--data", "moved")
        self.succeed("train", "--resume", "two", "--steps", "4", "--images", "moved/images", "--masks", "moved/masks",
                     "--list", "names.csv")
        self.succeed(*FILES, "--data", "moved", "--steps", "4", "--out", "whole")
        for run in ("one", "two"):
            self.assertEqual(self.checkpoint("whole")[0], self.checkpoint(run)[0], run)

    def test_of_arrays_do_not_apply_to_a_run_on_pictures(self):
        self.succeed(*BASE, "--steps", "1", "--out", "a")
        self.expect_error(2, "train", "--resume", "a", "--input", "x.npy", says="--input and --target go together")
        self.expect_error(2, "train", "--resume", "a", "--input", "x.npy", "--target", "y.npy",
                          says="--input is for networks from ONNX files")

    def test_of_arrays_name_their_new_places_and_frozen_weights_stay(self):
        (self.folder / "net.onnx").write_bytes(model(
            [node("Gather", ["words", "ids"], ["e"]), node("MatMul", ["e", "head"], ["logits"])],
            [value_info("ids", ["batch", "length"], INT64)], [value_info("logits", ["batch", "length", 3])],
            [tensor("words", [9, 4], [i % 7 / 7 - 0.4 for i in range(36)]),
             tensor("head", [4, 3], [i % 5 / 5 - 0.4 for i in range(12)])]))
        for name in ("x.npy", "x2.npy"):
            save_npy(self.folder / name, (12, 4), [i * 5 % 9 for i in range(48)], "<i8")
        for name in ("y.npy", "y2.npy"):
            save_npy(self.folder / name, (12, 4), [i * 5 % 9 % 3 for i in range(48)], "<i8")
        self.resumed("arrays", "--input", "x.npy", "--target", "y.npy", *words(FILE), "--batch", "4", "--threads", "1",
                     base=["train", "--model", "net.onnx"], anew=["--input", "x2.npy", "--target", "y2.npy"])


class Machines(ResumeTest):
    EXACT = ["--contract", "bf16-exact", "--batch", "4"]

    def test_ranks_may_change_where_the_order_of_sums_does_not(self):
        shards = [*self.EXACT, "--order", "shard-tree", "--shards", "4"]
        _, rest = self.resumed("a", *shards, anew=["--ranks", "2", "--overlap", "--transport", "threads",
                                                   "--order", "shard-tree", "--shards", "4", "--strategy", "dp"])
        self.assertEqual(rest[2]["ranks"], 2)
        self.succeed(*BASE, "--batch", "4", "--steps", "2", "--out", "b")
        self.succeed("train", "--resume", "b", "--steps", "3", "--ranks", "4", "--strategy", "pipeline:2",
                     "--mesh", "dp=2,pp=2", "--order", "rank-ordered")
        stored = self.checkpoint("b")[2]
        self.assertEqual((stored["strategy"], stored["mesh"], stored["order"]), ("pipeline:2", "dp=2,pp=2", "rank-ordered"))

    def test_a_simulated_interconnect_changes_no_bit(self):
        simulated = ["--ranks", "2", "--transport", "simulated"]
        self.resumed("a", *simulated, anew=["--interconnect", "switch", "--link-latency", "1e-5",
                                            "--link-bandwidth", "1e9"])

    def test_the_array_continues_a_run_of_the_cpu_to_the_same_bits(self):
        self.resumed("a", *self.EXACT, "--base", "2", anew=["--backend", "systolic", "--machine", "mmu4",
                                                            "--simulate", "twin", "--fallback", "cpu"])

    def test_a_record_of_updates_is_replayed_in_both_parts(self):
        asynchronous = [*BASE, "--batch", "4", "--ranks", "3", "--strategy", "ps-async"]
        self.succeed(*asynchronous, "--steps", "4", "--checkpoint-every", "2", "--out", "whole")
        self.succeed(*asynchronous, "--steps", "2", "--replay", "whole", "--out", "part")
        self.succeed("train", "--resume", "part", "--steps", "4", "--replay", "whole")
        self.assertEqual(self.checkpoint("whole")[0]["run.losses"], self.checkpoint("part")[0]["run.losses"])


if __name__ == "__main__":
    main()
