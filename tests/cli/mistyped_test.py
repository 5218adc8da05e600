"""Messages about mistyped command lines: each names the problem, and what was probably meant.

Every row of LINES is a line, its exit code and parts of its message. No message may have words of the library that
parses the options, such as "1 required TEXT missing".
"""
# SPDX-License-Identifier: Apache-2.0
import json
import re
import shlex

from support import COMMANDS, FEW, TINY, ProgramTest, main

SMALL = " ".join(FEW)
MODEL = " ".join(TINY)
LINES = [
    # Commands: a transposition is one edit, and words of other programs are known.
    ("trian --model unet-s", 2, ['unknown command "trian"', 'did you mean "train"?']),
    ("tran --model unet-s", 2, ['unknown command "tran"', 'did you mean "train"?']),
    ("Train", 2, ['did you mean "train"?']),
    ("evalute --weights run", 2, ['did you mean "evaluate"?']),
    ("quantise --weights run", 2, ['did you mean "quantize"?']),
    ("predict --weights run", 2, ['did you mean "run"?']),
    ("benchmark", 2, ['did you mean "bench"?']),
    ("fit", 2, ['did you mean "train"?']),
    ("crossvalidate", 2, ['did you mean "cross-validate"?']),
    ("find_lr", 2, ['did you mean "find-lr"?']),
    ("compair", 2, ['did you mean "compare"?']),
    ("frobnicate", 2, ['unknown command "frobnicate"', *COMMANDS]),
    ("help trian", 2, ['there is no command "trian"', 'did you mean "train"?']),
    ("help bench con", 2, ['there is no command "con"', 'did you mean "conv"?']),
    # Commands of a command
    ("machine", 2, ["a command is missing", "use list, show, build or rtl"]),
    ("data", 2, ["a command is missing", "use describe"]),
    ("lab", 2, ["use list, start, predict or check"]),
    ("mmu", 2, ["use asm, disasm, run or test"]),
    ("kernel", 2, ["use build, run or debug"]),
    ("machine shwo mmu4", 2, ['unknown command "shwo"', 'did you mean "show"?']),
    ("lab begin 1", 2, ['unknown command "begin"', "use list, start, predict or check"]),
    ("mmu dissasm x", 2, ['did you mean "disasm"?']),
    ("data descibe mine", 2, ['did you mean "describe"?']),
    ("bench matmull", 2, ['did you mean "matmul"?']),
    ("bench atention --lengths 8", 2, ['unknown command "atention"', 'did you mean "attention"?']),
    ("page arry", 2, ['there is no folder "arry"', 'did you mean "array"?']),
    # Options
    ("bench --modle unet-s", 2, ['did you mean "--model"?']),
    ("train --learning-rate 0.1", 2, ['unknown option "--learning-rate"', 'did you mean "--lr"?']),
    ("train --batch-size 8", 2, ['did you mean "--batch"?']),
    ("train --device cpu", 2, ['did you mean "--backend"?']),
    ("train --gpu", 2, ['did you mean "--backend"?']),
    ("train --num_epochs 3", 2, ['did you mean "--epochs"?']),
    ("train --Epochs 3", 2, ['did you mean "--epochs"?']),
    ("train --eopchs 3", 2, ['did you mean "--epochs"?']),
    ("train --dataset mine", 2, ['did you mean "--data"?']),
    ("train --output runs/a", 2, ['did you mean "--out"?']),
    ("train --num-workers 4", 2, ['did you mean "--threads"?']),
    ("train --precision bf16", 2, ['did you mean "--contract"?']),
    ("train --force --out a", 2, ['did you mean "--overwrite"?']),
    ("train --no-color", 2, ['did you mean "--color"?']),
    ("train --pretrained a", 2, ['did you mean "--init"?']),
    ("train --val-split 0.1", 2, ['did you mean "--validation"?']),
    ("train --optimiser adam", 2, ['did you mean "--optimizer"?']),
    ("evaluate --checkpoint run", 2, ['did you mean "triptych evaluate RUN"?']),
    ("train --tiling pass=64", 2, ['unknown option "--tiling"', "it is an option of bench"]),
    ("train --frobnicate", 2, ['unknown option "--frobnicate"', "triptych train --help"]),
    ("--epochs 3 train", 2, ["--epochs belongs after the command: triptych train --epochs"]),
    # Missing values and arguments
    ("train --epochs", 2, ["--epochs needs a value N (1 to 1000000)"]),
    ("train --data", 2, ["--data needs a value DIR"]),
    ("train --epochs --lr 0.1", 2, ["--epochs needs a value N (1 to 1000000)"]),
    ("train --out --quiet", 2, ["--out needs a value DIR"]),
    ("train --data -v --steps 1", 2, ["--data needs a value DIR"]),
    ("bench --backend --model unet-s", 2, ["--backend needs a value BACKEND"]),
    ("train --schedule", 2, ["--schedule needs a value", "constant or cosine"]),
    ("bench conv --shape 64,64,128", 2, ["--shape needs 4 values with commas"]),
    ("mmu test", 2, ["PROGRAMS is missing"]),
    ("machine show", 2, ["MACHINE is missing"]),
    ("lab start", 2, ["NUMBER is missing: number of the lab"]),
    ("launch -n 2", 2, ["COMMAND is missing"]),
    ("launch train", 2, ["--ranks is required"]),
    ("synthesize", 2, ["--out is required"]),
    # Values
    ("lab start seven", 2, ['NUMBER: must be a number, got "seven"']),
    ("lab start 14", 2, ['there is no lab 14; there are: 0 1']),
    (f"train {SMALL} --backend gpu", 2, ['unknown backend "gpu"', 'did you mean "cuda"?']),
    (f"train {SMALL} --backend CPU", 2, ['did you mean "cpu"?']),
    (f"train {SMALL} --backend tpu", 2, ['did you mean "systolic"?']),
    ("train --model unet", 2, ['unknown model "unet"', 'did you mean "unet-s"?']),
    ("train --model unet_m", 2, ['did you mean "unet-m"?']),
    ("train --contract fp32", 2, ['did you mean "f32"?']),
    ("train --contract bfloat16", 2, ['did you mean "bf16"?']),
    (f"train {SMALL} --contract int8", 4, ["train in f32, then: triptych quantize"]),
    ("train --optimizer adma", 2, ["must be one of sgd, adam, adamw", 'did you mean "adam"?']),
    ("train --memory-limit 2XB", 2, ["--memory-limit: must be a whole number", '"2XB"', "2GiB"]),
    ("train --transport simulated --link-latency 1hour", 2, ["--link-latency: must be a number", "50us"]),
    ("train --epochs two", 2, ['--epochs: must be a whole number from 1 to 1000000, got "two"']),
    ("explain --model unet-s --mode trian", 2, ["must be one of train, infer", 'did you mean "train"?']),
    ("check --kernel foo", 2, ['has no kernel "foo"']),
    ("machine show mmu3", 2, ['there is neither a machine nor a file "mmu3"', "mmu4"]),
    (f"compare {MODEL} --backends cpu,gpu", 2, ['did you mean "cuda"?']),
    ("completion bsh", 2, ['SHELL: must be one of bash, zsh, fish', 'did you mean "bash"?']),
    (f"train {SMALL} --backend cpu,systolic", 2, ["--backend takes one backend", "--backends cpu,systolic"]),
    (f"train {SMALL} --backend all", 2, ["for several: --backends all"]),
    (f"train {SMALL} --backend cpu --backends cpu,systolic", 2, ["--backends: does not apply with --backend"]),
    ("import model.onnx --backend cpu", 2, ['unknown option "--backend"', 'did you mean "--backends"?']),
    ("train --parallel zero1", 2, ['did you mean "--strategy"?']),
]
LIBRARY = re.compile(r"required but received|\d required |Could not convert|A subcommand|[A-Z]+:[{A-Z0-9]|UINT|FLOAT")


class Mistyped(ProgramTest):
    def test_each_message_names_the_problem_and_the_remedy(self):
        self.assertGreaterEqual(len(LINES), 60)
        for line, code, parts in LINES:
            with self.subTest(line):
                errors = self.expect_error(code, *shlex.split(line), says=parts).stderr
                self.assertIsNone(LIBRARY.search(errors), errors)

    def test_a_list_of_names_has_each_once(self):
        errors = self.expect_error(2, "check", "--kernel", "foo").stderr
        names = re.search(r"it has (.*)", errors)[1].split(", ")
        self.assertEqual(names, sorted(set(names)))

    def test_a_failure_is_a_document_with_json(self):
        for words, code, command in ((["train", "--learning-rate", "1"], 2, "train"),
                                     (["bench", "conv", "--shape", "1,2"], 2, "bench conv"),
                                     (["frobnicate"], 2, ""),
                                     (["evaluate", "--weights", "none"], 2, "evaluate"),
                                     (["train", *FEW, "--contract", "int8"], 4, "train")):
            with self.subTest(words):
                result = self.run_program(*words, "--json")
                self.assertEqual(result.returncode, code, result.stderr)
                document = json.loads(result.stdout)
                self.assertEqual(document["command"], command)
                self.assertEqual(document["error"]["exit_code"], code)
                self.assertIn(document["error"]["message"].splitlines()[0], result.stderr)


class Accepted(ProgramTest):
    """Lines that were errors for no good reason."""

    def test_units_are_read(self):
        plain = self.train(*FEW, "--steps", "1", "--memory-limit", "1024", "--cache", "2048", "--out", "a")["config"]
        other = self.train(*FEW, "--steps", "1", "--memory-limit", "1GiB", "--cache", "2GiB", "--max-memory", "8GiB",
                           "--out", "b")["config"]
        self.assertEqual(plain, other)
        ranks = ["--ranks", "2", "--transport", "simulated", "--link-latency"]
        self.succeed("train", *FEW, "--steps", "1", *ranks, "1us", "--link-bandwidth", "10GB/s", "--comm-timeout", "1min")

    def test_spaces_in_lists_are_ignored(self):
        spaced = self.document("bench", "matmul", "--sizes", "8, 16", "--kernel", " gemm , naive", "--repeats", "1")
        close = self.document("bench", "matmul", "--sizes", "8,16", "--kernel", "gemm,naive", "--repeats", "1")
        self.assertEqual([row["name"] for row in spaced["results"]], [row["name"] for row in close["results"]])
        self.succeed("bench", "conv", "--shape", "1, 2, 8, 8", "--repeats", "1")

    def test_the_batch_may_be_larger_than_the_set_which_is_said(self):
        errors = self.succeed("train", *FEW, "--batch", "16", "--steps", "1", "--out", "a").stderr
        self.assertRegex(errors, r"NOTE: the batch of 16 is larger than the 4 images to train on")
        errors = self.succeed("train", *FEW, "--batch", "4", "--steps", "1", "--out", "b").stderr
        self.assertNotIn("is larger than", errors)

    def test_one_thing_is_not_named_in_the_plural(self):
        text = self.succeed("synthesize", "--out", "data", "--images", "1", "--size", "16").stdout
        self.assertIn("1 image and 1 mask written", text)
        errors = self.succeed("train", *FEW, "--steps", "1", "--out", "a", "--verbose").stderr
        self.assertIn("1 step of batch 4", errors)
        self.assertNotRegex(errors, r"(?<![\d.])1 (steps|images|epochs|nodes|channels)\b")


if __name__ == "__main__":
    main()
