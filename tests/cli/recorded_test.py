"""Recorded outputs of README.md, of a tutorial, of guides and of other pages are compared with real runs."""
# SPDX-License-Identifier: Apache-2.0
import hashlib
import os
import re
import shutil
import signal
import subprocess
import unittest

from pages import blocks, commands_in, holds
from support import PROGRAM, SOURCE, ProgramTest, long_when_sanitized, main, repeats_others



class RecordedLines(unittest.TestCase):
    REAL = "epoch   1  loss 0.5326  Dice 0.8431  187.5 images/s (measured)\ncpu   80  1.58 s  0760b440c78c\n"

    def test_times_and_fingerprints_may_differ(self):
        self.assertTrue(holds("epoch 1 loss 0.5326 Dice 0.8430  3.0 images/s (measured)", self.REAL))
        self.assertTrue(holds("cpu  80  910.2 ms  4cef02ad94a6", self.REAL))

    def test_scores_counts_and_words_may_not(self):
        self.assertFalse(holds("epoch 1 loss 0.5326 Dice 0.7997  187.5 images/s (measured)", self.REAL))
        self.assertFalse(holds("epoch 2 loss 0.5326 Dice 0.8431  187.5 images/s (measured)", self.REAL))
        self.assertFalse(holds("cpu  81  1.58 s  0760b440c78c", self.REAL))
        self.assertFalse(holds("gpu  80  1.58 s  0760b440c78c", self.REAL))

    def test_a_line_is_compared_to_its_end(self):
        self.assertFalse(holds("name  batch  plan", "name  batch  plan  process\n"))
        self.assertTrue(holds("name  batch  ...", "name  batch  plan  process\n"))

    def test_rates_may_differ_where_a_page_says_so(self):
        said = "unet-s/infer  1  1  382.3 us  50  2615.6  189.8  2.9 MiB  21 MiB\n"
        self.assertTrue(holds("unet-s/infer  1  1  9.1 us  50  1.5  7.8  1.7 MiB  1039 MiB", said, rates=True))
        self.assertFalse(holds("unet-s/infer  1  1  9.1 us  50  1.5  7.8  1.7 MiB  1039 MiB", said))
        self.assertFalse(holds("unet-s/infer  1  1  9.1 us  51  1.5  7.8  1.7 MiB  1039 MiB", said, rates=True))
        self.assertFalse(holds("unet-s/train  1  1  9.1 us  50  1.5  7.8  1.7 MiB  1039 MiB", said, rates=True))


@long_when_sanitized
class Pages(ProgramTest):
    def run_command(self, command, stop_at=None, code=0):
        """What the command prints; with stop_at, SIGINT follows the line that begins so."""
        path = str(self.folder / "bin") + os.pathsep + os.environ["PATH"]
        process = subprocess.Popen(["bash", "-c", "exec " + command], cwd=self.folder, text=True,
                                   env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = ""
        with process:
            for line in process.stdout:
                said += line
                if stop_at and line.startswith(stop_at):
                    process.send_signal(signal.SIGINT)
        self.assertEqual(process.returncode, 130 if "stopped after step" in said else code, f"{command}\n{said}")
        return said

    def follow(self, command, code=0):
        command = command.removeprefix("taskset -c 0 ")  # the test may not have that processor
        if "--out runs/stopped" not in command:
            return self.run_command(command, code=code)
        for _ in range(10):  # a busy machine may deliver the signal after the end of the run
            said = self.run_command(command, stop_at="epoch   3")
            if "stopped after step" in said:
                return said
            shutil.rmtree(self.folder / "runs/stopped")
        self.fail(f"never stopped: {said}")

    def follow_page(self, page):
        """Runs its commands, and returns the number of lines that were compared."""
        (self.folder / "bin").mkdir()
        os.symlink(PROGRAM, self.folder / "bin/triptych")
        said, section, shown = "", None, 0
        for heading, mark, lines in blocks(SOURCE / page):
            kind, _, detail = mark.partition(" ")
            if kind == "sh":
                said = said if heading == section else ""
                said += "".join(self.follow(command, int(detail or 0)) for command in commands_in(lines))
                section = heading
            elif kind == "cuda":
                (self.folder / detail).write_text("\n".join(lines) + "\n")
            elif kind == "text":
                for line in filter(None, lines):
                    self.assertTrue(holds(re.sub(r"after step \d+", "after step ...", line), said, detail == "rates"),
                                    f"{page}, {heading}: the page shows another line: {line}\n{said}")
                    shown += 1
        return shown

    def test_the_first_tutorial_shows_what_its_commands_print(self):
        self.assertGreater(self.follow_page("docs/start/first-unet.md"), 30)
        losses = [hashlib.sha256((self.folder / f"runs/{name}/losses.csv").read_bytes()).hexdigest()
                  for name in ("first", "stopped")]
        self.assertEqual(losses[0], losses[1])

    @repeats_others  # cli_quantize runs the commands
    def test_the_guide_to_quantisation_shows_what_its_commands_print(self):
        self.assertGreater(self.follow_page("docs/guides/quantize.md"), 4)

    def test_the_guide_to_measuring_shows_the_columns_of_today(self):
        self.assertGreater(self.follow_page("docs/guides/measure.md"), 9)

    def test_the_guide_to_ranks_shows_what_its_command_prints(self):
        self.succeed("synthesize", "--out", "FOLDER", "--images", "12", "--size", "32")
        self.assertGreater(self.follow_page("docs/guides/train-on-ranks.md"), 2)

    def test_the_study_of_gpu_kernels_shows_what_its_commands_count(self):
        self.assertGreater(self.follow_page("docs/hardware/study-gpu-kernels.md"), 13)

    def test_the_guide_to_own_kernels_shows_what_its_commands_print(self):
        self.assertGreater(self.follow_page("docs/hardware/write-your-own-kernel.md"), 9)

    def test_the_guide_to_the_debugger_shows_what_its_commands_print(self):
        self.assertGreater(self.follow_page("docs/guides/debug-a-kernel.md"), 30)

    def test_the_life_of_a_step_shows_what_explain_prints(self):
        self.assertGreater(self.follow_page("docs/concepts/training-step.md"), 7)


@long_when_sanitized
class Quickstart(ProgramTest):
    def test_the_table_of_the_readme_is_that_of_the_quickstart(self):
        script = (SOURCE / "experiments/quickstart.sh").read_text().replace("\\\n", " ")
        options, = re.findall(r"triptych compare (.*?) --runs", script)
        options = re.sub(r"--backends \S+", "--backends cpu,systolic", options).split()
        said = self.succeed("compare", *options, "--out", "report.html").stdout
        table, = [lines for _, mark, lines in blocks(SOURCE / "README.md") if mark == "text"]
        rows = [line for line in table if line.startswith(("machine ", "cpu ", "systolic "))]
        self.assertEqual(len(rows), 3)
        for row in rows:
            self.assertTrue(holds(row, said), f"README.md shows another row: {row}\n{said}")
            for fingerprint in re.findall(r"\b[0-9a-f]{12}\b", row):  # of bf16-exact
                self.assertIn(fingerprint, said)


if __name__ == "__main__":
    main()
