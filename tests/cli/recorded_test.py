"""Recorded outputs of README.md, of a tutorial and of a guide are compared with real runs."""
# SPDX-License-Identifier: Apache-2.0
import hashlib
import os
import re
import shutil
import signal
import subprocess
import unittest

from pages import blocks, commands_in, holds
from support import PROGRAM, SOURCE, ProgramTest, long_when_sanitized, main



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


@long_when_sanitized
class Pages(ProgramTest):
    def run_command(self, command, stop_at=None):
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
        self.assertEqual(process.returncode, 130 if "stopped after step" in said else 0, f"{command}\n{said}")
        return said

    def follow(self, command):
        if "--out runs/stopped" not in command:
            return self.run_command(command)
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
            if mark == "sh":
                said = (said if heading == section else "") + "".join(map(self.follow, commands_in(lines)))
                section = heading
            elif mark == "text":
                for line in filter(None, lines):
                    self.assertTrue(holds(re.sub(r"after step \d+", "after step ...", line), said),
                                    f"{page}, {heading}: the page shows another line: {line}\n{said}")
                    shown += 1
        return shown

    def test_the_first_tutorial_shows_what_its_commands_print(self):
        self.assertGreater(self.follow_page("docs/start/first-unet.md"), 30)
        losses = [hashlib.sha256((self.folder / f"runs/{name}/losses.csv").read_bytes()).hexdigest()
                  for name in ("first", "stopped")]
        self.assertEqual(losses[0], losses[1])

    def test_the_guide_to_quantisation_shows_what_its_commands_print(self):
        self.assertGreater(self.follow_page("docs/guides/quantize.md"), 4)


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
