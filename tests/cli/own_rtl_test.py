"""Modules of one's own in the place of ours: right ones, and wrong ones, whose fault is named.

Every test builds a machine: long form.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shutil
import tempfile
import unittest

from mmu_test import PRODUCT, npy, numbers
from support import TINY, ProgramTest, main

# mmu2 takes the page's product in two tiles of two rows and two columns: here one of them.
SMALL = (PRODUCT.replace("4x4", "2x2").replace("w address=32", "w address=8").replace("y address=64", "y address=16")
         .replace("pitch=8", "pitch=4").replace("lines=4", "lines=2").replace("log2_group=2", "log2_group=1")
         .replace("width=4", "width=2").replace("channels=4", "channels=2").replace("rows=4", "rows=2")
         .replace("columns=4", "columns=2").replace("count=4", "count=2").replace("columns_left=4", "columns_left=2")
         .replace("step_x=16", "step_x=8"))


@unittest.skipUnless(all(map(shutil.which, ("verilator", "make", "g++"))), "verilator is missing")
class OwnRtl(ProgramTest):
    """Verilator's run time is compiled once for all."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cache = pathlib.Path(tempfile.mkdtemp(prefix="triptych-own-rtl-"))
        cls.addClassCleanup(shutil.rmtree, cls.cache)

    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.cache)}
        (self.folder / "product.s").write_text(SMALL)
        (self.folder / "x.npy").write_bytes(npy((2, 2), [1.0, 1.0078125, 3.0, 4.0]))
        (self.folder / "w.npy").write_bytes(npy((2, 2), [1.0, -1.0, 1.0078125, 0.5]))

    def run_program(self, *arguments, **options):
        return super().run_program(*arguments, **{"env": self.environment, **options})

    def build(self, module, *changes):
        """The machine mmu2 with that module, changed from each text into the next one."""
        shutil.rmtree(self.folder / "my_rtl", ignore_errors=True)
        self.succeed("machine", "rtl", module, "--out", "my_rtl")
        file = self.folder / f"my_rtl/{module}.sv"
        text = file.read_text()
        for before, after in changes:
            self.assertIn(before, text)
            text = text.replace(before, after)
        file.write_text(text)
        return self.succeed("machine", "build", "mmu2", "--rtl", "my_rtl", "--quick").stdout

    def product(self, simulate, plusargs=()):
        return self.run_program("mmu", "run", "product.s", "--machine", "mmu2+my_rtl", "--simulate", simulate,
                                "--dram", "x=x.npy", "--dram", "w=w.npy", "--out", "y.npy",
                                *(word for each in plusargs for word in ("--plusarg", each)))

    def blames(self, *says, simulate="both", plusargs=()):
        result = self.product(simulate, plusargs)
        self.assertEqual(result.returncode, 5, result.stdout + result.stderr)
        for part in says:
            self.assertIn(part, result.stderr)
        self.assertFalse((self.folder / "y.npy").exists())

    def builds(self):
        return len(list(self.cache.rglob("*.so")))

    def test_what_computes_the_same_is_equal_everywhere(self):
        others = self.builds()
        built = self.build("mmu_pe", ("act_q <= act_i;", "act_q <= ~(~act_i);"))
        for part in ("mmu2+my_rtl: 2 x 2 bf16, grid array", "modules of my_rtl: mmu_pe.sv",
                     "--machine mmu2+my_rtl --simulate rtl (or both)"):
            self.assertIn(part, built)
        self.assertEqual(self.product("both").returncode, 0)
        y = numbers(self.folder / "y.npy")
        self.assertEqual(y, [1 + 1.0078125 ** 2, -0.49609375, 7.03125, -1.0])
        shown = self.succeed("machine", "show", "mmu2+my_rtl").stderr
        self.assertIn("modules  mmu_pe.sv of my_rtl, in the place of ours", shown)
        self.assertIn("RTL      built\n", shown)
        array = ["--backend", "systolic", "--machine", "mmu2+my_rtl", "--simulate", "both"]
        trained = self.train(*TINY, "--synthetic-images", "4", "--steps", "1", "--contract", "bf16-exact", *array)
        cpu = self.train(*TINY, "--synthetic-images", "4", "--steps", "1", "--contract", "bf16-exact")
        self.assert_same_training(trained, cpu)
        self.succeed("bench", "matmul", "--sizes", "4", "--contract", "bf16", *array)
        self.assertEqual(self.builds(), others + 1)
        (self.folder / "my_rtl/mmu_pe.sv").write_text((self.folder / "my_rtl/mmu_pe.sv").read_text() + "// edited\n")
        self.expect_error(3, "mmu", "run", "product.s", "--machine", "mmu2+my_rtl", "--simulate", "rtl", "--dram",
                          "x=x.npy", "--dram", "w=w.npy", says=["not built as the modules in my_rtl are now",
                                                                '"triptych machine build mmu2+my_rtl"'])
        self.succeed("machine", "build", "mmu2+my_rtl", "--quick")
        self.assertEqual(self.builds(), others + 1, "the build before the edit is of no use")

    def test_a_confined_build_is_the_same_machine(self):
        self.build("mmu_pe", ("act_q <= act_i;", "act_q <= ~(~ ~(~act_i));"))
        library = self.document("machine", "build", "mmu2", "--rtl", "my_rtl", "--quick")["results"][0]["library"]
        pathlib.Path(library).unlink()
        built = self.document("machine", "build", "mmu2", "--rtl", "my_rtl", "--quick", "--confine")["results"][0]
        self.assertEqual((built["library"], built["made"]), (library, True))
        self.assertIn("system calls", [layer["layer"] for layer in built["confinement"]])
        self.assertEqual(self.product("both").returncode, 0)
        secret = self.folder / "secret.sv"
        secret.write_text("SECRET_OF_THE_LECTURER\n")
        file = self.folder / "my_rtl/mmu_pe.sv"
        file.write_text(f'`include "{secret}"\n' + file.read_text())
        for options, shown in ([], True), (["--confine"], False):
            result = self.run_program("machine", "build", "mmu2", "--rtl", "my_rtl", "--quick", *options)
            self.assertNotEqual(result.returncode, 0)
            self.assertEqual("SECRET_OF" in result.stderr, shown, result.stderr)

    def test_a_plusarg_chooses_a_variant(self):
        self.build("mmu_pe", ("  logic [31:0] psum_d;\n", "  logic [31:0] psum_d;\n  int lost;\n"
                              '  initial if ($value$plusargs("lost=%d", lost) == 0) lost = 0;\n'),
                   ("? sum : psum_i", "? ((lost == 1) ? 32'd0 : sum) : psum_i"))
        (self.folder / "product.s").write_text(
            SMALL.replace("\n# x into", "\n.values x 1 2 3 4\n.values w 1 0 0 1\n.expect y 1 2 3 4\n# x into", 1))
        rtl = ["product.s", "--machine", "mmu2+my_rtl", "--simulate", "rtl"]
        result = self.run_program("mmu", "test", *rtl, "--variant", "lost=0", "--variant", "lost=1", "--json")
        self.assertEqual(result.returncode, 1, result.stderr)
        right, wrong = json.loads(result.stdout)["results"]
        self.assertEqual((right["variant"], right["passed"]), ("lost=0", True))
        self.assertEqual((wrong["variant"], wrong["passed"]), ("lost=1", False))
        self.assertIn("y[0][0] is expected to be 1 (0x3F800000), came 0", wrong["said"])
        self.succeed("mmu", "run", *rtl)
        self.assertEqual(self.run_program("mmu", "run", *rtl, "--plusarg", "lost=1").returncode, 1)

    def test_a_cell_that_rounds_wrong(self):
        self.build("mmu_pe", ("? sum : psum_i", "? {sum[31:16], 16'd0} : psum_i"))
        self.blames("position 0, column 0 of instruction 6 (line 16: store", "expected 2.015686 (0x40010100) (twin), got 2.015625 (",
                    "first wrong is PE row 1, column 0, in cycle ", "at position 0 of instruction 4 (line 13: matmul")

    def test_a_skew_that_is_off_by_one(self):
        self.build("mmu_pe", ("assign act_o = act_q;", "always_ff @(posedge clk_i) if (enable_i) act_o <= act_q;"))
        self.blames("column 1 of instruction 6 (line 16: store", "first wrong is PE row 0, column 1, in cycle ")

    def test_a_bank_that_writes_a_row_early(self):
        self.build("mmu_accumulators_banks", (".write_row_i(row_q[(c+Fill+1)*RowBits+:RowBits])",
                                              ".write_row_i(row_q[(c+Fill)*RowBits+:RowBits])"))
        self.blames("position 0, column 0 of instruction 6 (line 16: store", "got 0 (0x00000000) (RTL)")

    def test_sources_that_are_wrong_are_named_by_line(self):
        """Verilator's words, with the place as the student knows it."""
        ends = ("  assign capture_o = capture_q;", "  assign capture_o = capture_q;")
        for what, change, says in (
                ("semicolon", ("act_q <= act_i;", "act_q <= act_i"), "syntax error, unexpected IDENTIFIER"),
                ("end", ("if (capture_i) shadow_q <= weight_i;\n    end", "if (capture_i) shadow_q <= weight_i;\n"),
                 "unexpected endmodule"),
                ("undeclared", ("psum_q <= psum_d;", "psum_q <= psum_next;"), "definition of variable: 'psum_next'"),
                ("port", ("output logic [31:0] psum_o\n", "output logic [31:0] sum_o\n"), "'sum_o'"),
                ("width", ("logic [31:0] psum_q;", "logic [15:0] psum_q;"), "expects 16 bits"),
                ("loop", ("? sum : psum_i;", "? sum : psum_d ^ psum_i;"), "Circular combinational logic"),
                ("latch", (ends[0], "  logic l;\n  always_comb if (enable_i) l = capture_q;\n  assign capture_o = l;"),
                 "Latch inferred for signal"),
                ("drivers", (ends[0], ends[0] + "\n  assign capture_o = swap_q;"), "multiple combinational drivers"),
                ("undriven", ("  assign act_o = act_q;\n", ""), "Signal is not driven: 'act_o'"),
                ("blocking", ("act_q <= act_i;", "act_q = act_i;"), "Blocking assignment"),
                ("module", (ends[0], ends[0] + "\n  my_adder u_add ();"), "module: 'my_adder'")):
            with self.subTest(what):
                shutil.rmtree(self.folder / "my_rtl", ignore_errors=True)
                self.succeed("machine", "rtl", "mmu_pe", "--out", "my_rtl")
                file = self.folder / "my_rtl/mmu_pe.sv"
                text = file.read_text()
                self.assertIn(change[0], text)
                file.write_text(text.replace(*change))
                result = self.run_program("machine", "build", "mmu2", "--rtl", "my_rtl", "--quick")
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertRegex(result.stderr, r"(my_rtl/mmu_pe|systolic/rtl/mmu_array_grid)\.sv:\d+:\d+")
                self.assertIn(says, result.stderr)

    def test_a_token_that_is_lost(self):
        self.build("mmu_tokens", ("give = give_i[4'(4*giver+taker)];",
                                  "give = give_i[4'(4*giver+taker)] && giver != 0;"))
        self.blames("no unit has moved for 65,536 cycles",
                    "compute waits with instruction 4 (line 13: matmul wait=load", "although load has given its token (instruction 0 (line 7: load",
                    simulate="rtl")

    def test_a_machine_that_never_ends(self):
        self.build("mmu_dispatch", ("else if (halt) status_q <= HALTED;", "else if (halt) status_q <= RUNS;"),
                   ("if (quiet_q[16]) status_q <= TIMEOUT;", ""))
        self.blames("its watchdog stops it", "every unit has ended its instructions")

    def test_an_assertion_that_fails(self):
        self.build("mmu_queue", ("assert (!(push_i && full_o))", "assert (!push_i)"))
        self.blames("cycle 0: mmu_queue.sv:", "Assertion failed in", "queue_is_not_overrun")

    def test_an_assertion_that_fails_after_the_halt(self):
        self.build("mmu_counters", ("endmodule", "  always_ff @(posedge clk_i) third : assert (index_i != 5'd3);\n"
                                                 "endmodule"))
        self.blames("after the halt of cycle ", ": mmu_counters.sv:", "Assertion failed in", ".third")

    def test_a_simulation_that_ends_itself(self):
        variants = "".join(f"      if ((which == {i}) && (act_i == 16'h4040)) {call};\n" for i, call in (
            (1, "$finish"), (2, "$stop"), (3, '$error("act %h", act_i)'), (4, '$display("act %h", act_i)')))
        self.build("mmu_pe", ("  logic [31:0] psum_d;\n", "  logic [31:0] psum_d;\n  int which;\n"
                              '  initial if ($value$plusargs("which=%d", which) == 0) which = 0;\n'),
                   ("act_q <= act_i;\n", "act_q <= act_i;\n" + variants))
        line = next(number for number, text in enumerate((self.folder / "my_rtl/mmu_pe.sv").read_text().splitlines(), 1)
                    if "$finish" in text)
        for which, says in ((1, f"mmu_pe.sv:{line}: $finish"), (2, f"mmu_pe.sv:{line + 1}: $stop"),
                            (3, "u_pe: act 4040; the RTL")):
            with self.subTest(says):
                self.blames("[mmu] cycle 54: mmu_pe.sv:", says, plusargs=[f"which={which}"])
        shown = self.product("rtl", ["which=4"])
        self.assertEqual((shown.returncode, shown.stderr.splitlines()[0]), (0, "act 4040"))

    def test_a_request_that_no_memory_has(self):
        self.build("mmu_reader", ("address_q <= address_i;", "address_q <= address_i + 32'hFFFF0000;"))
        self.blames("cycle 2: the unit load asks for 4 bytes from address 4294901760 on, of a DRAM of", simulate="rtl")


if __name__ == "__main__":
    main()
