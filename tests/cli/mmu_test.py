"""`triptych mmu`: programs by hand, what they give, and what is wrong with those that are refused."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import struct
import subprocess
import sys

from support import PROGRAM, SOURCE, ProgramTest, main

PAGE = SOURCE / "docs/hardware/program-the-array.md"


def blocks(page):
    """(text before it, language, content) of every fenced block."""
    return re.findall(r"((?:^(?!```)[^\n]*\n)*)^```(\w*)\n(.*?)^```$", page, re.M | re.S)


PRODUCT = next(content for before, _, content in blocks(PAGE.read_text()) if "`product.s`:" in before)


def npy(shape, values, code="f", kind="<f4"):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(
        f"<{len(values)}{code}", *values)


def numbers(path, code="f"):
    content = path.read_bytes()
    at = 10 + struct.unpack("<H", content[8:10])[0]
    return list(struct.unpack(f"<{(len(content) - at) // 4}{code}", content[at:]))


class MmuTest(ProgramTest):
    FILES = ["--dram", "x=x.npy", "--dram", "w=w.npy"]

    def setUp(self):
        super().setUp()
        self.write("product.s", PRODUCT)
        self.x = [float(i) for i in range(16)]
        self.w = [float((3 * i) % 7 - 3) for i in range(16)]
        (self.folder / "x.npy").write_bytes(npy((4, 4), self.x))
        (self.folder / "w.npy").write_bytes(npy((4, 4), self.w))

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def changed(self, before, after):
        self.assertIn(before, PRODUCT)
        self.write("changed.s", PRODUCT.replace(before, after))

    def refused(self, *says, code=2, options=()):
        return self.expect_error(code, "mmu", "run", "changed.s", *self.FILES, *options, says=says)


class HowTo(MmuTest):
    def test_the_page_is_followed_to_the_letter(self):
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("python3-numpy is missing")
        environment = {**os.environ, "PATH": f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"}
        python = printed = ""
        wrong = {"shown": 0}
        for before, language, content in blocks(PAGE.read_text()):
            if language == "python":
                python += content
                subprocess.run([sys.executable, "-c", python], cwd=self.folder, check=True)
            elif language == "sh":
                result = subprocess.run(content, shell=True, cwd=self.folder, env=environment, text=True,
                                        capture_output=True)
                if result.returncode == 3 and "both" in content:
                    continue  # this build has no RTL
                self.assertEqual(result.returncode, 0, result.stderr)
                printed = result.stdout
            elif named := re.search(r"`(\w+\.s)`:", before):
                self.write(named[1], content)
            elif "Without" in before:
                self.write("product.s", PRODUCT.replace("wait=load ", ""))
                result = self.run_program("mmu", "run", "product.s", "--machine", "mmu4", *self.FILES)
                self.assertEqual((result.returncode, result.stderr), (2, content))
                self.write("product.s", PRODUCT)
                wrong["shown"] += 1
            else:
                self.assertEqual(printed, content)
                wrong["shown"] += 1
        self.assertEqual(wrong["shown"], 2)


class Pictures(MmuTest):
    def test_those_of_the_explanation_are_what_its_commands_draw(self):
        page = (SOURCE / "docs/hardware/why-a-systolic-array.md").read_text()
        [commands] = [content for _, language, content in blocks(page) if language == "sh"]
        numbers_of = re.findall(r"numpy.array\((\[\[.*?\]\])", PAGE.read_text())
        (self.folder / "x.npy").write_bytes(npy((4, 4), [float(i) for i in range(1, 17)]))
        (self.folder / "w.npy").write_bytes(npy((4, 4), [float(v) for row in json.loads(numbers_of[0]) for v in row]))
        (self.folder / "docs").symlink_to(SOURCE / "docs")
        environment = {**os.environ, "PATH": f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"}
        subprocess.run(commands, shell=True, cwd=self.folder, env=environment, check=True, capture_output=True)
        for name in ("cells.svg", "activity.svg"):
            self.assertEqual((self.folder / name).read_text(), (SOURCE / "docs/pictures" / name).read_text())


class Run(MmuTest):
    def test_counters_times_and_results_are_those_of_the_machine(self):
        [result] = self.document("mmu", "run", "product.s", *self.FILES, "--out", "y.npy")["results"]
        y = [sum(self.x[4 * i + k] * self.w[4 * k + j] for k in range(4)) for i in range(4) for j in range(4)]
        self.assertEqual(numbers(self.folder / "y.npy"), y)
        counters = result["counters"]
        self.assertEqual((counters["macs"], counters["issue_cycles"]), (64, 4))
        self.assertEqual(counters["cycles"], result["cycles"])
        self.assertEqual(sum(value for name, value in counters.items() if name.startswith("stall_")) + 4,
                         result["cycles"])
        load, *_, halt = result["instructions"]
        self.assertEqual((load["unit"], load["line"], load["start"]), ("load", 7, 1))
        self.assertEqual((halt["unit"], halt["start"]), ("dispatch", result["cycles"]))
        self.assertEqual(result["busy"]["load"], [[load["start"], load["end"]]])
        self.assertEqual(result["outputs"],
                         [{"name": "y", "type": "f32", "shape": [4, 4], "file": "y.npy"}])

    def test_int8_goes_in_and_int32_comes_out(self):
        self.write("int8.s", """
            .input  x address=0  type=int8 shape=4x16
            .input  w address=64 type=int8 shape=16x4
            .output y address=128 type=int32 shape=4x4
            load signal=compute address=x pitch=16 buffer_pitch=1 units=1 lines=4 log2_group=4
            set_stream in_height=1 in_width=4 out_height=1 out_width=4 stride_x=1 step_x=1
            set_taps channels=16 kernel_width=1 log2_group=4
            weight_load address=w pitch=4 rows=16 columns=4
            matmul wait=load signal=store count=4 rows_left=1 columns_left=4
            set_output out_height=1 out_width=4 step_x=16
            store wait=compute address=y count=4 columns=4 rows_left=1 columns_left=4
            halt""")
        x = [(7 * i) % 100 - 50 for i in range(64)]
        w = [(11 * i) % 90 - 45 for i in range(64)]
        (self.folder / "x.npy").write_bytes(npy((4, 16), x, "b", "|i1"))
        (self.folder / "w.npy").write_bytes(npy((16, 4), w, "b", "|i1"))
        self.succeed("mmu", "run", "int8.s", "--machine", "mmu16-int8", *self.FILES, "--out", "y.npy")
        y = [sum(x[16 * i + k] * w[4 * k + j] for k in range(16)) for i in range(4) for j in range(4)]
        self.assertEqual(numbers(self.folder / "y.npy", "i"), y)

    def test_text_and_binary_are_one_program(self):
        self.succeed("mmu", "asm", "product.s", "--out", "a.hex")
        self.succeed("mmu", "disasm", "a.hex", "--out", "b.s")
        self.succeed("mmu", "asm", "b.s", "--out", "b.hex")
        one, other = ((self.folder / name).read_text() for name in ("a.hex", "b.hex"))
        self.assertEqual(one, other)
        self.assertEqual(len(one.splitlines()), 8)
        [asm] = self.document("mmu", "asm", "product.s")["results"]
        self.assertEqual([entry["hex"] for entry in asm["instructions"]],
                         [line.split()[0] for line in one.splitlines()])

    def test_the_mark_of_a_text_editor_is_no_part_of_a_program(self):
        program = self.folder / "marked.s"
        program.write_bytes(b"\xef\xbb\xbf" + (self.folder / "product.s").read_bytes())
        self.assertEqual(self.succeed("mmu", "asm", "marked.s").stdout, self.succeed("mmu", "asm", "product.s").stdout)

    def test_rtl_and_twin_agree(self):
        both = self.run_program("mmu", "run", "product.s", "--simulate", "both", *self.FILES, "--out", "y.npy")
        if both.returncode == 3:
            self.skipTest("this build has no RTL of mmu4")
        self.assertEqual(both.returncode, 0, both.stderr)
        twin = self.succeed("mmu", "run", "product.s", *self.FILES).stdout
        self.assertEqual(both.stdout.replace("(both)", "(twin)"), twin + "written: y.npy\n")

    def test_a_watchdog_says_on_what_each_unit_waits(self):
        result = self.run_program("mmu", "run", "product.s", "--simulate", "rtl", *self.FILES,
                                  "--max-cycles", "9")
        if result.returncode == 3:
            self.skipTest("this build has no RTL of mmu4")
        self.assertEqual(result.returncode, 5)
        for part in ("has not ended in cycle 9", "compute waits with instruction 4 (line 13: matmul wait=load",
                     "for a token of load, which has given it 0"):
            self.assertIn(part, result.stderr)

    def test_a_run_that_fails_leaves_its_waves(self):
        rtl = ["mmu", "run", "product.s", "--simulate", "rtl", *self.FILES, "--waves", "y.fst"]
        failed = self.run_program(*rtl, "--max-cycles", "9")
        if failed.returncode == 3:
            self.skipTest("this build has no RTL of mmu4")
        self.assertEqual(failed.returncode, 5, failed.stderr)
        short = (self.folder / "y.fst").stat().st_size
        self.succeed(*rtl)  # the files are the program's own
        self.assertGreater((self.folder / "y.fst").stat().st_size, short)


class Test(MmuTest):
    """Programs that hold their numbers and what is expected of them."""

    def setUp(self):
        super().setUp()
        y = [sum(self.x[4 * i + k] * self.w[4 * k + j] for k in range(4)) for i in range(4) for j in range(4)]
        self.lines = "".join(f"{begin} {' '.join(f'{value:g}' for value in values)}\n" for begin, values in (
            (".values x", self.x), (".values w", self.w), (".expect y", y))) + ".expect cycles 76\n"
        self.text = PRODUCT.replace("\n# x into", "\n" + self.lines + "# x into", 1)
        self.assertIn(".expect cycles 76", self.text)
        self.write("good.s", self.text)

    def said(self, text):
        self.write("bad.s", text)
        document = self.run_program("mmu", "test", "good.s", "bad.s", "--json")
        self.assertEqual(document.returncode, 1)
        good, bad = json.loads(document.stdout)["results"]
        self.assertEqual((good["passed"], good["said"], good["cycles"], good["variant"]), (True, None, 76, None))
        self.assertFalse(bad["passed"])
        return bad["said"]

    def test_what_comes_as_expected_passes(self):
        self.assertIn("passed", self.succeed("mmu", "test", "good.s").stdout)
        [run] = self.document("mmu", "run", "good.s")["results"]  # needs no files
        self.assertIsNone(run["unexpected"])

    def test_the_first_difference_is_said(self):
        bad = self.text.replace("cycles 76", "cycles 75")
        self.assertEqual(self.said(bad), "the counter cycles is expected to be 75, came 76")
        run = self.run_program("mmu", "run", "bad.s")
        self.assertEqual(run.returncode, 1)
        self.assertIn("not as the text expects: the counter cycles", run.stdout)
        values = self.lines.split(".expect y ")[1].split("\n")[0].split()
        values[6] = "0.5"
        line = f".expect y {' '.join(values)}\n"
        self.assertIn("y[1][2] is expected to be 0.5 (0x3F000000), came ",
                      self.said(re.sub(r"\.expect y .*\n", line, self.text)))
        values[6] = "_"
        line = f".expect y {' '.join(values)}\n"
        self.write("any.s", re.sub(r"\.expect y .*\n", line, self.text))
        self.succeed("mmu", "test", "any.s")

    def test_what_cannot_be_a_test_does_not_pass(self):
        self.assertIn("bad.s, line 6, column 11: 'one' is no value of bf16",
                      self.said(self.text.replace(".values x 0 ", ".values x one ")))
        self.assertIn("no line .values w ... says what it holds",
                      self.said(re.sub(r"\.values w .*\n", "", self.text)))
        self.assertIn("no line .expect y ... says what it should be",
                      self.said(re.sub(r"\.expect y .*\n", "", self.text)))
        self.assertIn("no token makes it wait for that", self.said(self.text.replace("wait=load ", "")))
        self.assertIn("nothing is expected", self.said("halt\n"))
        self.expect_error(2, "mmu", "test", "nowhere.s", says=["nowhere.s"])


class Wrong(MmuTest):
    """Each is refused before a cycle runs, in a message that names the place."""

    def test_a_word_that_is_none(self):
        self.changed("lines=4", "lins=4")
        self.refused("changed.s, line 7, column 69: load has no operand 'lins'; it has wait, signal, address")

    def test_what_is_no_text(self):
        (self.folder / "changed.s").write_bytes(b"halt\n\0\1load\n")
        self.refused("changed.s, line 2, column 1: no instruction '\\x00\\x01load'")
        self.write("changed.s", "")
        self.refused("changed.s has no input 'x'; it has none")

    def test_a_missing_token(self):
        self.changed("wait=load ", "")
        self.refused("changed.s, line 13: instruction 4 (matmul", "give wait=load to this one; the token is there",
                     "reads buffer row 0, which instruction 0 (line 7: load")

    def test_a_token_that_nobody_gives(self):
        self.changed("signal=compute ", "")
        self.refused("changed.s, line 13: instruction 4 (matmul", "waits for a token of load that no earlier instruction gives")

    def test_a_buffer_row_that_nobody_loads(self):
        self.changed("lines=4", "lines=3")
        self.refused("changed.s, line 13: ", "reads buffer row 3, which no load and no store has written")

    def test_sums_that_nobody_computes(self):
        self.changed("store       wait=compute address=y count=4", "store       wait=compute address=y count=5")
        self.refused("reads 4 columns of accumulator row 4, of which matmuls have written 0")

    def test_dram_that_no_input_holds(self):
        self.changed("w address=32 type=bf16 shape=4x4", "w address=32 type=bf16 shape=3x4")
        (self.folder / "w.npy").write_bytes(npy((3, 4), self.w[:12]))
        self.refused("changed.s, line 12: ", "reads DRAM byte 56, which no input holds and no store has written")

    def test_an_output_that_nobody_writes(self):
        self.changed("y address=64 type=f32  shape=4x4", "y address=64 type=f32  shape=5x4")
        self.refused("changed.s: no store writes y[4][0], which is DRAM byte 128")

    def test_an_array_of_another_shape(self):
        (self.folder / "x.npy").write_bytes(npy((2, 8), self.x))
        self.write("changed.s", PRODUCT)
        self.refused('"x.npy" is f32[2, 8]', "'x' of changed.s, line 2 takes f32[4, 4]")

    def test_an_array_of_another_type(self):
        (self.folder / "x.npy").write_bytes(npy((4, 4), [1] * 16, "b", "|i1"))
        self.write("changed.s", PRODUCT)
        self.refused('"x.npy" is i8[4, 4]', "takes f32[4, 4], whose values are rounded to bf16")

    def test_files_that_are_missing_or_too_many(self):
        self.expect_error(2, "mmu", "run", "product.s", "--dram", "x=x.npy",
                          says=["product.s, line 3: the input 'w' has no file", "--dram w=FILE.npy"])
        self.expect_error(2, "mmu", "run", "product.s", "--dram", "x.npy", says="2 inputs: x, w")
        self.expect_error(2, "mmu", "run", "product.s", *self.FILES, "--dram", "v=x.npy", says="no input 'v'")
        self.expect_error(2, "mmu", "run", "product.s", *self.FILES, "--dram", "x=w.npy", says="two files")
        self.expect_error(2, "mmu", "run", "nothing.s", says="nothing.s")

    def test_what_the_machine_has_not(self):
        self.changed("rows=4 columns=4", "rows=5 columns=4")
        self.refused("changed.s, line 12: instruction 3 (weight_load", "rows = 5: give 1 to 4")
        self.write("small.json", '{"name": "small", "rows": 4, "columns": 4, "dram_bytes": 4096}')
        self.changed("y address=64", "y address=4090")
        self.refused("'y' takes bytes 4090 to 4153, the DRAM of small has 4096", options=("--machine", "small.json"))

    def test_a_program_without_an_end(self):
        self.changed("halt\n", "")
        self.refused("a program ends with a halt")


if __name__ == "__main__":
    main()
