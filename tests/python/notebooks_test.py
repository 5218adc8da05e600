"""The notebooks' cells, one after the other, as plain Python; in the long form also in Jupyter."""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs/notebooks"
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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_jupyter_shows_them(path, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3",
                            resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code"
             for output in cell.outputs if output.output_type == "execute_result"]
    assert any("text/html" in output.data for output in shown)
