"""A lab's notebook as a student without Jupyter would follow it: cell by cell."""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import re
import shutil
import subprocess


def fill_in(source, answers):
    """The cell with a student's answers in the place of each None."""
    for part in ("predictions", "explanations"):
        if f'answers["{part}"] = {{' not in source:
            continue
        for name, value in answers[part].items():
            source, count = re.subn(rf'("{name}"): None', lambda m: f"{m[1]}: {value!r}", source)
            assert count == 1, f"{name} is not asked for in\n{source}"
        assert "None" not in source.split("\n", 1)[1], source
    return source


def solve(folder, solution):
    """Puts a solution's files into the lab's folder, its answers into the notebook alone."""
    shutil.copytree(solution, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("answers.json"))


def solved(notebook, solution):
    """The notebook with the solution's answers."""
    answers = json.loads((pathlib.Path(solution) / "answers.json").read_text())
    for cell in notebook["cells"]:
        cell["source"] = fill_in("".join(cell["source"]), answers) if cell["cell_type"] == "code" else cell["source"]
    return notebook


def run(notebook, folder, environment):
    """Runs the cells in the folder; yields (source, what a command printed)."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            continue
        if not source.startswith("!"):
            exec(compile(re.sub(r'open\("', f'open("{folder}/', source), "cell", "exec"), {})
            yield source, ""
            continue
        done = subprocess.run(["bash", "-c", source[1:]], cwd=folder, env=environment, text=True,
                              capture_output=True, timeout=600, stdin=subprocess.DEVNULL)
        yield source, done.stdout + done.stderr
