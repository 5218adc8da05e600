"""Standard streams that are closed, full or without a reader: an exit code, never an abort, and whole files."""
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess

from support import FEW, PROGRAM, ProgramTest, digest, main

TRAIN = ["train", *FEW, "--steps", "2", "--batch", "2", "--threads", "1"]
# A command, its usual exit code, and whether it writes to standard output.
COMMANDS = [
    (["--version"], 0, True), (["--help"], 0, True), (["foo"], 2, False), (["train", "--foo"], 2, False),
    (["devices"], 0, True), (["devices", "--json"], 0, True), (["machine", "show", "mmu4"], 0, True),
    (["completion", "bash"], 0, True), (["explain", *FEW[:-2]], 0, True), (["run", "none"], 2, False),
    (["page", "none"], 2, False), (["launch", "-n", "2"], 2, False)]


class Streams(ProgramTest):
    def broken_pipe(self):
        """The writing end of a pipe that nobody reads."""
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        return writer

    def with_streams(self, arguments, redirections="", **streams):
        usual = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = ["sh", "-c", f'exec "$@" {redirections}', "sh", PROGRAM, *map(str, arguments)]
        return subprocess.run(command, cwd=self.folder, text=True, timeout=300, **{**usual, **streams})

    def outputs(self, arguments, number):
        """Results with an output that is closed, full, or without a reader."""
        name = {1: "stdout", 2: "stderr"}[number]
        yield "closed", self.with_streams(arguments, f"{number}>&-")
        yield "full", self.with_streams(arguments, f"{number}>/dev/full")
        yield "unread", self.with_streams(arguments, **{name: self.broken_pipe()})

    def test_messages_that_cannot_be_written_change_no_exit_code(self):
        for arguments, code, _ in COMMANDS:
            for kind, result in self.outputs(arguments, 2):
                with self.subTest(" ".join(arguments), stderr=kind):
                    self.assertEqual(result.returncode, code)

    def test_results_that_cannot_be_written_are_an_error_with_a_reason(self):
        reasons = {"closed": "Bad file descriptor", "full": "No space left on device", "unread": "Broken pipe"}
        for arguments, code, writes in COMMANDS:
            for kind, result in self.outputs(arguments, 1):
                with self.subTest(" ".join(arguments), stdout=kind):
                    self.assertEqual(result.returncode, 2 if writes else code, result.stderr)
                    if writes:
                        self.assertIn("cannot write to standard output: " + reasons[kind], result.stderr)

    def test_nothing_at_all_to_write_to(self):
        for arguments, code, writes in COMMANDS:
            for streams in ("<&- >&- 2>&-", ">/dev/full 2>/dev/full"):
                with self.subTest(" ".join(arguments), streams=streams):
                    result = self.with_streams(arguments, streams, stdin=None)
                    self.assertEqual(result.returncode, 2 if writes else code)

    def test_a_training_without_streams_has_the_files_of_another(self):
        def files(run):
            names = ["losses.csv", *(f"checkpoint/{p.name}" for p in (self.folder / run / "checkpoint").iterdir()
                                     if p.suffix == ".safetensors")]
            return names, digest(self.folder / run / "losses.csv"), self.train("--resume", run)["weights_sha256"]
        self.succeed(*TRAIN, "--out", "usual")
        for i, streams in enumerate(("<&- >&- 2>&-", "2>&-", "2>/dev/full", ">/dev/full", ">/dev/full 2>/dev/full")):
            result = self.with_streams([*TRAIN, "--out", f"run-{i}"], streams, stdin=None)
            self.assertEqual(result.returncode, 2 if ">" in streams.replace("2>", "") else 0, streams)
            self.assertEqual(files(f"run-{i}"), files("usual"), streams)


if __name__ == "__main__":
    main()
