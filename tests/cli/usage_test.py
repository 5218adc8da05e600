"""Commands, options, exit codes and messages of the program, and the page that lists them."""
# SPDX-License-Identifier: Apache-2.0
import os
import pty
import re
import resource
import subprocess
import sys

from reference_tables import BLOCK, commands_of, pages, renewed
from support import COMMANDS, FEW, PROGRAM, SOURCE, TINY, ProgramTest, main

sys.path.insert(0, str(SOURCE / "tests/architecture"))

import plain_english  # noqa: E402


class Help(ProgramTest):
    def test_help_is_success_for_the_program_and_each_command(self):
        for command in [[], *([c] for c in COMMANDS), ["bench", "matmul"],
                        ["bench", "attention"], ["bench", "conv"], ["machine", "list"],
                        ["machine", "show"], ["machine", "build"], ["machine", "rtl"],
                        ["trace", "matmul"], ["trace", "conv"], ["mmu", "asm"], ["mmu", "run"], ["mmu", "test"],
                        ["kernel", "build"], ["kernel", "run"], ["kernel", "debug"], ["lab", "list"], ["lab", "start"],
                        ["lab", "predict"], ["lab", "check"]]:
            result = self.succeed(*command, "--help")
            self.assertIn("Usage: triptych", result.stdout)
            self.assertEqual(result.stderr, "")

    def test_the_program_alone_prints_its_help(self):
        self.assertEqual(self.succeed().stdout, self.succeed("--help").stdout)

    def test_the_version_is_one_line(self):
        self.assertRegex(self.succeed("--version").stdout, r"^triptych \d+\.\d+\.\d+ \(.+\)\n$")

    def test_documents_have_the_version_of_the_program(self):
        version = re.match(r"triptych (\d+\.\d+\.\d+) ", self.succeed("--version").stdout)[1]
        short = version.rpartition(".")[0]
        for path, pattern, wanted in [("CMakeLists.txt", r"project\(Triptych VERSION (\S+)", version),
                                      ("CHANGELOG.md", r"(?m)^## (\d\S+)", version),
                                      ("CITATION.cff", r"(?m)^version: (\S+)", version),
                                      ("SECURITY.md", r"newest release \((\S+)\)", short),
                                      ("docs/guides/use-as-a-library.md", r"find_package\(Triptych (\S+)", short)]:
            found = re.search(pattern, (SOURCE / path).read_text())
            self.assertEqual(found and found[1].rstrip(")"), wanted, path)

    def test_every_command_has_help_in_groups_two_examples_and_names_of_values(self):
        commands = commands_of(PROGRAM)
        self.assertGreater(len(commands), 50)
        for path, command in commands.items():
            with self.subTest(path):
                self.assertGreaterEqual(len(command["examples"]), 2)
                self.assertRegex(command["help"], r"^[A-Z].*[^.]$")
                for option in command["options"]:
                    self.assertNotIn(option["value"], ("TEXT", "UINT", "INT", "FLOAT"), option["name"])
                    self.assertRegex(option["help"], r"\w", option["name"])
                if path and path not in ("help", "version"):
                    self.assertIn("--json", [option["name"] for option in command["options"]]
                                  if not command["needs_command"] else ["--json"])

    def test_help_is_plain_english(self):
        helps = {option["help"] for command in self.document("help")["results"]
                 for option in [*command["options"], *command["arguments"], command]}
        score, worst = plain_english.measure([f"{text}." for text in helps])
        self.assertLessEqual(score, 2, worst)
        self.assertEqual([text for text in helps if re.match(r"(of|what|whether) ", text, re.I)], [])

    def test_help_and_version_have_several_forms(self):
        for path in ("", "train", "bench conv"):
            self.assertEqual(self.succeed("help", *path.split()).stdout, self.succeed(*path.split(), "--help").stdout)
        version = self.succeed("--version").stdout
        self.assertEqual({self.succeed("version").stdout, self.succeed("-V").stdout}, {version})
        self.assertIn(self.document("version")["results"][0]["commit"], version)

    def test_help_and_tables_fit_the_terminal(self):
        for columns in (60, 80, 120):
            environment = os.environ | {"COLUMNS": str(columns)}
            for command in ([], ["train"], ["run"], ["bench", "conv"], ["kernel", "run"]):
                text = self.succeed("help", *command, env=environment).stdout
                self.assertLessEqual(max(map(len, text.splitlines())), min(columns, 100), command)
        for columns in (80, 120):
            environment = os.environ | {"COLUMNS": str(columns)}
            for command in (["machine", "list"], ["explain", *TINY], ["explain", *TINY, "--mode", "train"],
                            ["devices"]):
                text = self.succeed(*command, env=environment).stdout
                wide = [line for line in text.splitlines() if len(line) > columns and "/" not in line]
                self.assertEqual(wide, [], command)

    def test_the_reference_has_a_page_per_command_that_is_that_of_the_help(self):
        texts = {page: page.read_text() for page in pages(SOURCE)}
        parts = [part for text in texts.values() for _, part, _ in BLOCK.findall(text)]
        wanted = [f"options of {path}" for path in commands_of(PROGRAM) if path]
        self.assertEqual(sorted(parts), sorted([*wanted, "commands", "common options"]))
        for page, text in texts.items():
            self.assertEqual(text, renewed(PROGRAM, text),
                             f"{page}: write it anew: tests/cli/reference_tables.py PROGRAM SOURCE_DIR")


class WrongUsage(ProgramTest):
    def test_unknown_commands_are_answered_with_the_known_ones(self):
        self.expect_error(2, "dance", says=['unknown command "dance"', *COMMANDS, "triptych --help"])
        self.expect_error(2, "trian", says='did you mean "train"?')

    def test_unknown_options_are_answered_with_the_nearest_one(self):
        self.expect_error(2, "train", "--bogus", says=["triptych train", 'unknown option "--bogus"'])
        self.expect_error(2, "train", "--step", "3", says='did you mean "--steps"?')
        self.expect_error(2, "train", "--thread=2", says='did you mean "--threads"?')
        self.expect_error(2, "train", *TINY, "extra", says='unexpected argument "extra"')
        self.expect_error(2, "bench", "matmul", "--sizs", "3", says="triptych bench matmul --help")

    def test_old_spellings_are_answered_with_the_present_ones(self):
        for words, present in [("run --weights r --input a --out b", "triptych run RUN"), ("run --weights=r", "triptych run RUN"),
                               ("evaluate --weights r", "triptych evaluate RUN"),
                               ("quantize --weights r --out b", "triptych quantize RUN"),
                               ("run a.onnx --input x.npy --output-dir o", "--out"),
                               ("export r --onnx a.onnx", "--out FILE.onnx"),
                               ("export r --safetensors a.safetensors", "--out FILE.safetensors"),
                               ("train --parallel zero1", "--strategy"), ("trace --parallel=dp", "--strategy"),
                               ("lab start 1 mine", "--out mine")]:
            with self.subTest(words):
                self.expect_error(2, *words.split(), says=f'did you mean "{present}"?')
        self.expect_error(2, "machine", "rtl", "my_rtl", "mmu_pe", says="--out is required")
        said = self.expect_error(2, "machine", "list", "--parallel", "dp").stderr
        self.assertNotIn("--strategy", said, "a command without that option")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_run_and_a_model_are_told_apart_by_what_is_there(self):
        (self.folder / "a").write_text("no model")
        self.expect_error(2, "run", "a", "--input", "a", "--out", "o", says="ONNX")
        self.expect_error(2, "run", "b.onnx", "--input", "a", "--out", "o", says='"b.onnx"')
        (self.folder / "r.onnx").mkdir()
        self.expect_error(2, "run", "r.onnx", "--input", "a", "--out", "o", says="checkpoint")

    def test_unknown_names_are_answered_with_the_known_ones(self):
        self.expect_error(2, "train", "--model", "vgg", says=['"vgg"', "unet-s, unet-m, unet-l, cnn, mlp"])
        self.expect_error(2, "train", "--backend", "abacus", says=['"abacus"', "cpu"])
        self.expect_error(2, "train", "--contract", "f8", says=['"f8"', "f32, bf16, bf16-exact or int8"])
        self.expect_error(2, "train", "--optimizer", "lion", says=['"lion"', "sgd, adam, adamw"])
        self.expect_error(2, "train", "--loss", "hinge", says=['"hinge"', "cross-entropy, dice"])
        self.expect_error(2, "train", "--augmentation", "some", says=['"some"', "must be none, all, strong"])
        self.expect_error(2, "train", "--drawing", "lots", says=['"lots"', "epochs, replacement"])
        self.expect_error(2, "explain", "--mode", "test", says=['"test"', "train, infer"])

    def test_numbers_out_of_range_are_refused_before_any_work(self):
        wrong = [("--lr", "nan"), ("--lr", "inf"), ("--lr", "-1"), ("--lr", "1e39"),
                 ("--lr", "fast"), ("--momentum", "nan"), ("--weight-decay", "-1"), ("--seed", "-1"),
                 ("--threads", "4000"), ("--threads", "-1"), ("--batch", "0"), ("--epochs", "0"),
                 ("--steps", "1.5"), ("--steps", "-1"), ("--validation", "1.5"), ("--base", "0"),
                 ("--depth", "0"), ("--in-channels", "9"), ("--classes", "1000"), ("--tile", "-8"),
                 ("--tile", "17"), ("--memory-limit", "18446744073709551615"),
                 ("--mask-pictures", "-1"), ("--synthetic-images", "1")]
        for option, value in wrong:
            with self.subTest(f"{option} {value}"):
                self.expect_error(2, "train", *FEW, option, value, says=option)
        self.expect_error(2, "train", "--depth", "3", "--size", "20", says="multiple of 8")
        self.expect_error(2, "train", *FEW, "--tile", "16", "--margin", "8", says="must be at most 7")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_missing_value_or_a_missing_option_is_named(self):
        self.expect_error(2, "train", "--model", says="--model")
        self.expect_error(2, "run", "x", "--out", "y", says="--input is required")
        self.expect_error(2, "synthesize", says="--out is required")

    def test_the_last_of_equal_options_counts(self):
        self.assertEqual(self.train(*FEW, "--steps", "1", "--seed", "1", "--seed", "9")["seed"], 9)

    def test_options_that_exclude_each_other_are_refused(self):
        self.expect_error(2, "train", *FEW, "--invert", says="--invert")
        self.expect_error(2, "train", *FEW, "--list", "x.csv", says="--list")
        self.expect_error(2, "train", *TINY, "--images", "x", says="--images and --masks go together")
        self.expect_error(2, "train", *TINY, "--masks", "x", says="--images and --masks go together")
        self.expect_error(2, "train", *FEW, "--previous", says="--previous: applies only with --resume")
        self.expect_error(2, "train", *FEW, "--classes", "3", says="synthetic images are grey and binary")

    def test_wrong_names_among_machines_cost_no_training(self):
        self.expect_error(2, "train", *FEW, "--backends", "cpu,cpu", "--out", "a", says="twice")
        self.expect_error(2, "train", *FEW, "--backends", "cpu,abacus", "--out", "a", says='"abacus"')
        self.assertFalse((self.folder / "a").exists())

    def test_bench_refuses_what_it_cannot_measure(self):
        self.expect_error(2, "bench", *TINY, "--batch", "1,x", says='"x"')
        self.expect_error(2, "bench", *TINY, "--threads", "4000", says="--threads")
        self.expect_error(2, "bench", "conv", "--shape", "1,2,3", says="--shape")
        self.expect_error(2, "bench", "conv", "--shape", "1,2,-3,4", says="-3")
        self.expect_error(2, "bench", "matmul", "--sizes", "100000000000", says=["--sizes", "is above"])


class NotHere(ProgramTest):
    def test_a_contract_that_no_kernel_computes_names_the_node_and_the_reason(self):
        self.expect_error(4, "explain", *TINY, "--contract", "int8",
                          says=['node "down1.conv0"', "cpu: kernel", "int8"])
        self.expect_error(4, "train", *FEW, "--contract", "int8", "--out", "a",
                          says=["train in f32", "triptych quantize"])
        self.assertFalse((self.folder / "a").exists())

    def test_too_little_memory_is_an_error_before_the_system_kills(self):
        self.expect_error(3, "train", "--model", "unet-s", "--synthetic-images", "2", "--batch", "65536",
                  "--size", "512", "--out", "a", says=["MiB are needed", "smaller batch"])
        self.assertFalse((self.folder / "a").exists())

    def test_more_threads_than_processors_work(self):
        self.assertEqual(self.train(*FEW, "--threads", "16", "--steps", "1")["threads"], 16)


class Output(ProgramTest):
    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            for flags in ([], ["--json"]):
                result = subprocess.run([PROGRAM, "devices", *flags], stdout=full, check=False,
                                        stderr=subprocess.PIPE, text=True)
                self.assertEqual(result.returncode, 2)
                self.assertIn("standard output", result.stderr)

    def test_a_graph_is_written_for_graphviz(self):
        self.succeed("explain", *TINY, "--dot", "graph.dot")
        self.assertIn("digraph", (self.folder / "graph.dot").read_text())
        self.expect_error(2, "explain", *TINY, "--dot", "graph.dot/x", says="graph.dot")

    def test_explain_says_what_memory_every_part_takes(self):
        text = self.succeed("explain", *TINY, "--mode", "infer", "--passes").stdout
        for part in ("arena", "states", "FLOP", "best kernel", "--- before"):
            self.assertIn(part, text)

    def test_generated_images_that_were_not_asked_for_are_the_first_thing_said(self):
        for command in (["train", *FEW, "--steps", "1"], ["compare", *FEW, "--epochs", "1", "--backends", "cpu"]):
            errors = self.succeed(*command, "--out", f"a{len(command)}.html").stderr
            self.assertRegex(errors, r"^no --data: training on 5 generated images")
            errors = self.succeed(*command, "--out", f"b{len(command)}.html", "--data", "synthetic").stderr
            self.assertNotIn("no --data", errors)

    def test_progress_is_plain_lines_where_there_is_no_terminal(self):
        result = self.succeed("train", *FEW, "--steps", "4", "--out", "a")
        self.assertNotIn("\r", result.stderr + result.stdout)
        self.assertIn("epoch   1  loss ", result.stderr)

    def test_progress_is_a_bar_on_a_terminal(self):
        try:
            terminal, end = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal to be had here: {error}")
        process = subprocess.Popen([PROGRAM, "train", *FEW, "--steps", "4", "--out", "a", "--color", "never"],
                                   cwd=self.folder, stdout=subprocess.DEVNULL, stderr=end,
                                   env=os.environ | {"TERM": "xterm"})
        os.close(end)
        text = b""
        while True:
            try:
                text += os.read(terminal, 4096)
            except OSError:  # the program has closed its end
                break
        os.close(terminal)
        self.assertEqual(process.wait(), 0)
        self.assertIn(b"\r", text)
        self.assertRegex(text, rb"\[[#.]{30}\] \d/4 epoch \d loss 0\.")
        self.assertIn(b"epoch   1  loss ", text)

    def test_doctor_trains_and_says_how_to_add_what_is_missing(self):
        text = self.succeed("doctor").stdout
        self.assertRegex(text, r"(?m)^ok +training self-test:")
        for finding in re.split(r"\n(?=\w)", text):
            if finding.startswith("missing"):
                self.assertRegex(finding, "to add it:.*(apt-get|install|build|driver|configure)", finding)

    def test_the_machines_fit_a_screen(self):
        for command, lines in (("devices", 24), ("doctor", 60)):
            text = self.succeed(command).stdout.splitlines()
            self.assertLessEqual(len(text), lines, command)
            self.assertLessEqual(max(len(line) for line in text if "/" not in line), 100, command)


class Stack(ProgramTest):
    """A small limit was a fault in the first thread. The dynamic linker itself needs up to 32 KiB."""

    @staticmethod
    def limit(soft, hard):
        return lambda: resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))

    def test_a_small_limit_is_raised(self):
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        self.succeed("train", *FEW, "--steps", "1", "--batch", "2", "--threads", "2", "--out", "run",
                     preexec_fn=self.limit(64 << 10, hard))

    def test_a_limit_that_cannot_be_raised_is_an_error(self):
        self.expect_error(4, "devices", says=("the limit of stacks is 64 KiB", "ulimit -s 8192"),
                          preexec_fn=self.limit(64 << 10, 64 << 10))


if __name__ == "__main__":
    main()
