"""docs/start/from-pytorch.md, word for word: its file is saved, its commands are run.

Usage: tutorial_test.py PROGRAM SOURCE_DIR
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PYTHON = "/usr/bin/python3"


def main():
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        print("skipped: python3-torch is missing (apt-get install python3-torch)")
        return 77
    program, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    text = (source / "docs/start/from-pytorch.md").read_text()
    name, = re.findall(r"Save this as `(\w+\.py)`", text)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    file, = (block for language, block in blocks if language == "python")
    commands = [block for language, block in blocks if not language]
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / name).write_text(file)
        (pathlib.Path(folder) / "python3").symlink_to(PYTHON)
        path = f"{program.parent}:{folder}:{os.environ['PATH']}"
        result = subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(commands)], cwd=folder, text=True,
                                capture_output=True, timeout=900, env={**os.environ, "PATH": path})
        written = (pathlib.Path(folder) / "trained.onnx").exists()
    prints = {row.split()[-1] for row in result.stdout.splitlines() if re.match(r"(cpu|cuda-emulated|systolic) +bf16", row)}
    passed = result.returncode == 0 and "the same masks" in result.stdout and written and len(prints) == 1
    if not passed:
        print(f"exit code {result.returncode}, fingerprints {prints}\n{result.stdout}\n{result.stderr}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
