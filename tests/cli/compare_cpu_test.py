"""Parts of experiments/studies/rivals/compare_cpu.sh that need no rival: its usage, commands and judgements."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import sys
import types

from support import PROGRAM, SOURCE, ProgramTest, main

BENCH = SOURCE / "experiments" / "studies" / "rivals"
sys.path.insert(0, str(BENCH))
sys.dont_write_bytecode = True
import cpu_report  # noqa: E402
from cpu_report import Bar  # noqa: E402


class Script(ProgramTest):
    def compare(self, *arguments):
        return subprocess.run([BENCH / "compare_cpu.sh", "--program", PROGRAM, "--build",
                               self.folder / "rivals", "--out", self.folder / "out", *arguments],
                              capture_output=True, text=True, timeout=300)

    def test_wrong_usage_is_exit_code_2(self):
        for arguments in (["--fast"], ["--rounds"], ["--parts", "gemm,speed", "--ours"],
                          ["--rounds", "0", "--ours"], ["--program", "/nowhere"]):
            result = self.compare(*arguments)
            self.assertEqual(result.returncode, 2, f"{arguments}\n{result.stderr}")

    def test_a_dry_run_prints_the_commands_of_all_parts(self):
        result = self.compare("--ours", "--dry-run", "--threads", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        for part in ("matmul --sizes 4096", "--constant-b", "unet-l --mode infer --batch 4",
                     "--mode train", "--optimizer sgd", "/run --input"):
            self.assertIn(part, result.stdout)
        self.assertFalse((self.folder / "out").exists())

    def test_ours_alone_leaves_the_bars_open_that_need_a_rival(self):
        result = self.compare("--ours", "--only", "unet-s", "--parts", "infer,first", "--rounds",
                              "1", "--samples", "2", "--threads", "1")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("no ONNX Runtime, oneDNN", result.stdout.replace(" or ", ", "))
        recorded = next((self.folder / "out").glob("cpu-*.json"))
        self.assertIn(recorded.with_suffix(".md").read_text(), result.stdout)
        document = json.loads(recorded.read_text())
        self.assertEqual([bar["case"] for bar in document["bars"]],
                         ["unet-s infer, batch 1, 1 threads", "unet-s infer, batch 8, 1 threads",
                          "first mask of unet-s"])
        for case in document["cases"]:
            self.assertEqual(case["errors"], {})
            self.assertGreater(case["entries"][0]["samples"][0]["seconds"][0], 0)

    def test_the_scripts_are_well_formed(self):
        for script in sorted(BENCH.glob("**/*.py")):
            compile(script.read_text(), script, "exec")
        checked = subprocess.run(["bash", "-n", BENCH / "compare_cpu.sh"], env=os.environ)
        self.assertEqual(checked.returncode, 0)


def case_of(**seconds):
    """A case whose entries, also families, have these seconds in the rounds."""
    entries = [types.SimpleNamespace(name=name, family=name.split("_")[0]) for name in seconds]
    samples = {name: [{"round": i, "seconds": [value]} for i, value in enumerate(values)]
               for name, values in seconds.items() if values}
    return types.SimpleNamespace(name="case", entries=entries, samples=samples, errors={})


class Judgement(ProgramTest):
    def test_the_best_variant_of_the_best_rival_counts(self):
        row = cpu_report.judge(case_of(ours=[1, 1, 9], a_slow=[8, 8, 8], a_fast=[3, 2, 4], b=[5]),
                               Bar("ours", ("a", "b"), 2.0))
        self.assertEqual((row["rival"], row["ratio"], row["met"]), ("a_fast", 3.0, True))
        self.assertEqual(row["ratio_extent"], [4 / 9, 3])

    def test_a_missing_rival_leaves_a_bar_open_unless_it_is_missed_anyway(self):
        case = case_of(ours=[1.0], a=[3.0], b=[])
        met = cpu_report.judge(case, Bar("ours", ("a", "b"), 2.0))
        self.assertEqual((met["met"], met["open"]), (None, "no b"))
        self.assertFalse(cpu_report.judge(case, Bar("ours", ("a", "b"), 4.0))["met"])

    def test_rates_are_work_over_time(self):
        row = cpu_report.judge(case_of(ours=[2.0], peak=[0.01]),
                               Bar("ours", ("peak",), 0.92, work=(190, 1)))
        self.assertAlmostEqual(row["ratio"], 0.95)
        self.assertAlmostEqual(row["ours"][0], 95)

    def test_rounds_in_which_the_machine_had_fewer_cores_do_not_count(self):
        bar = Bar("two", ("one",), 1.85, machine=("fast", "slow", 1.95))
        row = cpu_report.judge(case_of(one=[1.9, 1.0], two=[1, 1], slow=[2, 1.2], fast=[1, 1]), bar)
        self.assertEqual((row["ratio"], row["met"]), (1.9, True))
        row = cpu_report.judge(case_of(one=[1.0], two=[1.0], slow=[1.2], fast=[1.0]), bar)
        self.assertIsNone(row["met"])
        self.assertIn("1.20", row["open"])

    def test_limits_are_from_above(self):
        self.assertTrue(cpu_report.judge(case_of(ours=[0.05]),
                                         Bar("ours", (), 0.06, smaller=True))["met"])
        self.assertFalse(cpu_report.judge(case_of(ours=[1.7], alone=[1.0]),
                                          Bar("ours", ("alone",), 1.6, smaller=True))["met"])


if __name__ == "__main__":
    main()
