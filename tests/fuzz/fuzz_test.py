"""Fuzzes one target from the corpus that earlier runs have left, and counts what was executed.

Usage: fuzz_test.py PROGRAM CORPUS [SECONDS, else 60]
An input that ends the program stays in CORPUS.findings; it becomes a test of its own when it is mended.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import subprocess
import sys

MEGABYTES, SECONDS_OF_ONE, LONGEST = 1024, 10, 1 << 16


def begin(program, corpus):
    """A corpus that is not there begins with the target's seeds."""
    corpus.mkdir(parents=True, exist_ok=True)
    if not any(corpus.iterdir()):
        subprocess.run([program], check=True, env={**os.environ, "TRIPTYCH_FUZZ_SEEDS": str(corpus)})


def main():
    program, corpus = sys.argv[1], pathlib.Path(sys.argv[2])
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    begin(program, corpus)
    findings = corpus.with_name(corpus.name + ".findings")
    findings.mkdir(exist_ok=True)
    command = [program, str(corpus), f"-max_total_time={seconds}", f"-rss_limit_mb={MEGABYTES}", f"-max_len={LONGEST}",
               f"-timeout={SECONDS_OF_ONE}", "-print_final_stats=1", f"-artifact_prefix={findings}/"]
    memory = pathlib.Path("/dev/shm")  # where the input's file costs no disk
    environment = {**os.environ, "TMPDIR": str(memory)} if memory.is_dir() else None
    result = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 300, env=environment)
    executed = re.search(r"number_of_executed_units: (\d+)", result.stderr)
    total = corpus.with_name(corpus.name + ".executions")
    before = int(total.read_text()) if total.exists() else 0
    now = int(executed[1]) if executed else 0
    total.write_text(f"{before + now}\n")
    print(f"{now} executions, {before + now} with those of earlier runs; {len(list(corpus.iterdir()))} inputs kept")
    if result.returncode != 0:
        print(result.stderr[-4000:])
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
