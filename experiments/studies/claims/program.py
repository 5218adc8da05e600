"""Runs the commands of `triptych` that measure, simulate and model."""
# SPDX-License-Identifier: Apache-2.0
import functools
import json
import shlex
import subprocess

PUBLISHED = ("i9-9900k", "rtx2070super", "a100", "h100", "h200", "tpu-v1", "tpu-v2", "tpu-v4", "tpu-v5e")


class CommandFailed(Exception):
    """A command ended with `exit_code`, and this message."""

    def __init__(self, message, exit_code):
        super().__init__(message)
        self.exit_code = exit_code


def command(*words):
    """A command as a user types it."""
    return "triptych " + shlex.join(map(str, words))


class Program:
    """`path`: the program. `quick`: smaller problems, about a third of the time. `options`: of all commands."""

    def __init__(self, path, quick, options=()):
        self.path, self.quick, self.options = path, quick, options

    def results(self, *words):
        """The results of the command. Raises CommandFailed."""
        line = [self.path, *map(str, words), "--json", *self.options]
        ended = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        try:
            document = json.loads(ended.stdout)
        except ValueError:
            document = {}
        if ended.returncode == 0 and "results" in document:
            return document["results"]
        reason = document.get("error", {}).get("message") or ended.stderr.strip() or f"exit code {ended.returncode}"
        raise CommandFailed(f"{command(*words)}: {reason}", ended.returncode)

    @functools.cache
    def machines(self):
        """Memory levels, peaks and links of published machines and of mmu16 by name, and the survey's figures."""
        rows = self.results("bench", "bandwidth", "--backends", "systolic", "--machine", "mmu16", "--device",
                            ",".join(PUBLISHED))
        return {row["machine"]: row for row in rows}

    @functools.cache
    def memory_of(self, backend, *words):
        """Memory levels and peaks of a backend, measured once."""
        return self.results("bench", "bandwidth", "--backends", backend, *words)[0]
