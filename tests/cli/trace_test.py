"""`triptych trace`: timelines of any machine; programs, cycles and waveforms of the systolic array."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess

from support import PROGRAM, TINY, ProgramTest, main, wait_for

ARRAY = [*TINY, "--backend", "systolic", "--contract", "bf16", "--machine", "mmu4"]


def length(intervals):
    return sum(end - begin for begin, end in intervals)


class Timeline(ProgramTest):
    def events(self, *arguments):
        self.succeed("trace", *arguments, "--out", "trace.json")
        return json.loads((self.folder / "trace.json").read_text())["traceEvents"]

    def test_every_machine_writes_a_timeline_of_its_nodes(self):
        names = {e["name"] for e in self.events(*TINY, "--mode", "train") if e["ph"] == "X"}
        self.assertIn("down1.conv0", names)
        self.assertIn("loss", " ".join(names))

    def test_units_of_the_array_are_lanes_below_the_nodes(self):
        events = self.events(*ARRAY)
        threads = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
        self.assertEqual({name.split(" ")[0] for name in threads},
                         {"load", "weights", "compute", "store", "array", "stalls"})
        nodes = [e for e in events if e["ph"] == "X" and e["pid"] == 0 and e["tid"] == 0
                 and e["dur"] > 0]
        end = max(e["ts"] + e["dur"] for e in nodes)
        for event in events:
            if event["ph"] == "X" and event["pid"] == 0 and event["tid"] > 0:
                self.assertLessEqual(event["ts"] + event["dur"], end * (1 + 1e-9))


    def test_a_weight_tile_for_one_row_takes_what_lab_2_says(self):
        tiles = 256
        machine = json.loads(self.succeed("machine", "show", "mmu16").stdout)
        for slots, cycles in ((4, 22), (8, 17)):
            (self.folder / "machine.json").write_text(json.dumps({**machine, "weight_tiles": slots}))
            document = self.document("trace", "matmul", "--machine", "machine.json", "--m", "1", "--k", "256",
                                     "--n", "256")
            node = document["results"][0]["array"]["nodes"][0]
            self.assertEqual(round(node["cycles"] / tiles), cycles)


    def test_times_at_a_target_clock_are_labelled(self):
        for machine, target in (("mmu4", True), ("mmu16-45nm", False)):
            array = ["--backend", "systolic", "--contract", "bf16", "--machine", machine]
            traced = self.succeed("trace", *TINY, *array, "--json")
            benched = self.succeed("bench", "conv", "--shape", "1,4,8,8", "--repeats", "1", "--backends", "cpu,systolic",
                                   *array[2:])
            for result in (traced, benched):
                self.assertEqual(f"times of {machine} rest on a target clock" in result.stderr, target, result.stderr)
            self.assertEqual(json.loads(traced.stdout)["results"][0]["target_clock"], target)

    def test_ranks_compute_and_communicate_beside_one_another(self):
        def lanes(*extra):
            events = self.events(*TINY, "--mode", "train", "--batch", "4", "--threads", "1", "--ranks", "2",
                                 "--strategy", "pipeline:4", "--transport", "simulated", *extra)
            names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
            self.assertEqual(names, ["rank 0: cpu", "rank 1: cpu"])
            for rank in range(2):
                of_rank = [e for e in events if e["pid"] == rank]
                self.assertEqual([e["args"]["name"] for e in of_rank if e["name"] == "thread_name"],
                                 ["computation", "communication"])
                yield [[(e["ts"], e["ts"] + e["dur"]) for e in of_rank if e["ph"] == "X" and e["tid"] == tid]
                       for tid in range(2)]

        def beside(computation, communication):
            return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in computation for b in communication)

        for computation, communication in lanes():
            self.assertEqual(len(communication), 9)
            self.assertLess(beside(computation, communication), 1e-3, "a rank does one thing at a time")
        self.assertGreater(sum(beside(*both) for both in lanes("--overlap", "--link-bandwidth", "1e6")), 1)
        document = self.document("trace", *TINY, "--mode", "train", "--batch", "4", "--ranks", "2")
        for rank, result in enumerate(document["results"]):
            self.assertEqual(result["rank"], rank)
            self.assertLessEqual(result["exposed"]["value"], result["time"]["value"])
        self.expect_error(2, "trace", *TINY, "--ranks", "2", says="--mode train")
        self.expect_error(2, "trace", *TINY, "--mode", "train", "--ranks", "2", "--strategy", "ps-async",
                          says="another strategy")


class Cycles(ProgramTest):
    def test_every_cycle_is_an_issue_or_one_stall(self):
        array = self.document("trace", *ARRAY)["results"][0]["array"]
        begin = 0
        for node in array["nodes"]:
            self.assertEqual(node["begin"], begin)
            begin += node["cycles"]
            parts = [node["issue"], *node["stalls"].values()]
            self.assertEqual(sum(map(length, parts)), node["cycles"])
            together = sorted(interval for part in parts for interval in part)
            for one, next_one in zip(together, together[1:]):
                self.assertEqual(one[1], next_one[0])
            for busy in node["busy"].values():
                self.assertLessEqual(max(map(max, busy), default=0), node["cycles"])

    def test_a_program_stands_with_the_cycles_of_each_instruction(self):
        self.succeed("trace", *ARRAY, "--node", "down1.conv0", "--program", "p.txt")
        lines = (self.folder / "p.txt").read_text().splitlines()
        self.assertIn("# down1.conv0: ", lines[0])
        rows = [line.split() for line in lines if not line.startswith("#")]
        self.assertEqual(len(rows), int(lines[0].split()[2]))
        self.assertEqual(rows[-1][2:], ["dispatch", "halt"])
        self.assertEqual(rows[-1][0], lines[0].split()[4])
        for start, end, unit, mnemonic, *_ in rows:
            self.assertLessEqual(int(start), int(end))
            self.assertEqual(unit == "compute", mnemonic in ("matmul", "set_stream", "set_taps"))

    def test_one_node_is_traced_when_it_is_named(self):
        array = self.document("trace", *ARRAY, "--node", "head")["results"][0]["array"]
        self.assertEqual([node["node"] for node in array["nodes"]], ["head"])


class Operators(ProgramTest):
    """One product or one convolution; what its cells do."""

    def cells(self, *arguments):
        self.succeed("trace", *arguments, "--per-pe", "cells.json", "--program", "program.txt")
        return json.loads((self.folder / "cells.json").read_text())

    def check_chains(self, cells):
        """Every sum goes on a row below in the next cycle, and is what was multiplied and added."""
        at = {(s["cycle"], s["row"], s["column"]): s for s in cells["steps"]}
        self.assertEqual(len(at), len(cells["steps"]), "a cell does one thing in a cycle")
        for (cycle, row, column), step in at.items():
            self.assertAlmostEqual(step["sum_out"], step["sum_in"] + step["activation"] * step["weight"], 4)
            above = at.get((cycle - 1, row - 1, column))
            if row > 0:
                self.assertEqual((above["sum_out"], above["slot"]), (step["sum_in"], step["slot"]))
            left = at.get((cycle - 1, row, column - 1))
            if column > 0:
                self.assertEqual((left["activation"], left["slot"]), (step["activation"], step["slot"]))

    def matmul_starts(self):
        rows = [line.split() for line in (self.folder / "program.txt").read_text().splitlines() if line[0] != "#"]
        return {i: int(row[0]) for i, row in enumerate(rows) if row[3] == "matmul"}

    def test_every_cell_of_a_product_follows_the_manual(self):
        cells = self.cells("matmul", "--m", "5", "--k", "6", "--n", "7")
        self.assertEqual(len(cells["steps"]), 5 * 6 * 7)
        self.check_chains(cells)
        starts = self.matmul_starts()
        for step in cells["steps"]:
            self.assertEqual(step["cycle"],
                             starts[step["instruction"]] + step["slot"] + 3 + step["row"] + step["column"])
        self.assertEqual(max(s["cycle"] for s in cells["steps"]) < cells["cycles"], True)

    def test_convolutions_and_their_gradients_do_too(self):
        for of in ("forward", "data", "weights"):
            with self.subTest(of):
                self.check_chains(self.cells("conv", "--shape", "3,5,6,7", "--pass", of, "--machine", "mmu2"))

    def test_a_window_has_its_cycles_alone(self):
        whole = self.cells("matmul")
        begin = whole["steps"][0]["cycle"] + 2
        part = self.cells("matmul", "--cycles", f"{begin}..{begin + 4}")
        self.assertEqual(part["window"], [begin, begin + 4])
        self.assertEqual(part["steps"], [s for s in whole["steps"] if begin <= s["cycle"] < begin + 4])
        self.assertGreater(len(part["steps"]), 0)
        self.expect_error(2, "trace", "matmul", "--simulate", "rtl", "--per-pe", "x.json", says="--per-pe")

    def test_timelines_lose_nothing(self):
        self.succeed("trace", "conv", "--out", "trace.json", "--program", "program.txt")
        events = [e for e in json.loads((self.folder / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"]
        instructions = [line for line in (self.folder / "program.txt").read_text().splitlines()
                        if line[0] != "#" and "halt" not in line]
        names = {"load", "weight_load", "set_stream", "set_taps", "matmul", "set_output", "load_registers", "store"}
        self.assertEqual(len([e for e in events if e["name"] in names]), len(instructions))
        lanes = {}
        for event in sorted(events, key=lambda e: e["ts"]):
            self.assertEqual(event["ts"], int(event["ts"]))
            lane = event["pid"], event["tid"]
            self.assertGreaterEqual(event["ts"], lanes.get(lane, 0), "slices that overlap are dropped")
            lanes[lane] = event["ts"] + event["dur"]


class Waves(ProgramTest):
    def setUp(self):
        super().setUp()
        probe = self.run_program("trace", *ARRAY, "--simulate", "rtl", "--program", "rtl.txt")
        if probe.returncode == 3:
            self.skipTest("this build has no RTL of mmu4")
        self.assertEqual(probe.returncode, 0, probe.stderr)

    def test_waves_of_a_node_come_with_what_gtkwave_shows(self):
        self.succeed("trace", *ARRAY, "--simulate", "rtl", "--node", "head", "--waves", "w.fst")
        self.assertGreater((self.folder / "w.fst").stat().st_size, 1000)
        save = (self.folder / "w.gtkw").read_text()
        self.assertIn(str(pathlib.Path(self.folder, "w.fst").resolve()), save)
        for group in ("Machine", "Load", "Weights", "Compute", "Data path", "Store"):
            part = save.split(f"@800200\n-{group}\n")[1].split("@1000200")[0]
            self.assertIn("TOP.mmu_top.", part, group)
        self.assertIn("TOP.mmu_top.status_o[2:0]\n", save)
        self.assertIn("TOP.mmu_top.u_compute.start_o\n", save)
        words = self.folder.resolve() / "w.instructions.txt"
        self.assertIn(f"@2022\n^4 {words}\nTOP.mmu_top.instruction_i[255:0]\n", save)
        self.assertRegex(words.read_text(), r"(?m)^[0-9A-F]{64} matmul .*count=")
        self.assertRegex((self.folder / "w.elements.txt").read_text(), r"(?m)^[0-9A-F]{16}( -?[\d.e+-]+){4}$")

    def test_the_simulators_own_files_replace_none(self):
        theirs = self.folder / "w.fst.hier"  # the name of the simulator's temporary file
        theirs.write_text("of somebody else")
        self.succeed("trace", *ARRAY, "--simulate", "rtl", "--node", "head", "--waves", "w.fst")
        self.assertEqual(theirs.read_text(), "of somebody else")

    def test_a_killed_simulation_leaves_no_part_of_the_waves(self):
        temporary = self.folder / "tmp"
        temporary.mkdir()
        command = [PROGRAM, "trace", *ARRAY, "--simulate", "rtl", "--node", "head", "--waves", "w.fst"]
        environment = {**os.environ, "TMPDIR": str(temporary)}
        with subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL) as process:
            wait_for(lambda: any("w.fst" in names for _, _, names in os.walk(self.folder)))
            process.kill()
        self.succeed(*command[1:], env=environment)  # what a complete run left is its own
        self.assertEqual(list(temporary.iterdir()), [])

    def test_a_vcd_file_has_the_signals_of_the_fst_beside_it(self):
        self.succeed("trace", *ARRAY, "--simulate", "rtl", "--node", "head", "--waves", "w.vcd")
        vcd = (self.folder / "w.vcd").read_text()
        self.assertIn("$scope module mmu_top $end", vcd)
        self.assertRegex(vcd, r"\$var \w+ +64 \S+ counter_o \[63:0\] \$end")
        times = [int(line[1:]) for line in vcd.splitlines() if line.startswith("#")]
        self.assertEqual(times, sorted(times))
        self.assertGreater(len(times), 100)
        self.assertGreater((self.folder / "w.fst").stat().st_size, 1000)

    def test_waves_of_another_format_are_refused(self):
        self.expect_error(2, "trace", *ARRAY, "--simulate", "rtl", "--node", "head", "--waves", "w.txt",
                          says='--waves "w.txt": its name must end in .fst or .vcd')
        self.assertFalse((self.folder / "w.txt").exists())

    def test_a_window_is_smaller_than_the_whole(self):
        self.succeed("trace", *ARRAY, "--simulate", "rtl", "--node", "head", "--waves", "all.fst")
        self.succeed("trace", *ARRAY, "--simulate", "rtl", "--cycles", "10..20", "--waves", "w.fst")
        sizes = [(self.folder / name).stat().st_size for name in ("w.fst", "all.fst")]
        self.assertLess(sizes[0], sizes[1])

    def test_rtl_and_twin_take_the_same_cycles(self):
        self.succeed("trace", *ARRAY, "--program", "twin.txt")
        one, other = ((self.folder / name).read_text() for name in ("rtl.txt", "twin.txt"))
        self.assertEqual(one, other)

    def test_windows_outside_of_the_run_are_refused(self):
        rtl = [*ARRAY, "--simulate", "rtl", "--waves", "w.fst"]
        self.expect_error(2, "trace", *rtl, "--cycles", "0..99999999", says="cycles in the run")
        self.expect_error(2, "trace", *rtl, "--cycles", "0..99999999", "--node", "head",
                          says="cycles in head")
        self.expect_error(2, "trace", *rtl, "--cycles", "9..9", says="--cycles")
        self.expect_error(2, "trace", *rtl, says="--node")
        end = self.document("trace", *ARRAY)["results"][0]["array"]["nodes"][0]["cycles"]
        self.expect_error(2, "trace", *rtl, "--cycles", f"0..{end + 1}", says="more than one node")
        self.assertFalse((self.folder / "w.fst").exists())


class WrongUse(ProgramTest):
    def test_waves_need_the_rtl(self):
        self.expect_error(2, "trace", *ARRAY, "--waves", "w.fst", "--node", "head",
                          says="--simulate rtl")

    def test_names_that_are_wrong_are_answered_with_right_ones(self):
        self.expect_error(2, "trace", *ARRAY, "--node", "heda", says='did you mean "head"?')
        self.expect_error(2, "trace", *ARRAY, "--node", "nothing_like_it", says="down1.conv0")

    def test_what_only_an_array_has_is_refused_elsewhere(self):
        for option in ("--node", "--program", "--waves", "--cycles"):
            self.expect_error(2, "trace", *TINY, option, "x", says=[option, "--backend systolic"])

    def test_files_that_cannot_be_written_are_named_before_the_run(self):
        (self.folder / "file").write_text("")
        for option in ("--out", "--program"):
            self.expect_error(2, "trace", *ARRAY, option, "file/x", says="file")
            self.expect_error(2, "trace", *ARRAY, option, ".", says="folder")


if __name__ == "__main__":
    main()
