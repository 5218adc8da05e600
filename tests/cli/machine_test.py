"""`triptych machine`: lists, shows and builds systolic machines; what is built has the CPU's bits."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from support import FEW, PROGRAM, SOURCE, TINY, ProgramTest, digest, main, wait_for

RAGGED = {"name": "ragged", "rows": 5, "columns": 6, "clock_mhz": 500, "buffer_rows": 2048,
          "accumulator_rows": 512, "weight_tiles": 3, "queue_depth": 5, "vector_lanes": 8,
          "dram_bytes": 1 << 26, "dram": {"bytes_per_cycle": 6.5, "latency": 23, "row_miss": 3}}
HAS_TOOLS = all(map(shutil.which, ("verilator", "make", "g++")))
SYSTOLIC = ["--backend", "systolic", "--machine", "ragged.json"]


def make_sparse(path):
    path.touch()
    os.truncate(path, 1 << 40)


class MachineTest(ProgramTest):
    """Every test has a cache of its own."""

    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        self.write("ragged.json", RAGGED)

    def write(self, name, machine):
        (self.folder / name).write_text(json.dumps(machine))

    def run_program(self, *arguments, **options):
        return super().run_program(*arguments, **{"env": self.environment, **options})

    def state(self, *files):
        return {machine["source"]: machine["rtl"]
                for machine in self.document("machine", "list", *files)["results"]}


class ListAndShow(MachineTest):
    def test_the_list_has_the_shipped_machines_and_those_asked_for(self):
        table = self.succeed("machine", "list", "ragged.json").stdout
        for words in (["mmu16", "16 x 16", "bf16", "700 MHz (target)", "256.0 KiB", "358.4 Gop/s"],
                      ["mmu16-45nm", "16 x 16", "500 MHz (closes in nangate45_typ)"],
                      ["mmu16-int8", "int8"], ["ragged.json", "5 x 6", "3.2 GB/s", "23 cycles"]):
            line = next(line for line in table.splitlines() if line.startswith(words[0] + " "))
            for word in words:
                self.assertIn(word, line)
        self.assertEqual(self.state("ragged.json")["ragged.json"], "not built")
        peak = self.document("machine", "list")["results"][0]["peak"]
        self.assertEqual(peak, {"value": 2 * 2 * 2 * 700e6, "unit": "op/s", "kind": "modelled"})

    def test_what_show_prints_is_a_machine_file_with_every_key(self):
        shown = self.succeed("machine", "show", "ragged.json")
        machine = json.loads(shown.stdout)
        self.assertEqual(machine["dram"]["row_bytes"], 2048)
        for key, value in RAGGED.items():
            if key != "dram":
                self.assertEqual(machine[key], value)
        for word in ("5 rows x 6 columns", "30.0 Gop/s (modelled)", "23 cycles (46 ns)",
                     "a sum takes 1 cycle through one", "no source is given; a target",
                     "triptych machine build ragged.json"):
            self.assertIn(word, shown.stderr)
        (self.folder / "again.json").write_text(shown.stdout)
        self.assertEqual(self.succeed("machine", "show", "again.json").stdout, shown.stdout)

    def test_the_area_is_that_of_the_units(self):
        area = {unit["unit"]: unit for unit in self.document("machine", "show", "ragged.json")["results"][0]["area"]}
        rows, columns = RAGGED["rows"], RAGGED["columns"]
        self.assertEqual([area[unit]["number"] for unit in ("PE", "address lane", "output column", "control")],
                         [rows * columns, rows, columns, 1])
        shown = json.loads(self.succeed("machine", "show", "ragged.json").stdout)
        self.assertEqual(area["accumulators"]["ram_bits"], shown["accumulator_rows"] * columns * 32)
        self.assertIn("flip-flops and", self.succeed("machine", "show", "ragged.json").stderr)

    def test_a_vector_unit_is_shown_where_there_is_one(self):
        words = "rows of 4 numbers of 4 B, a lane for each column"
        self.assertIn(words, self.succeed("machine", "show", "mmu4-vector").stderr)
        self.assertNotIn("numbers of 4 B", self.succeed("machine", "show", "mmu4").stderr)

    def test_a_preset_is_shown_with_its_figures(self):
        shown = json.loads(self.succeed("machine", "show", "tpu-v2-core").stdout)
        self.assertEqual(shown["dram"]["preset"], "hbm300")
        self.assertEqual(shown["dram"]["latency"], 84)


class WrongUse(MachineTest):
    def test_files_that_are_no_machines_are_refused(self):
        (self.folder / "text.json").write_text("rows = 4")
        self.expect_error(2, "machine", "build", "text.json", says=["text.json", "no JSON"])
        wrong = [("buffer_rows", 3, "power of two"), ("columns", 1, "2 to 256"), ("pe", "fp8", "bf16, int8"),
                 ("lanes", 4, "unknown key 'lanes'"), ("array", "dense", "fast, grid")]
        for key, value, says in wrong:
            self.write("wrong.json", {**RAGGED, key: value})
            for command in ("list", "show", "build"):
                self.expect_error(2, "machine", command, "wrong.json", says=["wrong.json", key, says])
        self.expect_error(2, "machine", "build", "mmu3", says=["mmu3", "mmu2, mmu4"])
        self.expect_error(2, "machine", "build", "ragged.json", "--array", "x", says="fast, grid")

    def test_special_files_are_refused(self):
        (self.folder / "my_rtl").mkdir()
        for name, machine in (("pe.json", "./pe.json"), ("my_rtl/mmu_pe.sv", "mmu2+my_rtl")):
            path = self.folder / name
            for make, says in ((os.mkfifo, "not a regular file"),
                               (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
                               (make_sparse, "the limit is")):
                make(path)
                result = self.run_program("machine", "show", machine)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(f'{name}": ', result.stderr)
                self.assertIn(says, result.stderr)
                path.unlink()

    def test_a_command_is_needed(self):
        self.expect_error(2, "machine", says="triptych machine --help")
        self.expect_error(2, "machine", "build", says="machine")

    def test_rtl_that_is_not_built_is_an_error_that_names_the_command(self):
        for simulate in ("rtl", "both"):
            self.expect_error(3, "explain", *TINY, *SYSTOLIC, "--contract", "bf16", "--simulate",
                              simulate, says='"triptych machine build ragged.json"')
        self.assertFalse((self.folder / "cache").exists())

    def test_missing_tools_are_named_with_what_adds_them(self):
        self.environment["PATH"] = str(self.folder)
        result = self.run_program("machine", "build", "ragged.json")
        self.assertEqual(result.returncode, 3)
        for word in ("verilator, make, clang++", "apt-get install verilator"):
            self.assertIn(word, result.stderr)

    @unittest.skipUnless(HAS_TOOLS, "verilator is missing")
    def test_a_cache_that_cannot_be_written_is_named_before_any_work(self):
        self.environment["XDG_CACHE_HOME"] = str(self.folder / "ragged.json")
        result = self.run_program("machine", "build", "ragged.json")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("ragged.json/triptych/machines", result.stderr)
        self.assertIn("set XDG_CACHE_HOME", result.stderr)
        self.assertNotIn("verilate", result.stdout)

    @unittest.skipUnless(HAS_TOOLS, "verilator is missing")
    def test_a_tool_that_fails_shows_its_error_and_keeps_its_log(self):
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "verilator").write_text("#!/bin/sh\necho '%Error: no such cell'\necho more\nexit 7\n")
        (tools / "verilator").chmod(0o755)
        self.environment["PATH"] = f"{tools}:{self.environment['PATH']}"
        result = self.run_program("machine", "build", "ragged.json")
        self.assertEqual(result.returncode, 3)
        for word in ("exit status 7", "%Error: no such cell", "apt-get install"):
            self.assertIn(word, result.stderr)
        self.assertIn("failed\n", result.stdout)
        log = result.stderr.split("the whole log: ")[1].split("\n")[0]
        self.assertIn("more", pathlib.Path(log).read_text())
        self.assertEqual([entry.suffix for entry in pathlib.Path(log).parent.iterdir()], [".log"])

        [command, *_] = pathlib.Path(log).read_text().splitlines()
        for parameter in ("-GRows=5", "-GColumns=6", "-GWeightTiles=3", "-GArrayKind=0"):
            self.assertIn(parameter, command.split())
        grid = self.run_program("machine", "build", "ragged.json", "--array", "grid")
        other = grid.stderr.split("the whole log: ")[1].split("\n")[0]
        self.assertIn("-GArrayKind=1", pathlib.Path(other).read_text())
        self.assertIn("5x6-bf16-grid-", other)

    @unittest.skipUnless(HAS_TOOLS, "verilator is missing")
    def test_a_later_build_removes_the_file_of_a_killed_one(self):
        tools, started = self.folder / "tools", self.folder / "started"
        tools.mkdir()
        (tools / "verilator").write_text(f"""#!/bin/sh
[ "$1" = --version ] && exec echo Verilator 9.999
[ -e {started} ] && exit 7
: > {started}
exec sleep 600
""")
        (tools / "verilator").chmod(0o755)
        self.environment["PATH"] = f"{tools}:{self.environment['PATH']}"
        build = subprocess.Popen([PROGRAM, "machine", "build", "ragged.json"], cwd=self.folder, env=self.environment,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(build.wait)
        self.addCleanup(os.killpg, build.pid, signal.SIGKILL)  # a zombie until wait()
        wait_for(started.exists)
        cache = self.folder / "cache" / "triptych" / "machines"
        [running] = cache.glob("*.tmp")
        later = ("machine", "build", "ragged.json", "--array", "grid")
        self.assertIn("exit status 7", self.run_program(*later).stderr)
        self.assertEqual(list(cache.glob("*.tmp")), [running])  # its build holds it
        os.killpg(build.pid, signal.SIGKILL)
        os.waitid(os.P_PID, build.pid, os.WEXITED | os.WNOWAIT)
        (cache / "notes.tmp").symlink_to(self.folder / "ragged.json")
        self.assertIn("exit status 7", self.run_program(*later).stderr)
        self.assertEqual([path.name for path in cache.glob("*.tmp")], ["notes.tmp"])


class OwnModules(MachineTest):
    """Folders of modules that take the place of ours; own_rtl_test.py builds and runs them."""

    def module(self, *changes, name="mmu_pe"):
        if not (self.folder / f"my_rtl/{name}.sv").exists():
            self.succeed("machine", "rtl", name, "--out", "my_rtl")
        file = self.folder / f"my_rtl/{name}.sv"
        text = file.read_text()
        for before, after in changes:
            self.assertIn(before, text)
            text = text.replace(before, after)
        file.write_text(text)

    def refused(self, *says):
        result = self.run_program("machine", "build", "mmu4", "--rtl", "my_rtl", "--quick")
        self.assertEqual(result.returncode, 2, result.stderr)
        for part in says:
            self.assertIn(part, result.stderr)

    def test_copies_of_ours_are_written_once(self):
        self.module()
        self.assertEqual((self.folder / "my_rtl/mmu_pe.sv").read_text(),
                         (SOURCE / "systolic/rtl/mmu_pe.sv").read_text())
        self.module(("act_q <= act_i;", "act_q <= act_i; "))
        self.expect_error(2, "machine", "rtl", "mmu_pe", "--out", "my_rtl", says=["my_rtl/mmu_pe.sv", "changed"])
        self.expect_error(2, "machine", "rtl", "mmu_p", "--out", "my_rtl", says=["no module 'mmu_p.sv'", "mmu_pe.sv"])

    def test_a_machine_with_modules_is_another_one(self):
        self.module()
        [shown] = self.document("machine", "show", "mmu4+my_rtl")["results"]
        self.assertEqual((shown["name"], shown["rtl"], shown["modules"]),
                         ("mmu4+my_rtl", "not built", "mmu_pe.sv"))
        self.write("mine.json", {**RAGGED, "rtl": "my_rtl"})
        self.assertIn("modules  mmu_pe.sv of my_rtl", self.succeed("machine", "show", "mine.json").stderr)
        self.expect_error(3, "bench", "matmul", "--sizes", "4", "--backend", "systolic", "--contract", "bf16",
                          "--machine", "mmu4+my_rtl", says=["the twin knows nothing of the modules in my_rtl",
                                                            "--simulate rtl"])

    def test_files_that_are_none_of_ours_are_named(self):
        self.module()
        (self.folder / "my_rtl/mmu_cell.sv").write_text("module mmu_cell; endmodule")
        self.refused('"my_rtl/mmu_cell.sv": no module of the machine is called so', "mmu_pe.sv")
        (self.folder / "my_rtl/mmu_cell.sv").unlink()
        self.module(("module mmu_pe", "module my_pe"))
        self.refused('"my_rtl/mmu_pe.sv" declares my_pe, not mmu_pe')
        shutil.rmtree(self.folder / "my_rtl")
        self.refused('"my_rtl" is no folder')

    @unittest.skipUnless(HAS_TOOLS, "verilator is missing")
    def test_what_verilator_refuses_is_shown_where_its_user_knows_it(self):
        self.module(("act_q <= act_i;", "act_q <= act_j;"))
        lines = (self.folder / "my_rtl/mmu_pe.sv").read_text().splitlines()
        number = next(i for i, line in enumerate(lines, 1) if "act_j" in line)
        self.refused(f"my_rtl/mmu_pe.sv:{number}:16: Can't find definition of variable: 'act_j'",
                     f"{number} |       act_q <= act_j;")
        self.module(("act_j", "act_i"), ("enable_i", "enable_in"))
        self.refused("systolic/rtl/mmu_array_grid.sv:", "missing pin: 'enable_in'",
                     "the modules of my_rtl are mmu_pe.sv; a module keeps its name and its ports")


@unittest.skipUnless(HAS_TOOLS, "verilator is missing")
class Built(MachineTest):
    """One build serves all: each test works on a copy of its cache."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="triptych-machines-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.first = None

    def setUp(self):
        super().setUp()
        if Built.first is None:
            cache = {**self.environment, "XDG_CACHE_HOME": str(self.shared)}
            Built.first = self.succeed("machine", "build", "ragged.json", env=cache).stdout
        shutil.copytree(self.shared, self.folder / "cache")
        [self.library] = (self.folder / "cache/triptych/machines").glob("*.so")

    def test_a_build_prints_its_steps_and_what_to_type_next(self):
        for word in ("verilate", "compile", "link", "(measured)", ".so\n", "--machine ragged.json"):
            self.assertIn(word, self.first)

    def test_what_is_built_is_not_built_again(self):
        self.assertEqual(self.state("ragged.json")["ragged.json"], "built")
        before = digest(self.library), self.library.stat().st_mtime_ns
        [result] = self.document("machine", "build", "ragged.json")["results"]
        self.assertEqual((result["made"], result["rtl"]), (False, "built"))
        self.assertEqual((digest(self.library), self.library.stat().st_mtime_ns), before)

    def test_a_file_that_asks_for_another_array_is_told_how_to_use_the_one_built(self):
        self.write("grid.json", {**RAGGED, "array": "grid"})
        built = self.succeed("machine", "build", "grid.json", "--array", "fast").stdout
        self.assertIn('"array": "fast"; grid.json itself takes the grid array', built)
        self.expect_error(3, "explain", *TINY, "--backend", "systolic", "--contract", "bf16",
                          "--machine", "grid.json", "--simulate", "rtl", says="machine build grid.json")

    def test_clock_and_dram_are_free_but_the_array_is_not(self):
        self.write("faster.json", {**RAGGED, "name": "faster", "clock_mhz": 900, "dram": "hbm"})
        self.write("wider.json", {**RAGGED, "columns": 7})
        self.write("grid.json", {**RAGGED, "array": "grid"})
        states = self.state("faster.json", "wider.json", "grid.json")
        self.assertEqual([states[name] for name in ("faster.json", "wider.json", "grid.json")],
                         ["built", "not built", "not built"])

    def test_rtl_twin_and_cpu_train_to_the_same_bits(self):
        training = [*FEW, "--steps", "1", "--contract", "bf16-exact"]
        cpu = self.train(*training, "--out", "cpu")
        both = self.train(*training, *SYSTOLIC, "--simulate", "both", "--out", "both")
        self.assert_same_training(cpu, both)
        self.succeed("synthesize", "--out", "data", "--images", "1", "--size", "16")
        for name, options in (("cpu", []), ("both", [*SYSTOLIC, "--simulate", "both"])):
            self.succeed("run", name, "--input", "data/images", "--out", f"{name}-masks",
                         "--contract", "bf16-exact", *options)
        [mask] = (self.folder / "cpu-masks").glob("*.png")
        self.assertEqual(digest(mask), digest(self.folder / "both-masks" / mask.name))

    def test_its_waves_can_be_written(self):
        self.succeed("trace", *TINY, *SYSTOLIC, "--contract", "bf16", "--simulate", "rtl", "--node",
                     "head", "--waves", "w.fst")
        self.assertIn("TOP.mmu_top.", (self.folder / "w.gtkw").read_text())

    def test_a_damaged_file_is_never_opened(self):
        content = self.library.read_bytes()
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1:]
        for damaged in (content[:middle], flipped, b"", b"\x7fELF"):
            self.library.write_bytes(damaged)
            self.expect_error(3, "explain", *TINY, *SYSTOLIC, "--contract", "bf16", "--simulate", "rtl",
                              says=[str(self.library), "damaged",
                                    '"triptych machine build ragged.json" with --force'])

    def test_another_compiler_or_verilator_makes_it_stale(self):
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "verilator").write_text("#!/bin/sh\necho Verilator 9.999\n")
        (tools / "verilator").chmod(0o755)
        self.environment["PATH"] = f"{tools}:{self.environment['PATH']}"
        self.assertEqual(self.state("ragged.json")["ragged.json"], "not built")

    def test_a_file_under_the_name_of_another_machine_is_not_opened(self):
        self.write("wider.json", {**RAGGED, "columns": 7})
        tools = self.folder / "tools"
        tools.mkdir()
        os.symlink(shutil.which("false"), tools / "make")
        broken = {**self.environment, "PATH": f"{tools}:{self.environment['PATH']}"}
        failed = self.run_program("machine", "build", "wider.json", env=broken)
        log = pathlib.Path(failed.stderr.split("the whole log: ")[1].split("\n")[0])
        shutil.copy(self.library, log.with_suffix(".so"))
        self.expect_error(3, "explain", *TINY, "--backend", "systolic", "--machine", "wider.json",
                          "--contract", "bf16", "--simulate", "rtl", says="damaged")


if __name__ == "__main__":
    main()
