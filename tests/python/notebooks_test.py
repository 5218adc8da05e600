"""The notebooks' cells, one after the other, as plain Python; in the long form also in Jupyter, where
the labs' handouts are executed, too."""
# SPDX-License-Identifier: Apache-2.0
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FOLDER = SOURCE / "docs/start/notebooks"
SOLUTIONS = sorted((SOURCE / "tests/labs/solutions").iterdir())
sys.path.insert(0, str(SOURCE / "tests/labs"))
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_run_in_order(path, tmp_path, monkeypatch):
    notebook = json.loads(path.read_text())
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], f"{path.name} is kept without outputs"
            source = "".join(cell["source"])
            exec(compile(source, f"{path.name}, {cell['id']}", "exec"), names)


def execute(path):
    """The notebook after Jupyter has executed it in its folder, and what its cells showed."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3",
                            resources={"metadata": {"path": str(path.parent)}}).execute()
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_jupyter_shows_them(path, tmp_path):
    copy = tmp_path / path.name
    copy.write_text(path.read_text())
    shown = [output for output in execute(copy) if output.output_type == "execute_result"]
    assert any("text/html" in output.data for output in shown)


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda path: path.name)
def test_jupyter_executes_a_labs_handout(solution, tmp_path):
    """As it is handed out, every cell runs, and the check asks for the predictions first."""
    program = os.environ.get("TRIPTYCH_PROGRAM")
    if not program or not pathlib.Path(program).exists():
        pytest.skip("without the program there are no labs")
    number = solution.name.split("-")[0]
    missing = [tool for tool in importlib.import_module(f"wrong_{number}").TOOLS if not shutil.which(tool)]
    if missing:
        pytest.skip(f"not on the PATH: {', '.join(missing)}")
    folder = tmp_path / "lab"
    subprocess.run([program, "lab", "start", number, "--seed", "0", "--out", str(folder), "--notebook"], check=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/triptych").symlink_to(os.path.abspath(program))
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{tmp_path}/bin:{path}"
    try:
        outputs = execute(folder / "lab.ipynb")
    finally:
        os.environ["PATH"] = path
    printed = "".join(output.get("text", "") for output in outputs)
    assert "has no committed predictions" in printed and "None" not in printed
